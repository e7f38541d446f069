"""5.6: signing in by OpenID Connect, against a provider on loopback that can be told to lie."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from tests.server.browser import Browser
from tests.server.client import Caller, Reply, Served
from tests.server.provider import CLIENT, SECRET, Provider

Json = dict[str, Any]


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


@pytest.fixture(scope="module")
def signing(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("oidc")
    service = Served(str(folder / "treadle.db"), folder)
    oidc = {
        "issuer": provider.url,
        "client_id": CLIENT,
        "client_secret": "OIDC",
        "roles": {"ops": ["operator"], "boss": ["admin"]},
        "roles_claim": "treadle_roles",
    }
    service.environment |= {
        "TREADLE_SERVER_OIDC": json.dumps(oidc),
        "TREADLE_NET_ALLOW": "127.0.0.1:*",
        "TREADLE_SECRET_OIDC": SECRET,
    }
    with service as served:
        yield served


@pytest.fixture(autouse=True)
def _honest(provider: Provider) -> Iterator[None]:
    before = dict(provider.person)
    yield
    provider.person, provider.claims, provider.sign = before, {}, provider.honest


def _sign_in(served: Served, provider: Provider, browser: Browser) -> Reply:
    """The way of a browser: to the provider, and back."""
    begun = browser("GET", "/sign-in/oidc")
    assert begun.status == 303, begun
    assert begun.headers["location"].startswith(f"{provider.url}/authorize?")
    parts = urlsplit(begun.headers["location"])
    back = Caller(provider.url, None)("GET", f"{parts.path}?{parts.query}").headers["location"]
    assert back.startswith(f"{served.url}/sign-in/oidc/callback?")
    return browser("GET", back.removeprefix(served.url))


def test_somebody_signs_in_with_user_groups_and_roles_from_claims(signing: Served, provider: Provider) -> None:
    browser = Browser(signing)
    checked = provider.challenge_checked
    reply = _sign_in(signing, provider, browser)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    assert provider.challenge_checked == checked + 1
    me = browser("GET", "/api/v1/me").json
    assert (me["user"], me["groups"], me["roles"]) == ("ann@example.com", ["ops"], ["operator"])
    entry = signing.as_("admin").get("/audit?limit=1")["items"][0]
    assert (entry["user"], entry["about"]) == ("ann@example.com", "sign-in by oidc")


def test_roles_come_from_a_claim_too_and_unknown_ones_mean_nothing(signing: Served, provider: Provider) -> None:
    provider.person = {**provider.person, "groups": "boss", "treadle_roles": ["approver", "root"]}
    browser = Browser(signing)
    assert _sign_in(signing, provider, browser).status == 303
    assert browser("GET", "/api/v1/me").json["roles"] == ["admin", "approver"]


def test_somebody_without_a_role_or_a_verified_address_is_not_let_in(signing: Served, provider: Provider) -> None:
    lies: list[Json] = [{"groups": []}, {"groups": [["ops"]]}, {"email_verified": False}, {"email": None}]
    lies.append({"email": "a\nb"})
    for changed in lies:
        provider.claims = changed
        browser = Browser(signing)
        reply = _sign_in(signing, provider, browser)
        assert reply.status == 401
        assert browser("GET", "/api/v1/me").status == 401


def _none(claims: Json, _provider: Provider) -> str:
    parts = ({"alg": "none", "kid": "one"}, claims)
    return ".".join(urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def _with_public_key_as_secret(claims: Json, provider: Provider) -> str:
    public = OctKey.import_key(provider.key.as_pem(private=False), {"kid": "one"})
    header = urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "one"}).encode()).decode().rstrip("=")
    body = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    raw = hmac.new(public.raw_value, f"{header}.{body}".encode(), hashlib.sha256).digest()
    return f"{header}.{body}.{urlsafe_b64encode(raw).decode().rstrip('=')}"


def _by_a_stranger(kid: str) -> Callable[[Json, Provider], str]:
    key = RSAKey.generate_key(2048, {"kid": kid})
    return lambda claims, _provider: jwt.encode({"alg": "RS256", "kid": kid}, claims, key)


def _claims(**changed: Any) -> Callable[[Json, Provider], str]:
    return lambda claims, provider: provider.honest({**claims, **changed})


def _without(name: str) -> Callable[[Json, Provider], str]:
    return lambda claims, provider: provider.honest({key: value for key, value in claims.items() if key != name})


FORGED: dict[str, Callable[[Json, Provider], str]] = {
    "algorithm none": _none,
    "HS256 with the public key": _with_public_key_as_secret,
    "another key under the same kid": _by_a_stranger("one"),
    "an unknown kid": _by_a_stranger("two"),
    "another audience": _claims(aud="somebody-else"),
    "several audiences, another azp": _claims(aud=[CLIENT, "x"], azp="x"),
    "several audiences, no azp": _claims(aud=[CLIENT, "x"]),
    "another issuer": _claims(iss="https://evil.example"),
    "expired": _claims(exp=int(time.time()) - 3_600),
    "issued in the future": _claims(iat=int(time.time()) + 3_600),
    "another nonce": _claims(nonce="x"),
    "no nonce": _without("nonce"),
    "no exp": _without("exp"),
    "no aud": _without("aud"),
    "no sub": _without("sub"),
    "not a token": lambda _claims, _provider: "abc",
    "changed after signing": lambda claims, provider: provider.honest(claims)[:-8] + "AAAAAAAA",
}


@pytest.mark.parametrize("how", FORGED)
def test_a_forged_token_signs_nobody_in(signing: Served, provider: Provider, how: str) -> None:
    provider.sign = lambda claims: FORGED[how](claims, provider)
    browser = Browser(signing)
    reply = _sign_in(signing, provider, browser)
    assert reply.status == 401, how
    assert browser("GET", "/api/v1/me").status == 401
    assert all(not name.startswith("treadle-oidc") for name in browser.cookies)


def test_an_answer_this_browser_has_not_asked_for_signs_nobody_in(signing: Served, provider: Provider) -> None:
    asked, other = Browser(signing), Browser(signing)
    begun = asked("GET", "/sign-in/oidc").headers["location"]
    parts = urlsplit(begun)
    back = urlsplit(Caller(provider.url, None)("GET", f"{parts.path}?{parts.query}").headers["location"])
    path = f"{back.path}?{back.query}"
    assert other("GET", path).status == 401
    other("GET", "/sign-in/oidc")
    assert other("GET", path).status == 401
    code = parse_qs(back.query)["code"][0]
    assert asked("GET", f"{back.path}?code={code}&state=guess").status == 401
    assert asked("GET", "/sign-in/oidc/callback?error=access_denied").status == 401


def test_a_provider_that_calls_itself_otherwise_is_not_used(tmp_path: Path) -> None:
    liar = Provider()
    liar.issuer_said = "https://somebody.example"
    service = Served(str(tmp_path / "treadle.db"), tmp_path)
    service.environment |= {
        "TREADLE_SERVER_OIDC": json.dumps({"issuer": liar.url, "client_id": CLIENT, "roles": {"*": ["viewer"]}}),
        "TREADLE_NET_ALLOW": "127.0.0.1:*",
    }
    with service as served:
        assert Browser(served)("GET", "/sign-in/oidc").status == 503
    liar.close()


def test_discovery_does_not_reach_addresses_inside_unless_the_operator_allows_them(tmp_path: Path) -> None:
    inside = Provider()
    service = Served(str(tmp_path / "treadle.db"), tmp_path)
    service.environment["TREADLE_SERVER_OIDC"] = json.dumps({"issuer": inside.url, "client_id": CLIENT})
    with service as served:
        assert Browser(served)("GET", "/sign-in/oidc").status == 503
        assert "not a public address" in served.said()
    inside.close()


def test_without_a_provider_there_is_no_such_address(served_sqlite: Served) -> None:
    assert Browser(served_sqlite)("GET", "/sign-in/oidc").status == 404
    assert Browser(served_sqlite)("GET", "/sign-in/oidc/callback?code=a&state=b").status == 404

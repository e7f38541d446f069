"""5.6: every route × every caller × transport, generated from the route table and judged by `rights.txt`.

What is not allowed there is refused, whatever else is wrong with the request: such a caller learns nothing.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.server.browser import Browser
from tests.server.client import ROLES, Served
from treadle.runtime.connecting import connect
from treadle.server.routes import READERS, Role, Route
from treadle.server.table import all_routes

TABLE = Path(__file__).parent / "rights.txt"
LETTERS = {"V": READERS, "O": {Role.OPERATOR}, "A": {Role.AUTHOR}, "P": {Role.APPROVER}, "W": {Role.WORKER}, "X": set()}
PROBES = {"health", "ready", "..%2f..%2fhealth%2flive", "%2e%2e", "configs"}


def _allowed() -> dict[tuple[str, str], frozenset[Role] | None]:
    """Method and path → the roles that may; None: no key is asked for."""
    found: dict[tuple[str, str], frozenset[Role] | None] = {}
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            letters, method, path = line.split()
            assert (method, path) not in found, line
            roles = {role for letter in letters if letter != "-" for role in LETTERS[letter]}
            found[method, path] = None if letters == "-" else frozenset({*roles, Role.ADMIN})
    return found


ALLOWED = _allowed()
GUARDED = [route for route in all_routes() if not route.access.open]


def _name(route: Route) -> str:
    return f"{route.method} {route.full_path}"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service of its own: thousands of wrong keys would slow down the tests beside it."""
    folder = tmp_path_factory.mktemp("rights")
    service = Served(str(folder / "treadle.db"), folder)
    service.environment["TREADLE_SERVER_FAILURES_PER_MIN"] = "1000000"
    with service as served:
        yield served


@pytest.fixture(scope="module")
def wrong_keys(guarded: Served) -> dict[str, str]:
    """Keys that must open nothing: expired, revoked, forged."""

    async def made() -> dict[str, str]:
        async with connect(guarded.store) as client:
            _, expired = await client.keys.create("expired", ["admin"], expires=client.now() + 200)
            key, revoked = await client.keys.create("revoked", ["admin"])
            await client.keys.revoke(key.id)
            while any(one.is_valid(client.now()) for one in await client.keys.list() if one.name == "expired"):
                pass
        return {"expired": expired, "revoked": revoked, "forged": guarded.keys["admin"][:-4] + "AAAA"}

    return asyncio.run(made())


def _status(served: Served, route: Route, headers: dict[str, str], names: str = "nothing") -> int:
    """The status of a request for a route; a stream is not read."""
    path = re.sub(r"\{(run)\}|\{[a-z]+\}", names, route.full_path)
    connection = HTTPConnection(urlsplit(served.url).netloc, timeout=60)
    try:
        body = b"{}" if route.is_write else None
        media = {"Content-Type": route.media_types[0]} if body else {}
        connection.request(route.method, path, body, {**media, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


def test_every_route_is_in_the_table_with_the_same_rights() -> None:
    missing = [_name(route) for route in all_routes() if (route.method, route.full_path) not in ALLOWED]
    assert not missing, f"who may? add to {TABLE.name}: {missing}"
    for route in all_routes():
        allowed = ALLOWED[route.method, route.full_path]
        assert route.access.open == (allowed is None), _name(route)
        if allowed is not None:
            assert {role for role in Role if route.access.admits(frozenset({role}))} == allowed, _name(route)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_a_key_opens_what_the_table_allows_and_nothing_else(guarded: Served, accept: str) -> None:
    wrong: list[str] = []
    for route in GUARDED:
        allowed = ALLOWED[route.method, route.full_path] or frozenset()
        for role in ROLES:
            headers = {"Authorization": f"Bearer {guarded.keys[role]}", "Accept": accept}
            status = _status(guarded, route, headers)
            if (status not in (401, 403)) != (Role(role) in allowed) or status >= 500:
                wrong.append(f"{_name(route)} as {role}: {status}")
    assert not wrong


def test_without_a_valid_key_nothing_opens(guarded: Served, wrong_keys: dict[str, str]) -> None:
    callers = {
        "nobody": {},
        **{why: {"Authorization": f"Bearer {key}"} for why, key in wrong_keys.items()},
        "basic": {"Authorization": "Basic YWRtaW46YWRtaW4="},
        "bare": {"Authorization": guarded.keys["admin"]},
        "query": {"X-Api-Key": guarded.keys["admin"]},
        "cookie": {"Cookie": f"treadle-{guarded.port}={guarded.keys['admin']}"},
    }
    statuses = {
        (_name(route), caller): _status(guarded, route, headers)
        for route in GUARDED
        for caller, headers in callers.items()
    }
    assert {one: status for one, status in statuses.items() if status != 401} == {}


@pytest.mark.parametrize("names", sorted(PROBES))
def test_no_name_in_a_path_opens_a_route(guarded: Served, names: str) -> None:
    """Resources named as probes are, and names that climb."""
    statuses = {_name(route): _status(guarded, route, {}, names) for route in GUARDED}
    assert {name: status for name, status in statuses.items() if status not in (401, 404, 405)} == {}


@pytest.mark.parametrize(
    "path", ["/api/v1/keys/", "/api/v1/keys/health", "/api/v1//keys", "/api/v1/keys%00", "/API/v1/keys"]
)
def test_no_spelling_of_a_path_goes_around_the_door(guarded: Served, path: str) -> None:
    assert guarded.as_(None)("GET", path).status in (401, 404, 405)
    assert guarded.as_("viewer")("GET", path).status in (403, 404, 405)


def test_a_key_with_patterns_is_refused_where_no_workflow_is_meant(guarded: Served) -> None:
    reply = guarded.as_("admin").post("/keys", {"name": "narrow", "roles": ["admin"], "workflows": ["narrow/*"]})
    headers = {"Authorization": f"Bearer {reply['key']}"}
    wrong = []
    for route in GUARDED:
        status = _status(guarded, route, headers)
        if route.about == "none":
            expected = status == 403 if route.noun not in ("service", "session") else status < 500
        else:
            expected = status not in (200, 201, 204) or route.method == "GET" or route.audited is False
        if not expected:
            wrong.append(f"{_name(route)} ({route.about}): {status}")
    assert not wrong


def test_a_session_opens_what_its_key_does_and_writes_need_its_token(guarded: Served) -> None:
    for role in ("viewer", "operator", "worker"):
        browser = Browser(guarded)
        browser.sign_in(guarded.keys[role])
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        own = {"Cookie": cookie, "Origin": guarded.url, "X-CSRF-Token": browser.csrf()}
        wrong = []
        for route in GUARDED:
            if route.full_path == "/api/v1/session":
                continue
            allowed = Role(role) in (ALLOWED[route.method, route.full_path] or frozenset())
            if (_status(guarded, route, own) not in (401, 403)) != allowed:
                wrong.append(_name(route))
            if route.is_write and _status(guarded, route, {"Cookie": cookie}) != 403:
                wrong.append(f"{_name(route)} without a token")
        assert not wrong

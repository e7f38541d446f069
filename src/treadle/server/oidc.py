"""Signing in by OpenID Connect: code flow with PKCE (5.6).

Owns the conversation with the provider, and what its claims mean here. Promises that an identity is believed only if it
comes from the provider's token endpoint in answer to this browser's own request (state, PKCE), is signed by one of the
provider's keys with an asymmetric algorithm, and is for this client, now, and for this very sign-in (nonce). What was
asked is kept in a sealed cookie of ten minutes: a sign-in that nobody finishes leaves nothing behind.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from typing import Any

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from treadle.errors import TreadleError
from treadle.runtime.access.fetching import FetchFailed, GatedFetch, own_secret
from treadle.runtime.access.keys import ROLES
from treadle.runtime.access.sealing import SealBroken
from treadle.server.service import Service
from treadle.server.settings import OidcSettings

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Asymmetric ones alone: with `none` or a shared key anybody could sign."""
FRESH_S = 3_600
"""How long the provider's description and keys are believed."""
AGAIN_S = 30
"""How soon keys are read again for a key that is not known: forged tokens must not make us ask all the time."""
FLOW_S = 600
LEEWAY_S = 60
GROUPS_MAX = 200


class SignInRefused(TreadleError):
    """The provider's answer is not believed, or says somebody without a role here. `reason`: for the page."""

    def __init__(self, message: str, reason: str = "oidc") -> None:
        super().__init__(message)
        self.reason = reason


class OidcProvider:
    """The provider of one service."""

    def __init__(self, service: Service, settings: OidcSettings) -> None:
        self._service = service
        self._settings = settings
        self._fetch = GatedFetch(service.settings.net_allow)
        self._description: dict[str, Any] = {}
        self._keys: KeySet | None = None
        self._described = self._keyed = float("-inf")

    async def close(self) -> None:
        await self._fetch.close()

    async def begin(self, redirect_uri: str) -> tuple[str, str]:
        """Where to send the browser, and what its cookie keeps meanwhile. Raises FetchFailed."""
        description = await self._described_now()
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        kept = {"state": state, "nonce": nonce, "verifier": verifier, "until": self._service.now() + FLOW_S * 1_000}
        address: str = prepare_grant_uri(
            description["authorization_endpoint"],
            self._settings.client_id,
            "code",
            redirect_uri,
            " ".join(self._settings.scopes),
            state,
            nonce=nonce,
            code_challenge=create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return address, self._service.sealing.seal("oidc", json.dumps(kept))

    async def finish(self, cookie: str, state: str, code: str, redirect_uri: str) -> dict[str, Any]:
        """The claims of who has signed in. Raises SignInRefused, FetchFailed."""
        try:
            kept = json.loads(self._service.sealing.open("oidc", cookie))
        except (SealBroken, ValueError):
            raise SignInRefused("the cookie of the sign-in is not ours") from None
        if self._service.now() >= kept["until"] or not hmac.compare_digest(kept["state"].encode(), state.encode()):
            raise SignInRefused("the sign-in was begun by somebody else, or too long ago")
        description = await self._described_now()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": kept["verifier"],
            "client_id": self._settings.client_id,
        }
        endpoint = description["token_endpoint"]
        login = None
        if self._settings.client_secret is not None:
            secret = await own_secret(self._service.client.secrets, self._settings.client_secret, endpoint)
            login = (self._settings.client_id, secret)
        token = (await self._fetch.json(endpoint, form, login)).get("id_token")
        if not isinstance(token, str):
            raise SignInRefused("the provider gave no id_token")
        return await self._believed(token, kept["nonce"])

    async def _believed(self, token: str, nonce: str) -> dict[str, Any]:
        claims = await self._signed(token)
        registry = jwt.JWTClaimsRegistry(
            now=int(time.time()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": self._settings.issuer},
            aud={"essential": True, "value": self._settings.client_id},
            exp={"essential": True},
            iat={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            registry.validate(claims)
        except JoseError as problem:
            raise SignInRefused(f"the id_token is not believed: {problem}") from None
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if (several or "azp" in claims) and claims.get("azp") != self._settings.client_id:
            raise SignInRefused("the id_token was made for another client")
        return claims

    async def _signed(self, token: str) -> dict[str, Any]:
        """The claims of a token with a good signature. Keys are read again if it is not by one that is known."""
        try:
            return self._decoded(token, await self._keys_now())
        except (JoseError, ValueError) as first:
            if time.monotonic() - self._keyed < AGAIN_S:
                raise SignInRefused(f"the id_token is not believed: {type(first).__name__}") from None
        self._keyed = float("-inf")
        try:
            return self._decoded(token, await self._keys_now())
        except (JoseError, ValueError) as problem:
            raise SignInRefused(f"the id_token is not believed: {type(problem).__name__}") from None

    @staticmethod
    def _decoded(token: str, keys: KeySet) -> dict[str, Any]:
        return dict(jwt.decode(token, keys, algorithms=ALGORITHMS).claims)

    async def _keys_now(self) -> KeySet:
        if self._keys is None or time.monotonic() - self._keyed >= FRESH_S:
            description = await self._described_now()
            found = await self._fetch.json(description["jwks_uri"])
            public = [key for key in found.get("keys", []) if isinstance(key, dict) and key.get("kty") != "oct"]
            self._keys = KeySet.import_key_set({"keys": public})
            self._keyed = time.monotonic()
        return self._keys

    async def _described_now(self) -> dict[str, Any]:
        if time.monotonic() - self._described >= FRESH_S:
            issuer = self._settings.issuer
            found = await self._fetch.json(issuer.rstrip("/") + "/.well-known/openid-configuration")
            needed = ("authorization_endpoint", "token_endpoint", "jwks_uri")
            if found.get("issuer") != issuer or not all(isinstance(found.get(name), str) for name in needed):
                raise FetchFailed("the provider's description is of another issuer, or lacks addresses")
            if not found["authorization_endpoint"].startswith(("https://", "http://127.0.0.1", "http://localhost")):
                raise FetchFailed("the provider's authorization endpoint is not https")
            self._description, self._described = found, time.monotonic()
        return self._description


class SignedInPerson:
    """Who a provider says has signed in, in the words of this service. Raises SignInRefused."""

    def __init__(self, claims: dict[str, Any], settings: OidcSettings) -> None:
        user = claims.get(settings.user_claim)
        if not isinstance(user, str) or not user or len(user) > 200 or not user.isprintable():
            raise SignInRefused(f"the claim {settings.user_claim!r} names nobody")
        if settings.user_claim == "email" and claims.get("email_verified") is not True:
            raise SignInRefused("the e-mail address was not verified by the provider")
        self.user = user
        self.groups = _texts(claims.get(settings.groups_claim))
        roles = [role for group in ("*", *self.groups) for role in settings.roles.get(group, ())]
        if settings.roles_claim is not None:
            roles += _texts(claims.get(settings.roles_claim))
        self.roles = tuple(role for role in ROLES if role in roles)
        if not self.roles:
            raise SignInRefused(f"{user} has no role here", "roles")


def _texts(claim: Any) -> tuple[str, ...]:
    given = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    texts = [one for one in given if isinstance(one, str) and one and len(one) <= 200 and one.isprintable()]
    return tuple(dict.fromkeys(texts))[:GROUPS_MAX]

"""A small OpenID provider on loopback: discovery, authorization with PKCE, tokens, keys. It can be told to lie.

Its keys and tokens are made by joserfc, its PKCE check by authlib, as a real provider's would be.
"""

from __future__ import annotations

import json
import secrets
import time
from base64 import b64encode
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT, SECRET = "treadle-test", "client-secret-9c2e"
Json = dict[str, Any]


class Provider:
    """The provider. `person` are the claims of who signs in; `sign` makes the token of its claims."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig"})
        self.person: Json = {"sub": "7", "email": "ann@example.com", "email_verified": True, "groups": ["ops"]}
        self.claims: Json = {}
        """Claims that it says otherwise than it should."""
        self.sign: Callable[[Json], str] = self.honest
        self.issuer_said: str | None = None
        self.told: Json = {}
        """Fields of its description that lead elsewhere."""
        self.moved_to: str | None = None
        """Where it redirects everybody who asks for its description."""
        self.challenge_checked = 0
        self._codes: dict[str, dict[str, str]] = {}
        provider = self

        class Answering(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.get(self)

            def do_POST(self) -> None:
                provider.token(self)

            def log_message(self, *_arguments: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def honest(self, claims: Json) -> str:
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)

    def get(self, request: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(request.path)
        if self.moved_to is not None:
            request.send_response(302)
            request.send_header("Location", self.moved_to)
            request.end_headers()
        elif parts.path == "/.well-known/openid-configuration":
            _json(
                request,
                {
                    "issuer": self.issuer_said or self.url,
                    "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token",
                    "jwks_uri": f"{self.url}/keys",
                    **self.told,
                },
            )
        elif parts.path == "/keys":
            _json(request, KeySet([self.key]).as_dict(private=False))
        elif parts.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            assert asked["code_challenge_method"] == "S256"
            code = secrets.token_urlsafe(16)
            self._codes[code] = asked
            request.send_response(302)
            request.send_header(
                "Location", asked["redirect_uri"] + "?" + urlencode({"code": code, "state": asked["state"]})
            )
            request.end_headers()
        else:
            request.send_error(404)

    def token(self, request: BaseHTTPRequestHandler) -> None:
        form = parse_qs(request.rfile.read(int(request.headers["Content-Length"])).decode())
        asked = self._codes.pop(form["code"][0], None)
        expected = "Basic " + b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if asked is None or request.headers.get("Authorization") != expected:
            request.send_error(400)
            return
        challenge = create_s256_code_challenge(form["code_verifier"][0])
        if challenge != asked["code_challenge"] or form["redirect_uri"][0] != asked["redirect_uri"]:
            request.send_error(400)
            return
        self.challenge_checked += 1
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]}
        _json(
            request,
            {"access_token": "x", "token_type": "Bearer", "id_token": self.sign(claims | self.person | self.claims)},
        )


def _json(request: BaseHTTPRequestHandler, body: object) -> None:
    data = json.dumps(body).encode()
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)

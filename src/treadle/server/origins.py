"""Requests from browsers: which pages may write, and which may read (5.6).

A browser sends its cookies along with whatever page asks. So a write by a session needs two proofs that the page is one
of the service's own: the `Origin` that the browser itself writes down, and a token that only those pages can read. A
write with a key needs neither: no browser sends a key by itself. Pages elsewhere may call the API (with a key) if the
operator names their origin; cookies never count for them.
"""

from __future__ import annotations

import hashlib
import hmac

from starlette.requests import Request

from treadle.server.addresses import own_origin
from treadle.server.problems import HttpProblem
from treadle.server.settings import ServerSettings

CSRF_HEADER = "x-csrf-token"
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
SENT = "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, x-request-id"
SHOWN = "etag, idempotency-replayed, location, retry-after, x-request-id"
PREFLIGHT_S = 600


def csrf_token(key: bytes, session: str) -> str:
    """The token of a session: made of its id, so that it need not be kept."""
    return hmac.new(key, session.encode(), hashlib.sha256).hexdigest()


def refuse_foreign_page(request: Request, settings: ServerSettings) -> None:
    """Refuses a write that a page of somebody else has sent. Programs, which send no such headers, pass. Raises
    FORBIDDEN."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    is_own = origin is None or origin == own_origin(request, settings)
    if not is_own or site not in (None, "same-origin"):
        raise HttpProblem("FORBIDDEN", "the page that sent this is not one of this service")


def require_own_page(request: Request, settings: ServerSettings, expected: str, given: str) -> None:
    """Refuses a session's write that does not prove to come from a page of the service. Raises FORBIDDEN."""
    refuse_foreign_page(request, settings)
    if "origin" not in request.headers:
        raise HttpProblem("FORBIDDEN", "a write by a browser session needs the Origin header")
    if not hmac.compare_digest(expected.encode(), given.encode()):
        raise HttpProblem(
            "FORBIDDEN",
            "a write by a browser session needs its CSRF token",
            remedy="send X-CSRF-Token with `csrf` of GET /api/v1/session",
        )


def cors_headers(request: Request, settings: ServerSettings) -> list[tuple[bytes, bytes]]:
    """What lets a page of a named origin read an answer; nothing for any other."""
    if not settings.origins:
        return []
    origin = request.headers.get("origin")
    found = [(b"vary", b"origin")]
    if origin in settings.origins:
        found.append((b"access-control-allow-origin", origin.encode()))
        found.append((b"access-control-expose-headers", SHOWN.encode()))
    return found


def preflight_headers(request: Request, settings: ServerSettings) -> dict[str, str]:
    """The answer to a browser that asks first; empty for an origin that is not named."""
    if request.headers.get("origin") not in settings.origins or not settings.origins:
        return {}
    return {
        "access-control-allow-methods": METHODS,
        "access-control-allow-headers": SENT,
        "access-control-max-age": str(PREFLIGHT_S),
    }

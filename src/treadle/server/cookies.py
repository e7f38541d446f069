"""Cookies of the service: their names and attributes (5.6).

Promises that a cookie is `HttpOnly` and `SameSite=Lax`, `Secure` under TLS, and bound to this host, and to the path of
its project. Under TLS its name begins with `__Host-` (`__Secure-` below a path), so that browsers refuse one that a
neighbouring name has planted. Without TLS the name has the port: cookies know no ports, and two services on one machine
must not sign each other out.
"""

from __future__ import annotations

import re

from starlette.requests import Request

from treadle.server.addresses import is_tls
from treadle.server.settings import ServerSettings

_VALUE = re.compile(r"[A-Za-z0-9_.=-]{20,4000}")
SESSION = "treadle"
FLOW = "treadle-oidc"


def cookie_name(request: Request, settings: ServerSettings, name: str = SESSION) -> str:
    """The name of a cookie of this service."""
    if is_tls(request, settings):
        return f"__Secure-{name}" if _path(request) != "/" else f"__Host-{name}"
    server = request.scope.get("server")
    return f"{name}-{server[1]}" if server is not None else name


def session_cookie(request: Request, settings: ServerSettings) -> str | None:
    """What the browser's session cookie says; None if it has none."""
    return read_cookie(request, settings, SESSION)


def read_cookie(request: Request, settings: ServerSettings, name: str) -> str | None:
    """What a cookie of the service says; None if there is none, or several, or one that we never gave."""
    wanted = cookie_name(request, settings, name)
    found = [
        value.strip()
        for header in request.headers.getlist("cookie")
        for key, _, value in (part.partition("=") for part in header.split(";"))
        if key.strip() == wanted
    ]
    return found[0] if len(found) == 1 and _VALUE.fullmatch(found[0]) else None


def set_cookie(request: Request, settings: ServerSettings, value: str, max_age_s: int, name: str = SESSION) -> str:
    """The header that gives a cookie; an age of 0 takes it away."""
    parts = [
        f"{cookie_name(request, settings, name)}={value}",
        f"Path={_path(request)}",
        f"Max-Age={max_age_s}",
        "HttpOnly",
        "SameSite=Lax",
    ]
    if is_tls(request, settings):
        parts.append("Secure")
    return "; ".join(parts)


def _path(request: Request) -> str:
    prefix: str = request.scope.get("root_path", "")
    return prefix.rstrip("/") or "/"

"""The canvas: the web application that `./dev` builds from `web/` into the folder `canvas` beside this file.

Owns its addresses and the page they all answer with: the application itself reads the address and asks the API, so the
page tells nothing about anybody and needs no session. Promises a policy without inline script: the page's own nonce
admits only the style sheets that the editor makes. An installation without the built files says so and works without.
"""

from __future__ import annotations

import mimetypes
import re
import secrets
from html import escape
from pathlib import Path

from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import HttpProblem, not_found
from treadle.server.routes import OPEN, Handler, Route

BUILT = Path(__file__).with_name("canvas")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
"""Names of these files have the hash of what is in them."""
_HOURLY = {"cache-control": "public, max-age=3600"}

PAGES = (
    "/runs",
    "/runs/{run}",
    "/gates",
    "/gates/{run}/{visit}",
    "/journeys",
    "/journeys/{workflow}",
    "/workflows",
    "/workflows/{workflow}",
    "/operate",
    "/operate/{part}",
)
"""Addresses of screens, as `web/src/app.tsx` reads them."""


def is_built() -> bool:
    """Whether the files of the canvas are there."""
    return (BUILT / "index.html").is_file()


def _shell() -> str:
    """Read each time: a canvas that was built anew is served at once, and the page is asked for rarely."""
    return (BUILT / "index.html").read_text("utf-8")


def shell(call: HttpCall) -> HttpAnswer:
    """The page of the application, made for the prefix under which the service is mounted."""
    nonce = secrets.token_urlsafe(16)
    head = f'<head><base href="{escape(call.url("/"))}"><meta name="csp-nonce" content="{nonce}">'
    policy = (
        f"default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self' 'nonce-{nonce}'; "
        "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'self'; "
        "frame-ancestors 'none'"
    )
    headers = {"content-security-policy": policy, "cache-control": "no-store", "referrer-policy": "same-origin"}
    text = _shell().replace("<head>", head, 1)
    return HttpAnswer(text.encode(), 200, headers, media_type="text/html; charset=utf-8")


async def page(call: HttpCall) -> HttpAnswer:
    if not is_built():
        raise HttpProblem(
            "NOT_FOUND",
            "the canvas is not part of this installation",
            remedy="`./dev web` builds it; the API works without: /api/v1/docs",
        )
    return shell(call)


async def asset(call: HttpCall) -> HttpAnswer:
    return _file(BUILT / "assets", call.path["file"], _FOREVER)


async def icons(_call: HttpCall) -> HttpAnswer:
    return _file(BUILT, "icons.svg", _HOURLY)


async def icon(_call: HttpCall) -> HttpAnswer:
    return _file(BUILT, "icon.svg", _HOURLY)


def _file(folder: Path, name: str, headers: dict[str, str]) -> HttpAnswer:
    file = folder / name
    if _NAME.fullmatch(name) is None or name.startswith(".") or not file.is_file():
        raise not_found("such a file")
    return HttpAnswer(file.read_bytes(), 200, dict(headers), media_type=_type(name))


def _type(name: str) -> str:
    """Not the machine's own table of types, which differs: what this application has is known."""
    known = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    return known.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"


def _route(path: str, handler: Handler, summary: str, answer_type: str, *, takes_any_query: bool = False) -> Route:
    return Route(
        method="GET",
        path=path,
        root=True,
        handler=handler,
        access=OPEN,
        about="none",
        noun="canvas",
        summary=summary,
        answers={200: bytes},
        answer_type=answer_type,
        problems=("NOT_FOUND",),
        takes_any_query=takes_any_query,
    )


ROUTES = (
    # Filters of a screen stand in its address, and only the application reads them.
    *(_route(path, page, "A screen of the canvas", "text/html", takes_any_query=True) for path in PAGES),
    _route("/assets/{file}", asset, "A file of the canvas", "application/octet-stream"),
    _route("/icons.svg", icons, "The icons of the canvas", "image/svg+xml"),
    _route("/icon.svg", icon, "The icon of the canvas", "image/svg+xml"),
)

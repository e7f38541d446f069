"""Pages of the service itself: the first page, where people sign in and out. Plain HTML without a script.

Promises that everything a page shows of somebody's is escaped. Its forms need the browser's own word that the page
which sends them is this one (`origins.py`), so these pages have a referrer policy under which browsers give it.
"""

from __future__ import annotations

import hashlib
import hmac
from html import escape
from urllib.parse import parse_qs

from msgspec import Struct

from treadle.server import canvas_pages
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.origins import refuse_foreign_page, require_own_page
from treadle.server.problems import HttpProblem
from treadle.server.routes import OPEN, Route
from treadle.server.sign_in import (
    begin_session,
    csrf_of,
    end_session,
    is_navigation,
    sign_in_with_key,
    signed_in,
    to_first_page,
)
from treadle.server.who import Who

HTML = "text/html; charset=utf-8"
FORM = "application/x-www-form-urlencoded"
PAGE_HEADERS = {"referrer-policy": "same-origin"}
FIELDS_MAX = 10
SIGN_IN_HINTS = {
    "key": "That key is not valid.",
    "link": "This link was used already, or is of a service that was started before. Its log has the newest one.",
    "oidc": "The provider did not sign you in, or its answer could not be trusted. Try again.",
    "roles": "You are known, and have no role here. An admin can give you one.",
}


class FirstPage(Struct, kw_only=True):
    """How somebody comes to the first page."""

    token: str | None = None
    """Of the start-up link."""


async def first(call: HttpCall) -> HttpAnswer:
    query: FirstPage = call.query
    who = await signed_in(call)
    if query.token is not None:
        return await _by_link(call, query.token)
    if who is not None and canvas_pages.is_built():
        return canvas_pages.shell(call)
    return _page(call, _signed_in(call, who)) if who is not None else _page(call, _form(call))


async def account(call: HttpCall) -> HttpAnswer:
    """Who is signed in, or the form to sign in: for those who come without the canvas, or without JavaScript."""
    who = await signed_in(call)
    return _page(call, _signed_in(call, who)) if who is not None else _page(call, _form(call))


async def _by_link(call: HttpCall, token: str) -> HttpAnswer:
    """Signs in with the start-up link, which works once."""
    service = call.service
    given = hashlib.sha256(token.encode()).hexdigest()
    if service.link_token is None or not hmac.compare_digest(given, service.link_token):
        return _page(call, _form(call, "link"), 401)
    if not is_navigation(call.request):
        return _page(call, _form(call))
    service.link_token = None
    session, cookie = service.callers.sessions.draft("link", name="start-up link", user="admin", roles=["admin"])
    return to_first_page(await begin_session(call, session, cookie, 303), service.landing)


async def sign_in(call: HttpCall) -> HttpAnswer:
    refuse_foreign_page(call.request, call.service.settings)
    try:
        _who, cookie = await sign_in_with_key(call, _fields(call).get("key", ""), 303)
    except HttpProblem as problem:
        if problem.code != "UNAUTHENTICATED":
            raise
        return _page(call, _form(call, "key"), 401)
    return to_first_page(cookie)


async def sign_out(call: HttpCall) -> HttpAnswer:
    who = await signed_in(call)
    if who is None or who.session is None:
        return HttpAnswer(b"", 303, {"location": "/"}, media_type="text/plain")
    expected, given = csrf_of(call, who.session), _fields(call).get("csrf", "")
    require_own_page(call.request, call.service.settings, expected, given)
    call.request.state.who = who
    return to_first_page(await end_session(call, who.session, 303))


async def style(_call: HttpCall) -> HttpAnswer:
    return HttpAnswer(STYLE.encode(), headers={"cache-control": "max-age=3600"}, media_type="text/css; charset=utf-8")


def _fields(call: HttpCall) -> dict[str, str]:
    try:
        fields = parse_qs(call.raw.decode(), strict_parsing=bool(call.raw), max_num_fields=FIELDS_MAX)
    except ValueError:
        raise HttpProblem("BAD_REQUEST", "the form cannot be read") from None
    return {name: values[0] for name, values in fields.items()}


def refused_sign_in(call: HttpCall, reason: str, status: int = 401) -> HttpAnswer:
    """The first page, saying why nobody is signed in."""
    return _page(call, _form(call, reason), status)


def _page(call: HttpCall, body: str, status: int = 200) -> HttpAnswer:
    title = f"Treadle · {escape(call.service.project)}" if call.service.project else "Treadle"
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="stylesheet" href="{escape(call.url("/sign-in/style.css"))}"></head>'
        f"<body><main><h1>{title}</h1>{body}</main></body></html>"
    )
    return HttpAnswer(text.encode(), status, dict(PAGE_HEADERS), media_type=HTML)


def _form(call: HttpCall, hint: str | None = None) -> str:
    said = f'<p role="alert">{SIGN_IN_HINTS[hint]}</p>' if hint is not None else ""
    oidc = ""
    if call.service.settings.oidc is not None:
        oidc = f'<p><a href="{escape(call.url("/sign-in/oidc"))}">Sign in with your organisation</a></p>'
    return (
        f'{said}{oidc}<form method="post" action="{escape(call.url("/sign-in"))}">'
        '<label for="key">Key</label><input id="key" name="key" type="password" required autofocus'
        ' autocomplete="current-password"><button>Sign in</button></form>'
        "<p><small><code>treadle keys create NAME --role ROLE</code> makes a key.</small></p>"
    )


def _signed_in(call: HttpCall, who: Who) -> str:
    assert who.session is not None
    roles = ", ".join(sorted(str(role) for role in who.roles))
    return (
        f"<p>You are signed in as <b>{escape(who.user)}</b> ({escape(roles)}).</p>"
        f'<p><a href="{escape(call.url("/api/v1/docs"))}">The API</a></p>'
        f'<form method="post" action="{escape(call.url("/sign-out"))}">'
        f'<input type="hidden" name="csrf" value="{csrf_of(call, who.session)}"><button>Sign out</button></form>'
    )


STYLE = """
:root { color-scheme: light dark; --canvas: #F6F7F9; --card: #FFFFFF; --line: #C9D0D9; --text: #1A1F27;
  --text-2: #56606E; --focus: #1D4ED8; --on-ink: #FFFFFF; --fail: #B3201F; --fail-tint: #FDE6E4; }
@media (prefers-color-scheme: dark) { :root { --canvas: #0E1116; --card: #161B22; --line: #3A4452; --text: #E6EAF0;
  --text-2: #9AA5B3; --focus: #86ADFF; --on-ink: #12161C; --fail: #FF9189; --fail-tint: #3D1A19; } }
* { box-sizing: border-box; }
body { display: grid; place-items: center; min-height: 100vh; margin: 0; padding: 16px; background: var(--canvas);
  color: var(--text); font: 14px/20px Inter, system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; }
main { width: min(380px, 100%); padding: 24px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); overflow-wrap: anywhere; }
h1 { margin: 0 0 16px; font-size: 20px; line-height: 28px; }
label, input, button { display: block; width: 100%; font: inherit; }
input { height: 36px; margin: 6px 0 12px; padding: 0 10px; border: 1px solid var(--line); border-radius: 6px;
  background: var(--card); color: inherit; }
button { height: 36px; border: 0; border-radius: 6px; background: var(--text); color: var(--on-ink); font-weight: 600;
  cursor: pointer; }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
a { color: var(--focus); }
p:last-child { margin-bottom: 0; }
small { color: var(--text-2); font-size: 12px; line-height: 16px; }
[role=alert] { margin: 0 0 16px; padding: 10px 12px; border-radius: 6px; background: var(--fail-tint);
  color: var(--fail); }
"""

ROUTES = (
    Route(
        method="GET",
        path="/",
        root=True,
        handler=first,
        access=OPEN,
        about="none",
        noun="session",
        summary="The first page: sign in, or the canvas",
        query=FirstPage,
        answers={200: bytes, 303: None, 401: bytes},
        answer_type="text/html",
    ),
    Route(
        method="GET",
        path="/sign-in",
        root=True,
        handler=account,
        access=OPEN,
        about="none",
        noun="session",
        summary="Sign in, or who is signed in, as a page without script",
        answers={200: bytes},
        answer_type="text/html",
    ),
    Route(
        method="POST",
        path="/sign-in",
        root=True,
        handler=sign_in,
        access=OPEN,
        about="none",
        noun="session",
        summary="Sign in with a key, by the form of the first page",
        body=bytes,
        media_types=(FORM,),
        answers={303: None, 401: bytes},
        answer_type="text/html",
        problems=("FORBIDDEN",),
    ),
    Route(
        method="POST",
        path="/sign-out",
        root=True,
        handler=sign_out,
        access=OPEN,
        about="none",
        noun="session",
        summary="Sign out, by the form of the first page",
        body=bytes,
        media_types=(FORM,),
        answers={303: None},
        answer_type="text/html",
        problems=("FORBIDDEN",),
    ),
    Route(
        method="GET",
        path="/sign-in/style.css",
        root=True,
        handler=style,
        access=OPEN,
        about="none",
        noun="session",
        summary="How the first page looks",
        answers={200: bytes},
        answer_type="text/css",
    ),
)

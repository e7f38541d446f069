"""Signing in and out: what begins and ends a browser session, whatever the way (5.6).

Owns the two cookies and their entries in the audit. Promises that every sign-in gives a new session and ends the one
the browser had, and that nobody is sent anywhere but to the service's own first page afterwards: no address is taken
from a request.
"""

from __future__ import annotations

from msgspec.structs import replace
from starlette.requests import Request

from treadle.server.addresses import address_of
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.cookies import session_cookie, set_cookie
from treadle.server.origins import csrf_token
from treadle.server.problems import HttpProblem
from treadle.server.sessions import BrowserSession
from treadle.server.who import Who


async def begin_session(call: HttpCall, session: BrowserSession, cookie: str, status: int) -> str:
    """Keeps a session, with its entry in the audit. Returns the header that gives the browser its cookie."""
    service, request = call.service, call.request
    before = session_cookie(request, service.settings)
    known = await service.callers.sessions.find(before) if before is not None else None
    request.state.who = Who(id=f"session:{session.id[:12]}", name=session.name, user=session.user)
    entry = call.audited(status, f"sign-in by {session.by}")
    await service.callers.sessions.begin(session, entry, known.id if known is not None else None)
    return set_cookie(request, service.settings, cookie, service.settings.session_max_ms // 1_000)


async def sign_in_with_key(call: HttpCall, text: str, status: int) -> tuple[Who, str]:
    """A session with the rights of a key: its caller, and the header of its cookie. Raises UNAUTHENTICATED."""
    service = call.service
    who = await service.callers.with_key(text.strip(), address_of(call.request, service.settings))
    if who is None:
        raise HttpProblem("UNAUTHENTICATED", "this key is not valid", remedy="`treadle keys create` makes one")
    session, cookie = service.callers.sessions.draft("key", key=who.key, name=who.name, user=who.user)
    return replace(who, session=session.id), await begin_session(call, session, cookie, status)


async def end_session(call: HttpCall, session: str, status: int) -> str:
    """Ends a session. Returns the header that takes the cookie away."""
    await call.service.callers.sessions.end(session, call.audited(status, "sign-out"))
    return set_cookie(call.request, call.service.settings, "", 0)


def csrf_of(call: HttpCall, session: str) -> str:
    """The token that writes of a session need."""
    return csrf_token(call.service.secret("csrf"), session)


async def signed_in(call: HttpCall) -> Who | None:
    """The caller of the browser's session on an open page; None if nobody has signed in."""
    cookie = session_cookie(call.request, call.service.settings)
    return await call.service.callers.of_session(cookie) if cookie is not None else None


def to_first_page(cookie: str, page: str = "/") -> HttpAnswer:
    """Sends the browser to the first page, or to the one that the operator chose, with a cookie."""
    return HttpAnswer(b"", 303, {"location": page, "set-cookie": cookie}, media_type="text/plain")


def is_navigation(request: Request) -> bool:
    """Whether a GET came for its answer; a HEAD must change nothing."""
    return request.method == "GET"

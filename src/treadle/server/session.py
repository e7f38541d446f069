"""Browser sessions over HTTP, for the web application: sign in with a key, who I am, sign out."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.origins import refuse_foreign_page
from treadle.server.problems import HttpProblem
from treadle.server.routes import ANY_KEY, OPEN, Route
from treadle.server.sign_in import csrf_of, end_session, sign_in_with_key
from treadle.server.who import Who


class SignIn(Struct, kw_only=True):
    """The key to sign in with."""

    key: Annotated[str, Meta(max_length=200)]


class SessionView(Struct, kw_only=True):
    """The caller's session."""

    name: str
    user: str
    groups: list[str]
    roles: list[str]
    workflows: list[str] | None
    expires: int | None
    project: str | None
    csrf: Annotated[
        str | None, Meta(description="Writes by this session send it as X-CSRF-Token; null: the caller uses a key.")
    ]


def view(call: HttpCall, who: Who) -> SessionView:
    return SessionView(
        name=who.name,
        user=who.user,
        groups=list(who.groups),
        roles=sorted(str(role) for role in who.roles),
        workflows=list(who.workflows) if who.workflows is not None else None,
        expires=who.expires,
        project=call.service.project,
        csrf=csrf_of(call, who.session) if who.session is not None else None,
    )


async def show(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(view(call, call.who))


async def begin(call: HttpCall) -> HttpAnswer:
    refuse_foreign_page(call.request, call.service.settings)
    given: SignIn = call.body
    who, cookie = await sign_in_with_key(call, given.key, 201)
    return HttpAnswer(view(call, who), 201, {"set-cookie": cookie, "location": "/api/v1/session"})


async def end(call: HttpCall) -> HttpAnswer:
    if call.who.session is None:
        raise HttpProblem("BAD_REQUEST", "the caller uses a key, not a session", remedy="DELETE /api/v1/keys/{id}")
    return HttpAnswer(None, 204, {"set-cookie": await end_session(call, call.who.session, 204)})


ROUTES = (
    Route(
        method="GET",
        path="/session",
        handler=show,
        access=ANY_KEY,
        about="none",
        noun="session",
        summary="Who has signed in, and the token that writes need",
        answers={200: SessionView},
    ),
    Route(
        method="POST",
        path="/session",
        handler=begin,
        access=OPEN,
        about="none",
        noun="session",
        summary="Sign in with a key: gives a cookie",
        body=SignIn,
        answers={201: SessionView},
        problems=("UNAUTHENTICATED", "FORBIDDEN"),
    ),
    Route(
        method="DELETE",
        path="/session",
        handler=end,
        access=ANY_KEY,
        about="none",
        noun="session",
        summary="Sign out",
        answers={204: None},
    ),
)

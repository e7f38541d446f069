"""Links: a gate is answered without an account, once, until the link expires (5.5).

Owns the link as a document (only a digest of its token is stored), and who may make one. `answering` has the page.

Theory of operation
    A link is bound to one opening of one gate: a gate that is asked again needs a new link. Opening the page changes
    nothing. An answer first marks the link as used, compared with the version that was read, so that of two answers at
    once one finds it used; an answer that the gate refuses gives the link back. If the server dies between the two, the
    link is used up without an answer, and somebody has to make another.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from treadle.model.people import is_asked, people_of
from treadle.runtime.gate_view import GateView
from treadle.runtime.service.records import Changes, change
from treadle.server.call import HttpAnswer, HttpCall, created
from treadle.server.gates import person_of
from treadle.server.problems import HttpProblem
from treadle.server.routes import APPROVER, Route

KIND = "_link"
LONGEST_MS = 400 * 24 * 3_600_000
"""A link is a key to one question; who needs more than a year needs an account."""
EXPIRED_MS = 30 * 24 * 3_600_000
"""How long an expired link is kept, so that the person who opens it is told so. After that nobody knows it any more."""
PRUNE_EVERY_MS = 3_600_000


class LinkWanted(Struct, kw_only=True):
    """A link to make."""

    expires_ms: Annotated[int, Meta(ge=1, le=LONGEST_MS, description="How long it works, from now.")]
    for_: Annotated[str, Meta(min_length=1, max_length=200, description="Who answers with it.")] | None = msgspec.field(
        name="for", default=None
    )


class LinkMade(Struct):
    """A link, shown this once."""

    url: str
    expires: int


class LinkNote(Struct, kw_only=True):
    """A link as it is stored."""

    run: str
    visit: int
    opened: int
    """The number of the `gate.opened` it is about."""
    answers_as: str | None
    made_by: str
    expires: int
    used: int | None = None


async def make(call: HttpCall) -> HttpAnswer:
    given: LinkWanted = call.body
    view = await call.client.gate(call.path["run"], call.number("visit"))
    if view.status != "open" or "answer" not in view.can:
        raise HttpProblem("INVALID_STATE", f"gate {view.gate} is not waiting for an answer")
    _require_right(call, view, given.for_)
    token = secrets.token_urlsafe(32)
    note = LinkNote(
        run=view.run,
        visit=view.visit,
        opened=view.seq,
        answers_as=given.for_,
        made_by=call.who.user,
        expires=call.now() + given.expires_ms,
    )
    kept = change(KIND, digest_of(token), msgspec.to_builtins(note), expected=0)
    await call.client.records.write(Changes(removed=await _long_expired(call), documents=[kept]))
    scheme = "https" if call.service.settings.behind_tls else call.request.url.scheme
    path = f"/answer/{token}"
    url = f"{scheme}://{call.request.headers.get('host', '')}{call.url(path)}"
    return created(LinkMade(url, note.expires), path)


async def _long_expired(call: HttpCall) -> list[tuple[str, str]]:
    """Links that expired long ago: they are dropped when another one is made, once an hour at most."""
    now = call.now()
    if now - call.service.parts.get("links pruned", -PRUNE_EVERY_MS) < PRUNE_EVERY_MS:
        return []
    call.service.parts["links pruned"] = now
    notes = [(kept.name, msgspec.convert(kept.body, LinkNote)) for kept in await call.client.records.all(KIND)]
    return [(KIND, name) for name, note in notes if note.expires < now - EXPIRED_MS]


def _require_right(call: HttpCall, view: GateView, answers_as: str | None) -> None:
    """Who may make a link: people who may answer, for anybody; others only for somebody whom the gate names."""
    person = person_of(call.who)
    named = [name for assign in (view.assign, view.escalated) for kind, name in people_of(assign) if kind != "group"]
    if person.admin or view.claimed_by == person.name or next(people_of(view.assign), None) is None:
        return
    if is_asked(view.assign, person) or is_asked(view.escalated, person) or answers_as in named:
        return
    raise HttpProblem(
        "FORBIDDEN",
        "a link to this gate is made by the people it is assigned to or by an admin",
        remedy="or give `for` a person whom the gate names",
    )


def digest_of(token: str) -> str:
    """The name under which a link is stored: its token cannot be read out of it."""
    return hashlib.sha256(token.encode()).hexdigest()


ROUTES = (
    Route(
        method="POST",
        path="/gates/{run}/{visit}/link",
        handler=make,
        access=APPROVER,
        about="run",
        noun="people",
        summary="Make a link by which a gate is answered once, without an account",
        body=LinkWanted,
        answers={201: LinkMade},
        problems=("NOT_FOUND", "FORBIDDEN", "INVALID_STATE"),
    ),
)

"""Gates: questions to people. Lists, one gate with everything, and what people do about it (5.5)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from treadle.runtime.client import GateRow, Person
from treadle.runtime.gate_view import GateView
from treadle.runtime.run import Run
from treadle.server.call import HttpAnswer, HttpCall, ListPage
from treadle.server.routes import APPROVER, VIEWER, Route
from treadle.server.who import Who


class GateItem(Struct, kw_only=True):
    """An open gate in a list."""

    gate: Annotated[str, Meta(description="RUN/VISIT")]
    run: str
    visit: int
    node: str
    workflow: str
    opened: int
    title: str | None
    assign: Annotated[Any, Meta(description="Who may answer: a name, a list of names, or {users, groups, quorum}.")]
    due: int | None
    claimed_by: str | None
    escalated: Annotated[Any, Meta(description="The people it was escalated to.")]
    reminded: Annotated[int, Meta(description="Reminders sent.")]
    commented: Annotated[int, Meta(description="Comments made.")]
    answered: Annotated[int, Meta(description="Answers of a quorum so far.")]
    can: Annotated[list[str], Meta(description="What a person may do about it.")]


class GatePage(Struct):
    """A page of open gates, longest open first; with `by=node` counts instead."""

    items: Annotated[list[Any], Meta(description="Gates; with `by=node` `{workflow, node, count}` and the like.")]
    next: str | None = None


class GateFilter(Struct, kw_only=True):
    """Which gates; every condition that is given must hold."""

    assignee: Annotated[str, Meta(description="Asked by this name of a person or group, or claimed.")] | None = None
    mine: Annotated[bool, Meta(description="Asked of the caller, by name or group, or claimed by them.")] = False
    workflow: str | None = None
    node: str | None = None
    run: str | None = None
    overdue: Annotated[bool, Meta(description="Whose due time has passed.")] = False
    text: Annotated[str, Meta(description="Part of the title, node or run.")] | None = None
    by: Literal["node"] | None = None
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    cursor: str | None = None


class AnswerGiven(Struct, kw_only=True):
    """An answer."""

    data: Annotated[Any, Meta(description="Checked against the gate's form.", examples=[{"approve": True}])] = None
    comment: str | None = None


class GateHandOver(Struct):
    """The person who gets a gate."""

    to: Annotated[str, Meta(min_length=1, max_length=200)]


class CommentGiven(Struct, kw_only=True):
    """Something to say about a gate."""

    text: str
    attachments: Annotated[list[str], Meta(max_length=50, description="Names of artifacts of the run.")] = []


def person_of(who: Who) -> Person:
    """The caller as a person whose identity was checked."""
    return Person(who.user or who.name, who.groups, who.is_admin)


async def list_gates(call: HttpCall) -> HttpAnswer:
    given: GateFilter = call.query
    seen = call.who.workflows
    if seen == ():
        return HttpAnswer(GatePage([]))
    conditions: dict[str, Any] = {
        "workflow": given.workflow,
        "workflows": seen or (),
        "node": given.node,
        "assignee": given.assignee,
        "mine": person_of(call.who) if given.mine else None,
        "overdue": given.overdue,
        "text": given.text,
    }
    if given.by is not None:
        return HttpAnswer(GatePage(await call.client.count_gates(given.run, **conditions)))
    rows = await call.client.gates(given.run, given.limit + 1, after=call.cursor(), **conditions)
    page = rows[: given.limit]
    more = call.next_cursor(page[-1].place) if len(rows) > len(page) else None
    return HttpAnswer(ListPage([item_of(row) for row in page], more))


def item_of(row: GateRow) -> GateItem:
    """A gate as lists show it."""
    values = {name: getattr(row, name) for name in GateItem.__struct_fields__ if name not in ("gate", "can")}
    return GateItem(gate=f"{row.run}/{row.token}", can=list(row.can), **values)


async def show(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(await call.client.gate(call.path["run"], call.number("visit")))


async def answer(call: HttpCall) -> HttpAnswer:
    given: AnswerGiven = call.body
    run, visit = _gate(call)
    return await _done(call, run.complete_gate(visit, given.data, person=person_of(call.who), comment=given.comment))


async def claim(call: HttpCall) -> HttpAnswer:
    run, visit = _gate(call)
    return await _done(call, run.claim_gate(visit, person=person_of(call.who)))


async def release(call: HttpCall) -> HttpAnswer:
    run, visit = _gate(call)
    return await _done(call, run.release_gate(visit, person=person_of(call.who)))


async def delegate(call: HttpCall) -> HttpAnswer:
    run, visit = _gate(call)
    return await _done(call, run.delegate_gate(visit, call.body.to, person=person_of(call.who)))


async def comment(call: HttpCall) -> HttpAnswer:
    given: CommentGiven = call.body
    run, visit = _gate(call)
    said = run.comment_gate(
        visit, given.text, person=person_of(call.who), attachments=given.attachments, id=call.idempotency
    )
    return await _done(call, said)


def _gate(call: HttpCall) -> tuple[Run, int]:
    return call.client.run(call.path["run"]), call.number("visit")


async def _done(call: HttpCall, command: Awaitable[None]) -> HttpAnswer:
    """Sends a command and answers with the gate afterwards."""
    try:
        await call.service.require_engine()
        before = await call.client.gate(*_address(call))
    except BaseException:
        command.close()  # type: ignore[attr-defined]
        raise
    await command
    return HttpAnswer(await call.client.gate_again(before))


def _address(call: HttpCall) -> tuple[str, int]:
    return call.path["run"], call.number("visit")


def _command(name: str, handler: Any, summary: str, body: Any = None, *more: str) -> Route:
    return Route(
        method="POST",
        path=f"/gates/{{run}}/{{visit}}/{name}",
        handler=handler,
        access=APPROVER,
        about="run",
        noun="people",
        summary=summary,
        body=body,
        answers={200: GateView},
        problems=("NOT_FOUND", "FORBIDDEN", "INVALID_STATE", "NO_ENGINE", *more),
    )


class NoFields(Struct):
    """Nothing more to say."""


ROUTES = (
    Route(
        method="GET",
        path="/gates",
        handler=list_gates,
        access=VIEWER,
        about="handler",
        noun="people",
        summary="Open gates, longest open first",
        description="With `by=node` the items are counts of each node: workflow, node, count, overdue, oldest.",
        query=GateFilter,
        answers={200: GatePage},
    ),
    Route(
        method="GET",
        path="/gates/{run}/{visit}",
        handler=show,
        access=VIEWER,
        about="run",
        noun="people",
        summary="One gate with its form, input, comments, attachments and answers",
        answers={200: GateView},
        problems=("NOT_FOUND",),
    ),
    _command("answer", answer, "Answer a gate", AnswerGiven, "SCHEMA"),
    _command("claim", claim, "Take a gate on", NoFields),
    _command("release", release, "Give a claimed gate back", NoFields),
    _command("delegate", delegate, "Hand a gate to another person", GateHandOver),
    _command("comment", comment, "Say something about a gate", CommentGiven),
)

"""Looking into a run over HTTP: the run, its state at any event, visits, groups, compensations.

Owns the addresses; the answers are the shapes of `runtime.view`, unchanged but for opaque cursors.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, convert, field, json, structs

from treadle.runtime.run import CompensationStatus, Run
from treadle.runtime.view.moments import moment_of
from treadle.runtime.view.picture_shapes import RunPicture
from treadle.runtime.view.shapes import BranchRow, GroupRow, RunDetail, VisitDetail, VisitRow
from treadle.runtime.view.snapshot_shapes import StateDifference, StateScope, StateView
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.large_values import ValueMax, without_large
from treadle.server.paging import Limit, PageQuery, page_of
from treadle.server.problems import not_found
from treadle.server.routes import VIEWER, Route

Number = Annotated[int, Meta(ge=1)]


class VisitQuery(Struct):
    """Which visits."""

    status: list[str] = []
    node: str | None = None
    group: Number | None = None
    limit: Limit = 100
    cursor: str | None = None


class VisitList(Struct):
    """Visits, newest first."""

    items: list[VisitRow]
    next: str | None


class GroupList(Struct):
    """Fan-outs by number."""

    items: list[GroupRow]
    next: str | None


class GroupPage(GroupRow, frozen=True):
    """A fan-out with a page of its branches: those that have failed first, then the others by index."""

    branches: list[BranchRow]
    next: str | None


class CompensationList(Struct):
    """Compensation records, in the order in which the visits completed."""

    items: list[CompensationStatus]
    next: str | None


class StateQuery(Struct):
    """Which state."""

    seq: Annotated[int | None, Meta(description="The number of an event; without it, as the run is now.")] = None
    at: Annotated[
        str | None, Meta(description="Instead: an event's number, `visit:N`, a node, or an instant (ISO 8601).")
    ] = None


class ValueQuery(Struct):
    """How much of each value."""

    value_max: ValueMax | None = None


class DiffQuery(Struct):
    """Between which events."""

    begin: Number = field(name="from")
    end: Number = field(name="to")


def run_of(call: HttpCall) -> Run:
    """The run of the path."""
    return call.client.run(call.path["run"])


async def show(call: HttpCall) -> HttpAnswer:
    """A thousand waits are a long list, but no large value: only what each of them contains is cut."""
    found, most = await run_of(call).detail(), call.query.value_max
    if most is None:
        return HttpAnswer(found)
    lists = {name: [without_large(one, most) for one in getattr(found, name)] for name in ("waiting", "causes")}
    return HttpAnswer({**without_large(structs.replace(found, waiting=[], causes=[]), most), **lists})


def _answer(call: HttpCall, found: Struct) -> HttpAnswer:
    """The answer, whole or with previews of large values."""
    return HttpAnswer(found if call.query.value_max is None else without_large(found, call.query.value_max))


async def state(call: HttpCall) -> HttpAnswer:
    run, asked = run_of(call), call.query
    if asked.seq is not None:
        await run.info()
    moment = moment_of(asked.at) if asked.at is not None and asked.seq is None else asked.seq
    shown = await run.snapshot(moment)
    return HttpAnswer(shown, etag=_tag(shown.seq))


async def picture(call: HttpCall) -> HttpAnswer:
    """Columns are never cut, however long they are: only data are."""
    found = await run_of(call).picture()
    most = call.query.value_max
    if most is None:
        return HttpAnswer(found)
    cut = {name: without_large({name: getattr(found, name)}, most)[name] for name in ("input", "output")}
    scope = convert(without_large(found.scope, most), StateScope)
    return HttpAnswer(structs.replace(found, **cut, scope=scope))


def _tag(seq: int) -> str:
    """A state at an event never changes; the letter does when the shape gains a field."""
    return f"a{seq}"


async def diff(call: HttpCall) -> HttpAnswer:
    begin, end = call.query.begin, call.query.end
    return HttpAnswer(await run_of(call).difference(begin, end), etag=f"{_tag(begin)}-{_tag(end)}")


async def visits(call: HttpCall) -> HttpAnswer:
    asked: VisitQuery = call.query
    rows = await run_of(call).visits(
        statuses=asked.status,
        node=asked.node,
        group=asked.group,
        after=call.cursor(),
        limit=asked.limit + 1,
        newest_first=True,
    )
    shown = rows[: asked.limit]
    return HttpAnswer(VisitList(shown, call.next_cursor(shown[-1].visit) if len(rows) > asked.limit else None))


async def visit(call: HttpCall) -> HttpAnswer:
    return _answer(call, await run_of(call).visit(call.number("visit")))


async def visit_value(call: HttpCall) -> HttpAnswer:
    found, name = await run_of(call).visit(call.number("visit")), call.path["name"]
    if name not in ("input", "output", "scope"):
        raise not_found(f"value {name!r} of a visit")
    headers = {"Content-Disposition": f'attachment; filename="{name}.json"'}
    return HttpAnswer(json.encode(getattr(found, name)), 200, headers, media_type="application/json")


async def groups(call: HttpCall) -> HttpAnswer:
    limit = call.query.limit
    rows = await run_of(call).groups(after=call.cursor() or 0, limit=limit + 1)
    shown = rows[:limit]
    return HttpAnswer(GroupList(shown, call.next_cursor(shown[-1].group) if len(rows) > limit else None))


async def group(call: HttpCall) -> HttpAnswer:
    seq, after = call.cursor() or (None, 0)
    found = await run_of(call).group(call.number("group"), after=after, limit=call.query.limit, seq=seq)
    fields: dict[str, Any] = {name: getattr(found, name) for name in GroupRow.__struct_fields__}
    following = call.next_cursor(list(found.next)) if found.next is not None else None
    return HttpAnswer(GroupPage(**fields, branches=found.branches, next=following))


async def compensations(call: HttpCall) -> HttpAnswer:
    run = run_of(call)
    await run.info()
    return HttpAnswer(CompensationList(*page_of(call, await run.compensations(), lambda one: [one.record])))


def _read(path: str, handler: Any, summary: str, answer: Any, query: Any = None, **more: Any) -> Route:
    return Route(
        method="GET",
        path=f"/runs/{{run}}{path}",
        handler=handler,
        access=VIEWER,
        about="run",
        noun="runs",
        summary=summary,
        query=query,
        answers={200: answer},
        problems=("NOT_FOUND",),
        **more,
    )


ROUTES = (
    _read("", show, "One run: what it waits for, and what would end each wait", RunDetail, ValueQuery),
    _read(
        "/state",
        state,
        "The state of a run after one of its events",
        StateView,
        StateQuery,
        reads_headers=("If-None-Match",),
        description="The fold of its history up to the end of the decision that the event lies in: scope, visits,"
        " groups, joins, gates, timers. A state at an event never changes: ask again with `If-None-Match`.",
    ),
    _read(
        "/picture",
        picture,
        "What a graph of a run shows: every visit, group and transition, without the history",
        RunPicture,
        ValueQuery,
    ),
    _read(
        "/diff",
        diff,
        "What changed in a run between two of its events",
        StateDifference,
        DiffQuery,
        reads_headers=("If-None-Match",),
    ),
    _read("/visits", visits, "Visits of a run, newest first", VisitList, VisitQuery),
    _read(
        "/visits/{visit}",
        visit,
        "One visit: data, attempts, why it was made, what it waits for",
        VisitDetail,
        ValueQuery,
    ),
    _read("/visits/{visit}/values/{name}", visit_value, "The input, output or scope of a visit as a file", bytes),
    _read("/groups", groups, "Fan-outs of a run by number", GroupList, PageQuery),
    _read("/groups/{group}", group, "One fan-out and its branches, failed ones first", GroupPage, PageQuery),
    _read("/compensations", compensations, "What a run can undo, and what became of it", CompensationList, PageQuery),
)

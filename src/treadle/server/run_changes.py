"""Changing a run over HTTP: fork, edit, skip, jump, set an input (6.3, 6.4), and where its decisions end (6.1).

Owns the addresses and bodies. Every handler sends one command; with `dry_run` it sends none, and answers with the
events that the command would lead to.
"""

from __future__ import annotations

from typing import Annotated, Any, cast

from msgspec import Meta, Struct
from msgspec.structs import asdict

from treadle.model.change_events import RunForked
from treadle.model.event_rows import event_row
from treadle.model.references import EntityRef
from treadle.runtime.run import Run
from treadle.runtime.view.difference import is_equal
from treadle.runtime.view.shapes import RunDetail, VisitDetail
from treadle.server.call import HttpAnswer, HttpCall, created
from treadle.server.problems import HttpProblem
from treadle.server.routes import OPERATOR, VIEWER, Route
from treadle.server.run_commands import command, require_engine
from treadle.server.run_views import run_of
from treadle.server.runs import HISTORY_PAGE, EntityGiven, RunView, view_of
from treadle.server.workflows import segment

DryRun = Annotated[bool, Meta(description="Change nothing; answer with the events that would follow.")]
Name = Annotated[str, Meta(min_length=1, max_length=200)]


class ForkPoint(Struct, forbid_unknown_fields=True):
    """A visit before whose work a fork begins, or the first visit of a node."""

    visit: Annotated[int, Meta(ge=1)] | None = None
    node: Name | None = None


class ForkChangesGiven(Struct, forbid_unknown_fields=True, frozen=True):
    """What is otherwise in a fork from its point on."""

    input: Annotated[Any, Meta(description="Replaces the whole input.")] = None
    state: Annotated[dict[str, Any], Meta(description="Target path to value.")] = {}
    outputs: Annotated[
        dict[str, Any], Meta(description="Visit or node to the output it gave; the visit must have returned.")
    ] = {}
    version: Annotated[int, Meta(ge=1)] | None = None


class ForkGiven(Struct, kw_only=True):
    """A fork: a run with the past of another one up to a point."""

    at: Annotated[
        Annotated[int, Meta(ge=1)] | ForkPoint | None,
        Meta(description="The number of an event, or {visit}, or {node}; null: as the run is now."),
    ] = None
    changes: ForkChangesGiven = ForkChangesGiven()
    key: Name | None = None
    tags: list[str] = []
    entity: EntityGiven | None = None
    inherit_compensation: Annotated[bool, Meta(description="Also undo what the other run has done.")] = False
    dry_run: DryRun = False


class EditGiven(Struct, kw_only=True):
    """Values to write into a run's data."""

    writes: Annotated[dict[str, Any], Meta(description="Target path (`state.…`, `output.…`) to value.")]
    branch: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="A visit: the scope of its branch is written.")
    ] = None
    reason: str | None = None
    dry_run: DryRun = False


class SkipGiven(Struct, kw_only=True):
    """The output with which a visit completes."""

    output: Any = None
    reason: str | None = None
    dry_run: DryRun = False


class JumpGiven(Struct, kw_only=True):
    """The node at which a visit goes on."""

    to: Name
    reason: str | None = None
    dry_run: DryRun = False


class InputGiven(Struct, kw_only=True):
    """The input of a visit's further attempts."""

    input: Any = None
    reason: str | None = None
    dry_run: DryRun = False


class ForkPlanned(Struct):
    """What a fork would begin with."""

    run: str
    dry_run: bool
    events: list[dict[str, Any]]


class RunChanged(RunDetail, frozen=True, kw_only=True):
    """The run after a change, or as it is if the change was only planned; and the events the change leads to."""

    dry_run: bool
    events: list[dict[str, Any]]


class VisitChanged(VisitDetail, frozen=True, kw_only=True):
    """The visit after a change, or as it is if the change was only planned; and the events the change leads to."""

    run: str
    dry_run: bool
    events: list[dict[str, Any]]


class DecisionQuery(Struct):
    """A page of decisions."""

    after: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class DecisionList(Struct):
    """The numbers of the events at which decisions end, in order."""

    items: list[int]
    next: Annotated[int | None, Meta(description="Send it as `after`; null: this was all.")] = None


async def _changed_visit(run: Run, visit: int, events: Any, dry_run: bool) -> HttpAnswer:
    found = asdict(await run.visit(visit))
    return HttpAnswer(VisitChanged(**found, run=str(run.id), dry_run=dry_run, events=_rows(events)))


def _rows(events: Any) -> list[dict[str, Any]]:
    return [event_row(event) for event in events]


async def fork(call: HttpCall) -> HttpAnswer:
    run, given = await require_engine(call), cast(ForkGiven, call.body)
    point = given.at if isinstance(given.at, ForkPoint) else ForkPoint()
    about, changes = given.entity, given.changes
    asked: dict[str, Any] = {
        "visit": point.visit,
        "node": point.node,
        "input": changes.input,
        "state": changes.state,
        "outputs": changes.outputs,
        "version": changes.version,
        "key": given.key or call.request.headers.get("idempotency-key"),
        "tags": given.tags,
        "entity": EntityRef(about.id, about.type, about.name, about.attributes) if about is not None else None,
        "inherit_compensation": given.inherit_compensation,
        "by": call.who.user,
    }
    at = given.at if isinstance(given.at, int) else None
    if given.dry_run:
        return HttpAnswer(ForkPlanned(str(run.id), True, _rows(await run.foretell_fork(at, **asked))))
    forked = await run.fork(at, **asked)
    if not forked.is_begun:
        await _require_same(run, forked, given)
    return created(await view_of(forked), f"/api/v1/runs/{segment(forked.id)}")


async def _require_same(run: Run, forked: Run, given: ForkGiven) -> None:
    """Raises DUPLICATE if the run that has the key is no fork of this run at this point with these changes. The points
    `{visit}` and `{node}` and the absent one are not compared."""
    found: RunForked | None = None
    page = await forked.history(limit=HISTORY_PAGE)
    while page and found is None:
        found = next((one for one in page if isinstance(one, RunForked) and one.from_ == run.id), None)
        page = await forked.history(page[-1].seq, HISTORY_PAGE)
    named = f"run {forked.id} has the key of this fork and"
    if found is None:
        raise HttpProblem("DUPLICATE", f"{named} is no fork of run {run.id}", remedy="use another key")
    changes = {name: value for name, value in asdict(given.changes).items() if value not in (None, {})}
    if not is_equal(found.changes or {}, changes):
        raise HttpProblem("DUPLICATE", f"{named} other changes", remedy="use another key")
    if isinstance(given.at, int) and (await run.decisions(given.at - 1, 1) or [given.at])[0] != found.point:
        raise HttpProblem("DUPLICATE", f"{named} was forked at event {found.point}", remedy="use another key")


async def edit(call: HttpCall) -> HttpAnswer:
    run, given = await require_engine(call), cast(EditGiven, call.body)
    events = await run.edit(
        given.writes, branch=given.branch, by=call.who.user, reason=given.reason, dry_run=given.dry_run
    )
    return HttpAnswer(RunChanged(**asdict(await run.detail()), dry_run=given.dry_run, events=_rows(events)))


async def skip(call: HttpCall) -> HttpAnswer:
    run, given = await require_engine(call), cast(SkipGiven, call.body)
    visit, by = call.number("visit"), call.who.user
    events = await run.skip(visit, given.output, by=by, reason=given.reason, dry_run=given.dry_run)
    return await _changed_visit(run, visit, events, given.dry_run)


async def jump(call: HttpCall) -> HttpAnswer:
    run, given = await require_engine(call), cast(JumpGiven, call.body)
    visit, by = call.number("visit"), call.who.user
    events = await run.jump(visit, given.to, by=by, reason=given.reason, dry_run=given.dry_run)
    return await _changed_visit(run, visit, events, given.dry_run)


async def set_input(call: HttpCall) -> HttpAnswer:
    run, given = await require_engine(call), cast(InputGiven, call.body)
    visit, by = call.number("visit"), call.who.user
    events = await run.set_input(visit, given.input, by=by, reason=given.reason, dry_run=given.dry_run)
    return await _changed_visit(run, visit, events, given.dry_run)


async def decisions(call: HttpCall) -> HttpAnswer:
    run, asked = run_of(call), cast(DecisionQuery, call.query)
    await run.info()
    ends = await run.decisions(asked.after, asked.limit)
    return HttpAnswer(DecisionList(ends, ends[-1] if len(ends) == asked.limit else None))


ROUTES = (
    Route(
        method="POST",
        path="/runs/{run}/fork",
        handler=fork,
        access=OPERATOR,
        about="run",
        noun="runs",
        summary="Fork a run: a new one with its past up to a point",
        description="The run itself is not touched, and need not have ended. Work that was under way at the point is"
        " done again; what had returned is not. With `dry_run` the answer is 200 and no run is made.",
        body=ForkGiven,
        answers={201: RunView, 200: ForkPlanned},
        makes={"run": "run"},
        problems=("NOT_FOUND", "INVALID_STATE", "NO_ENGINE", "SCHEMA", "DUPLICATE"),
    ),
    command(
        "edit",
        edit,
        "Write into the data of a paused or failed run",
        body=EditGiven,
        answer=RunChanged,
        more=("SCHEMA",),
    ),
    command(
        "visits/{visit}/skip", skip, "Complete a visit by hand", body=SkipGiven, answer=VisitChanged, more=("SCHEMA",)
    ),
    command("visits/{visit}/jump", jump, "End a visit and go on at another node", body=JumpGiven, answer=VisitChanged),
    command(
        "visits/{visit}/input", set_input, "Set what the next attempt is given", body=InputGiven, answer=VisitChanged
    ),
    Route(
        method="GET",
        path="/runs/{run}/decisions",
        handler=decisions,
        access=VIEWER,
        about="run",
        noun="runs",
        summary="Where the decisions about a run end: the points at which it can be looked at and forked",
        query=DecisionQuery,
        answers={200: DecisionList},
        problems=("NOT_FOUND",),
    ),
)

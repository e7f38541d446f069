"""Schedules: list, read, change, pause, fire by hand, look ahead."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from treadle.model.states import RUN_ENDED
from treadle.runtime.run import Run
from treadle.runtime.schedule.definition import CatchUp, Overlap, Schedule
from treadle.server.call import HttpAnswer, HttpCall, created
from treadle.server.paging import Limit, PageQuery
from treadle.server.problems import not_found
from treadle.server.routes import OPERATOR, VIEWER, Method, Route
from treadle.server.workflows import segment

Json = Any
LAST_RUNS = 10
"""Runs that one schedule tells; `GET /runs?tag=schedule:NAME` has all of them."""


class ScheduleRow(Struct, kw_only=True):
    """A schedule."""

    name: str
    workflow: str
    cron: str | None
    every_ms: int | None
    timezone: str
    input: dict[str, Json]
    overlap: Overlap
    catch_up: CatchUp
    jitter_ms: int
    paused: bool
    next: Annotated[int | None, Meta(description="When it is due next; null: never, or it is paused.")]


class ScheduleRun(Struct):
    """A run that a schedule has started."""

    run: str
    status: str
    started: int
    ended: int | None


class ScheduleView(ScheduleRow, kw_only=True):
    """A schedule with its newest runs."""

    last: list[ScheduleRun]


class ScheduleList(Struct):
    """Schedules by name."""

    items: list[ScheduleRow]
    next: str | None


class ScheduleGiven(Struct, kw_only=True):
    """The fields of a schedule: when, and what to start."""

    workflow: str
    cron: Annotated[str | None, Meta(description="Five fields, or @daily and the like.")] = None
    every_ms: int | None = None
    timezone: str = "UTC"
    input: dict[str, Json] = {}
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    jitter_ms: int = 0
    paused: bool = False


class Occurrence(Struct):
    """A time at which a schedule is due."""

    due: int
    starts: Annotated[int, Meta(description="The moment its run starts: `due` and its share of the jitter.")]


class OccurrenceList(Struct):
    """The next times of a schedule, soonest first."""

    items: list[Occurrence]
    next: str | None


class FiredRun(Struct):
    """The run that was started."""

    run: str
    workflow: str
    status: str


async def list_schedules(call: HttpCall) -> HttpAnswer:
    after, limit = call.cursor() or "", call.query.limit
    known = sorted(await call.client.schedules(), key=lambda each: each.name)
    rows = [each for each in known if each.name > after and call.sees(each.workflow)]
    shown = [await _row(call, each) for each in rows[:limit]]
    return HttpAnswer(ScheduleList(shown, call.next_cursor(shown[-1].name) if len(rows) > limit else None))


async def _row(call: HttpCall, schedule: Schedule) -> ScheduleRow:
    ahead = await call.client.upcoming(schedule.name, limit=1)
    fields = {name: getattr(schedule, name) for name in Schedule.__struct_fields__}
    return ScheduleRow(**fields, next=ahead[0][0] if ahead else None)


async def _view(call: HttpCall, schedule: Schedule) -> ScheduleView:
    runs = await call.client.schedule_runs(schedule.name, LAST_RUNS)
    last = [
        ScheduleRun(row.run, row.status.value, row.started, row.changed if row.status in RUN_ENDED else None)
        for row in runs
    ]
    row = await _row(call, schedule)
    return ScheduleView(**msgspec.structs.asdict(row), last=last)


async def _find(call: HttpCall) -> Schedule:
    """The schedule of the path, if the caller's key is for its workflow."""
    schedule = await call.client.schedule(call.path["schedule"])
    if not call.sees(schedule.workflow):
        raise not_found(f"schedule {schedule.name!r}")
    return schedule


async def show(call: HttpCall) -> HttpAnswer:
    return HttpAnswer(await _view(call, await _find(call)))


async def put(call: HttpCall) -> HttpAnswer:
    given: ScheduleGiven = call.body
    call.require_workflow(given.workflow)
    name = call.path["schedule"]
    known = {each.name: each for each in await call.client.schedules()}
    if name in known and not call.sees(known[name].workflow):
        raise not_found(f"schedule {name!r}")
    schedule = Schedule(name=name, **msgspec.structs.asdict(given))
    await call.client.put_schedule(schedule)
    view = await _view(call, schedule)
    return HttpAnswer(view) if name in known else created(view, f"/api/v1/schedules/{segment(name)}")


async def remove(call: HttpCall) -> HttpAnswer:
    await call.client.remove_schedule((await _find(call)).name)
    return HttpAnswer(status=204)


async def pause(call: HttpCall) -> HttpAnswer:
    return await _set_paused(call, paused=True)


async def resume(call: HttpCall) -> HttpAnswer:
    return await _set_paused(call, paused=False)


async def _set_paused(call: HttpCall, *, paused: bool) -> HttpAnswer:
    schedule = await _find(call)
    if schedule.paused != paused:
        schedule = replace(schedule, paused=paused)
        await call.client.put_schedule(schedule)
    return HttpAnswer(await _view(call, schedule))


async def fire(call: HttpCall) -> HttpAnswer:
    schedule = await _find(call)
    await call.service.require_engine()
    run: Run = await call.client.fire_schedule(
        schedule.name, by=call.who.user, key=call.request.headers.get("idempotency-key")
    )
    status = await run.status()
    return created(FiredRun(run.id, schedule.workflow, status.value), f"/api/v1/runs/{segment(run.id)}")


async def upcoming(call: HttpCall) -> HttpAnswer:
    schedule = await _find(call)
    dues = await call.client.upcoming(schedule.name, after=call.cursor(), limit=call.query.limit)
    full = len(dues) == call.query.limit
    return HttpAnswer(
        OccurrenceList([Occurrence(*each) for each in dues], call.next_cursor(dues[-1][0]) if full else None)
    )


class UpcomingQuery(Struct):
    """How many times."""

    limit: Limit = 10
    cursor: str | None = None


def _route(method: Method, path: str, handler: Any, summary: str, answers: dict[int, Any], **more: Any) -> Route:
    return Route(
        method=method,
        path=f"/schedules/{{schedule}}{path}",
        handler=handler,
        access=VIEWER if method == "GET" else OPERATOR,
        about="handler",
        noun="operating",
        summary=summary,
        answers=answers,
        problems=("NOT_FOUND", *more.pop("problems", ())),
        **more,
    )


ROUTES = (
    Route(
        method="GET",
        path="/schedules",
        handler=list_schedules,
        access=VIEWER,
        about="handler",
        noun="operating",
        summary="Schedules by name, and when each is due next",
        query=PageQuery,
        answers={200: ScheduleList},
    ),
    _route("GET", "", show, "One schedule and its newest runs", {200: ScheduleView}),
    _route(
        "PUT",
        "",
        put,
        "Create or change a schedule",
        {201: ScheduleView, 200: ScheduleView},
        body=ScheduleGiven,
        problems=("SCHEMA",),
    ),
    _route("DELETE", "", remove, "End a schedule; its runs go on", {204: None}),
    _route("POST", "/pause", pause, "Let a schedule start nothing for a while", {200: ScheduleView}),
    _route(
        "POST", "/resume", resume, "Let a schedule go on; times that passed are not made up for", {200: ScheduleView}
    ),
    _route(
        "POST",
        "/fire",
        fire,
        "Start a run of a schedule now",
        {201: FiredRun},
        problems=("NO_ENGINE",),
        description="Beside its times, whatever is running. Its overlap rule does not apply.",
    ),
    _route("GET", "/upcoming", upcoming, "The next times of a schedule", {200: OccurrenceList}, query=UpcomingQuery),
)

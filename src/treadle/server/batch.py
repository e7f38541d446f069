"""`POST /runs/batch`: one action on many runs, with a result for each.

Owns the order: the runs are fixed first (a filter is evaluated once), each is authorised by itself, then the action
goes to some at a time. A run that refuses does not stop the others. Over a stream each result is told when it is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from treadle.errors import CommandRefused
from treadle.model.commands import RetryRun
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.client import RunRow
from treadle.runtime.run import Run
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import HttpProblem, ProblemDocument, not_found, problem_of
from treadle.server.routes import OPERATOR, Route

RUNS_MAX = 10_000
AT_ONCE = 32
"""Runs that get the action at the same time: enough to share commits, too few to push others aside."""
PAGE = 1_000

BatchAction = Literal["cancel", "pause", "resume", "retry"]


class RunFilter(Struct, forbid_unknown_fields=True):
    """Which runs: every condition that is given must hold."""

    workflow: str | None = None
    version: Annotated[int, Meta(ge=1, le=1 << 40)] | None = None
    status: Annotated[list[RunStatus] | RunStatus, Meta(description="One of them.")] = []
    tag: Annotated[list[str] | str, Meta(description="All of them.")] = []
    entity: Annotated[str | None, Meta(description="TYPE/ID")] = None
    parent: str | None = None
    key: str | None = None
    started_from: int | None = None
    started_until: int | None = None
    text: Annotated[str, Meta(description="A part of id, key, tags or entity.", min_length=1)] | None = None

    @property
    def statuses(self) -> list[RunStatus]:
        return self.status if isinstance(self.status, list) else [self.status]

    @property
    def tags(self) -> list[str]:
        return self.tag if isinstance(self.tag, list) else [self.tag]


class BatchGiven(Struct):
    """An action on many runs: those named, or those that a filter finds now."""

    action: BatchAction
    runs: Annotated[list[str], Meta(max_length=RUNS_MAX)] | None = None
    filter: RunFilter | None = None
    reason: str | None = None
    dry_run: Annotated[bool, Meta(description="Only tell which runs would get the action, and which would refuse.")] = (
        False
    )


class BatchResult(Struct, omit_defaults=True):
    """The outcome for one run."""

    run: str
    ok: bool
    problem: ProblemDocument | None = None


class BatchResults(Struct):
    """The outcomes, in the order of the runs."""

    results: list[BatchResult]


async def batch(call: HttpCall) -> HttpAnswer:
    given: BatchGiven = call.body
    if (given.runs is None) == (given.filter is None):
        raise HttpProblem("BAD_REQUEST", "name `runs`, or give a `filter`", place="$", remedy="one of the two")
    if not given.dry_run:
        await call.service.require_engine()
    chosen = list(dict.fromkeys(given.runs)) if given.runs is not None else await _found(call, given.filter)
    if "text/event-stream" in call.request.headers.get("accept", ""):
        return HttpAnswer(response=_stream(call, given, chosen))
    results = [result async for result in _results(call, given, chosen)]
    return HttpAnswer(BatchResults(results))


async def _found(call: HttpCall, asked: RunFilter | None) -> list[str]:
    assert asked is not None
    return [row.run for row in await found_runs(call, asked)]


async def found_runs(call: HttpCall, asked: RunFilter) -> list[RunRow]:
    """The runs of a filter as they are now, newest first. What happens to them meanwhile does not change the list."""
    found: list[RunRow] = []
    after: str | None = None
    while True:
        rows = await call.client.runs(
            workflow=asked.workflow,
            version=asked.version,
            statuses=asked.statuses,
            tags=asked.tags,
            entity=asked.entity,
            parent=asked.parent,
            key=asked.key,
            started_from=asked.started_from,
            started_until=asked.started_until,
            text=asked.text,
            after=after,
            limit=PAGE,
        )
        found += [row for row in rows if call.sees(row.workflow)]
        if len(found) > RUNS_MAX:
            raise HttpProblem(
                "BAD_REQUEST",
                f"the filter finds more than {RUNS_MAX} runs",
                place="$.filter",
                remedy="narrow it, for example by started_until",
            )
        if len(rows) < PAGE:
            return found
        after = rows[-1].run


async def _results(call: HttpCall, given: BatchGiven, chosen: Sequence[str]) -> AsyncIterator[BatchResult]:
    """The results in the order of the runs; some are under way at a time."""
    waiting: list[asyncio.Task[BatchResult]] = []
    todo = iter(chosen)
    try:
        while True:
            while len(waiting) < AT_ONCE and (run := next(todo, None)) is not None:
                waiting.append(asyncio.ensure_future(_result(call, given, run)))
            if not waiting:
                return
            yield await waiting[0]
            del waiting[0]
    finally:
        for task in waiting:
            task.cancel()


async def _result(call: HttpCall, given: BatchGiven, name: str) -> BatchResult:
    run = call.client.run(name)
    try:
        row = await run.info()
        if not call.sees(row.workflow):
            raise not_found(f"run {name!r}")
        if given.dry_run:
            _would_refuse(given.action, name, row.status)
            if given.action == "retry":  # whether something has failed and can be taken back, its history tells
                await run.preview(RetryRun(call.who.user))
        else:
            await _ACTIONS[given.action](run, given.reason, call.who.user)
    except Exception as raised:
        problem = problem_of(raised)
        if problem is None or problem.status >= 500:
            raise
        if problem.status == 404:
            problem = not_found(f"run {name!r}")
        return BatchResult(name, False, problem.document(call.request_id))
    return BatchResult(name, True)


async def _cancel(run: Run, reason: str | None, by: str) -> None:
    await run.cancel(reason, by=by)


async def _pause(run: Run, reason: str | None, by: str) -> None:
    await run.pause(reason, by=by, strict=True)


async def _resume(run: Run, _reason: str | None, by: str) -> None:
    await run.resume(by=by, strict=True)


async def _retry(run: Run, _reason: str | None, by: str) -> None:
    await run.retry(by=by)


_ACTIONS: dict[BatchAction, Any] = {"cancel": _cancel, "pause": _pause, "resume": _resume, "retry": _retry}
_FITTING: dict[BatchAction, frozenset[RunStatus]] = {
    "cancel": frozenset(RunStatus),
    "pause": frozenset({RunStatus.RUNNING}),
    "resume": frozenset({RunStatus.PAUSED, RunStatus.COMPENSATION_FAILED}),
    "retry": frozenset(RUN_ENDED | {RunStatus.RUNNING, RunStatus.PAUSED}) - {RunStatus.COMPLETED, RunStatus.CANCELLED},
}
"""Statuses in which an action may be accepted: a dry run looks at them. The run itself decides; of a retry it is
asked."""


def _would_refuse(action: BatchAction, run: str, status: RunStatus) -> None:
    if status not in _FITTING[action]:
        raise CommandRefused("INVALID_STATE", f"run {run} is {status}")


def _stream(call: HttpCall, given: BatchGiven, chosen: Sequence[str]) -> Any:
    from sse_starlette import EventSourceResponse

    async def messages() -> AsyncIterator[dict[str, str]]:
        done = failed = 0
        async for result in _results(call, given, chosen):
            done, failed = done + 1, failed + (not result.ok)
            yield {"event": "result", "data": msgspec.json.encode(result).decode()}
        yield {"event": "end", "data": msgspec.json.encode({"runs": done, "refused": failed}).decode()}

    return EventSourceResponse(messages(), ping=15, headers={"cache-control": "no-store"})


ROUTES = (
    Route(
        method="POST",
        path="/runs/batch",
        handler=batch,
        access=OPERATOR,
        about="handler",
        noun="runs",
        summary="One action on many runs",
        description="A filter is evaluated once, before the first action. Each run answers for itself. With `Accept: "
        "text/event-stream` every result is an event `result`, the last event is `end`.",
        body=BatchGiven,
        answers={200: BatchResults},
        other_types=("text/event-stream",),
        problems=("NO_ENGINE",),
        streams=True,
    ),
)

"""`POST /migrations`: other versions for runs, with a result for each (6.5).

Owns the address and the order, as `batch` does: the runs are fixed first, each is authorised by itself, and one that
refuses does not stop the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from treadle.errors import CommandRefused, EngineStopped
from treadle.runtime.client import MIGRATABLE, Migration
from treadle.server.batch import RUNS_MAX, RunFilter, found_runs
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import HttpProblem, ProblemDocument, not_found, problem_of
from treadle.server.routes import OPERATOR, Route

Name = Annotated[str, Meta(min_length=1, max_length=500)]


class MigrationGiven(Struct):
    """Runs that go on under another version: those named, or those that a filter finds now."""

    to: Annotated[int, Meta(ge=1, le=1 << 40, description="The version, of each run's workflow.")]
    runs: Annotated[list[str], Meta(max_length=RUNS_MAX)] | None = None
    filter: RunFilter | None = None
    nodes: Annotated[
        dict[Name, Name], Meta(description="Nodes of the run's version → the nodes that take their place.")
    ] = {}
    dry_run: Annotated[bool, Meta(description="Only tell what is in the way; nothing changes.")] = False


class MigrationResult(Struct, omit_defaults=True):
    """The outcome for one run."""

    run: str
    ok: bool
    outcome: Annotated[str, Meta(description="migrated, possible (a dry run), unchanged or refused.")]
    problem: Annotated[
        ProblemDocument | None, Meta(description="Why not. `problems` lists everything in the way, an entry each.")
    ] = None


class MigrationResults(Struct):
    """The outcomes, in the order of the runs."""

    results: list[MigrationResult]


async def migrate(call: HttpCall) -> HttpAnswer:
    given: MigrationGiven = call.body
    if (given.runs is None) == (given.filter is None):
        raise HttpProblem("BAD_REQUEST", "name `runs`, or give a `filter`", place="$", remedy="one of the two")
    if given.filter is not None and given.filter.workflow is None:
        text = "a filter of runs to be migrated names a workflow: versions are numbered by workflow"
        raise HttpProblem("BAD_REQUEST", text, place="$.filter.workflow")
    await call.service.require_engine()
    chosen = list(dict.fromkeys(given.runs)) if given.runs is not None else await _found(call, given)
    seen = [run for run in chosen if await _is_seen(call, run)]
    reports = await call.client.migrate(seen, given.to, given.nodes, dry_run=given.dry_run, by=call.who.user)
    for report in reports:
        if report.outcome == "kept":  # it may still be carried out: no answer about it could be kept
            raise EngineStopped(report.message or "")
    known = {report.run: report for report in reports}
    return HttpAnswer(MigrationResults([_result(call, run, known.get(run)) for run in chosen]))  # type: ignore[call-overload]


async def _found(call: HttpCall, given: MigrationGiven) -> Sequence[str]:
    """The runs of a filter that are not over, without those that have the version already."""
    assert given.filter is not None
    rows = await found_runs(call, given.filter)
    wanted = {str(status) for status in given.filter.statuses} or set(MIGRATABLE)
    return [row.run for row in rows if row.status.value in wanted and row.version != given.to]


async def _is_seen(call: HttpCall, run: str) -> bool:
    try:
        return call.sees((await call.client.run(run).info()).workflow)
    except CommandRefused:
        return False


def _result(call: HttpCall, run: str, report: Migration | None) -> MigrationResult:
    if report is None:
        return MigrationResult(run, False, "refused", not_found(f"run {run!r}").document(call.request_id))
    if report.kind is None:
        return MigrationResult(run, True, report.outcome)
    problem = problem_of(CommandRefused(report.kind, report.message or "", report.obstacles))
    assert problem is not None
    return MigrationResult(run, False, "refused", problem.document(call.request_id))


ROUTES = (
    Route(
        method="POST",
        path="/migrations",
        handler=migrate,
        access=OPERATOR,
        about="handler",
        noun="runs",
        summary="Let runs go on under another version of their workflow",
        description="A plan is made for each run. If anything is in the way, the run is refused with a list of all of "
        "it and stays as it is. A filter is evaluated once, and finds runs that are running, paused, queued or failed.",
        body=MigrationGiven,
        answers={200: MigrationResults},
        problems=("NO_ENGINE",),
    ),
)

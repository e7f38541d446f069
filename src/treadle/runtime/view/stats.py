"""Figures of a workflow: visits, failures, retries, waiting and work, by node and transition. Pure.

Owns the summary of one run and how summaries add up. A summary of a run at a sequence number never changes, so it is
kept; it is small, because of a part that is visited very often only every n-th visit's times are kept, in order of
size, which leaves the percentiles where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from treadle.model.states import TokenState
from treadle.runtime.view.visit_log import VisitLog, VisitRecord

SAMPLES_MAX = 200
"""Times kept of one node in one run."""
_FAILED = (TokenState.FAILED, TokenState.TIMED_OUT)


class PartSummary(Struct):
    """One node or transition in one run."""

    visits: int = 0
    failures: int = 0
    retries: int = 0
    cost: float = 0.0
    waits: list[int] = []
    works: list[int] = []

    def add(self, visit: VisitRecord) -> None:
        self.visits += 1
        self.failures += visit.status in _FAILED
        self.retries += visit.retries
        self.cost += visit.cost
        if not visit.live:
            self.waits.append(visit.spent.queue_ms + visit.spent.wait_ms)
            self.works.append(visit.spent.run_ms)


class RunSummary(Struct):
    """One run."""

    duration_ms: int | None
    """None: it has not ended."""
    cost: float
    nodes: dict[str, PartSummary]
    transitions: dict[str, PartSummary]


class PartStats(Struct, frozen=True):
    """Figures of a node, or of the visits that a transition led to. A percentile is null where nothing has ended."""

    ref: str
    visits: int
    failures: int
    retries: int
    wait_p50_ms: int | None
    wait_p95_ms: int | None
    work_p50_ms: int | None
    work_p95_ms: int | None
    cost: float


class WorkflowStats(Struct, frozen=True):
    """Figures of a workflow."""

    workflow: str
    since: int | None
    runs: dict[str, int]
    """Runs by status: all of them."""
    duration_p50_ms: int | None
    duration_p95_ms: int | None
    cost: float
    counted: int
    """Runs whose histories the other figures are made of: the newest ones."""
    complete: bool
    """Whether these are all runs since then."""
    nodes: list[PartStats]
    transitions: list[PartStats]


def summary_of(log: VisitLog, duration_ms: int | None) -> RunSummary:
    """A run's figures."""
    nodes: dict[str, PartSummary] = {}
    transitions: dict[str, PartSummary] = {}
    for visit in log.visits.values():
        if visit.inherited:
            continue
        name = f"compensate({visit.node})" if visit.compensation else visit.node
        nodes.setdefault(name, PartSummary()).add(visit)
        if visit.via is not None:
            transitions.setdefault(visit.via, PartSummary()).add(visit)
    for part in (*nodes.values(), *transitions.values()):
        part.waits, part.works = _thinned(part.waits), _thinned(part.works)
    return RunSummary(duration_ms, sum(part.cost for part in nodes.values()), nodes, transitions)


def _thinned(times: list[int]) -> list[int]:
    ordered = sorted(times)
    if len(ordered) <= SAMPLES_MAX:
        return ordered
    return [ordered[(2 * n + 1) * len(ordered) // (2 * SAMPLES_MAX)] for n in range(SAMPLES_MAX)]


def stats_of(
    workflow: str, since: int | None, runs: dict[str, int], summaries: Sequence[RunSummary], *, complete: bool
) -> WorkflowStats:
    """The figures of many runs."""
    durations = sorted(one.duration_ms for one in summaries if one.duration_ms is not None)
    return WorkflowStats(
        workflow=workflow,
        since=since,
        runs=runs,
        duration_p50_ms=percentile(durations, 50),
        duration_p95_ms=percentile(durations, 95),
        cost=sum(one.cost for one in summaries),
        counted=len(summaries),
        complete=complete,
        nodes=_added(one.nodes for one in summaries),
        transitions=_added(one.transitions for one in summaries),
    )


def _added(parts: Iterable[dict[str, PartSummary]]) -> list[PartStats]:
    found: dict[str, PartSummary] = {}
    for summary in parts:
        for ref, part in summary.items():
            total = found.setdefault(ref, PartSummary())
            total.visits += part.visits
            total.failures += part.failures
            total.retries += part.retries
            total.cost += part.cost
            total.waits.extend(part.waits)
            total.works.extend(part.works)
    return [_part(ref, part) for ref, part in sorted(found.items())]


def _part(ref: str, part: PartSummary) -> PartStats:
    waits, works = sorted(part.waits), sorted(part.works)
    return PartStats(
        ref=ref,
        visits=part.visits,
        failures=part.failures,
        retries=part.retries,
        wait_p50_ms=percentile(waits, 50),
        wait_p95_ms=percentile(waits, 95),
        work_p50_ms=percentile(works, 50),
        work_p95_ms=percentile(works, 95),
        cost=part.cost,
    )


def percentile(ordered: Sequence[int], percent: int) -> int | None:
    """The smallest value that so many percent do not exceed; None of nothing."""
    if not ordered:
        return None
    return ordered[max(-(-len(ordered) * percent // 100) - 1, 0)]

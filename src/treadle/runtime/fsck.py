"""Checks a whole store against what its histories say: the invariant checker over a database.

For every run: the history has no gap, folds without an error, and leads to the status, sequence number and version its
row has; the folded state violates no invariant (`kernel.invariants`); timers and gates are rows exactly where the state
has them; rows of the outbox belong to runs that exist. Runs are taken a page at a time and one is in memory at once, so
the cost is that of the largest run. A run that changes while it is looked at (an engine is working) is read again; what
still disagrees then is a finding.

Owns the comparison. Must not repair: whoever finds something needs the evidence.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct

from treadle.errors import InvalidTransition
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.evolve import replay
from treadle.kernel.invariants import violations
from treadle.kernel.lifecycle import LIVE
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.effects import OpenGate, RunTask
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.states import GateState, RunStatus
from treadle.runtime.library import KIND, Library
from treadle.store.port import OutboxRow, RunQuery, RunRow, Store

PAGE = 5_000
"""Runs compared with one reading of the rows beside them."""
ROWS = 10_000
LOOKS = 5
"""How often a run that seems wrong and has changed meanwhile is read again: its owner is at work on it."""

Progress = Callable[[int], None]
"""Told how many runs have been checked."""
GraphOf = Callable[[str, int], Awaitable[ExecutionGraph | None]]


class Finding(Struct, frozen=True):
    """One thing that does not agree."""

    run: RunId | None
    check: str
    """gap | replay | row | invariant | timer | gate | outbox | document | file"""
    message: str


class Report(Struct):
    """What was looked at and what was found."""

    runs: int = 0
    events: int = 0
    timers: int = 0
    gates: int = 0
    outbox: int = 0
    trimmed: int = 0
    """Finished runs of which only the first and last event are kept: nothing to fold."""
    findings: list[Finding] = []

    @property
    def ok(self) -> bool:
        return not self.findings


class _Rows(Struct):
    """What the store keeps beside the histories, by run."""

    timers: dict[RunId, dict[TimerId, int]]
    gates: dict[RunId, set[TokenId]]
    outbox: dict[RunId, list[OutboxRow]]


async def check_store(
    store: Store, shard: int = 0, *, progress: Progress | None = None, findings_max: int = 1_000
) -> Report:
    """Everything that is wrong with a store, up to `findings_max`."""
    report = Report(findings=[])
    library = Library(store)
    report.findings += await _documents(store)
    known: set[RunId] = set()
    query = RunQuery(limit=PAGE)
    while page := await store.find_runs(query):
        rows = await _rows(store, shard, [row.run for row in page])
        for row in page:
            known.add(row.run)
            report.findings += await _check_run(store, library.graph, row, rows, shard, report)
            report.runs += 1
            if progress is not None:
                progress(report.runs)
            if len(report.findings) >= findings_max:
                return report
        query = RunQuery(after=page[-1].run, limit=PAGE)
    report.findings += await _strays(store, shard, known, report)
    return report


async def _documents(store: Store) -> list[Finding]:
    library = Library(store)
    found = []
    for document in await store.documents(KIND):
        try:
            await library.graph(document.name, document.version)
        except Exception as problem:  # whatever a document that cannot be compiled raises is the finding
            found.append(Finding(None, "document", f"workflow {document.name!r} v{document.version}: {problem}"))
    return found


async def _check_run(
    store: Store, graph_of: GraphOf, row: RunRow, rows: _Rows, shard: int, report: Report
) -> list[Finding]:
    history = await store.history(row.run)
    report.events += len(history)
    if _is_trimmed(row, history):
        report.trimmed += 1
        return []
    if not await _compare(graph_of, row, history, rows):
        return []
    for _ in range(LOOKS):
        before = await store.find_runs(RunQuery(run=row.run))
        rows, history = await _rows(store, shard, [row.run]), await store.history(row.run)
        after = await store.find_runs(RunQuery(run=row.run))
        if not after:
            return []  # forgotten meanwhile
        if before == after:
            return [] if _is_trimmed(after[0], history) else await _compare(graph_of, after[0], history, rows)
    # It never stands still: its history up to the row must still lead to the row; what is beside it cannot be judged.
    return await _compare(graph_of, before[0], history[: before[0].seq], None)


async def _compare(graph_of: GraphOf, row: RunRow, history: Sequence[e.Event], rows: _Rows | None) -> list[Finding]:
    if not history or not isinstance(history[0], e.RunStarted):
        return [Finding(row.run, "gap", "its history does not begin with run.started")]
    for position, event in enumerate(history, 1):
        if event.seq != position:
            return [Finding(row.run, "gap", f"event {position} of its history has number {event.seq}")]
    graph = await graph_of(row.workflow, row.version)
    if graph is None:
        return [Finding(row.run, "document", f"workflow {row.workflow!r} v{row.version} is gone")]
    try:
        state = replay(graph, history)
    except (InvalidTransition, AssertionError, LookupError, TypeError, ValueError, AttributeError) as problem:
        return [Finding(row.run, "replay", f"its history does not fold: {type(problem).__name__}: {problem}")]
    found = [Finding(row.run, "row", message) for message in _row(row, history, state)]
    found += [Finding(row.run, "invariant", message) for message in violations(graph, state)]
    if rows is None:
        return found
    found += [Finding(row.run, "timer", message) for message in _timers(state, rows.timers.get(row.run, {}))]
    found += [Finding(row.run, "gate", message) for message in _gates(state, rows.gates.get(row.run, set()))]
    found += [Finding(row.run, "outbox", message) for message in _outbox(state, rows.outbox.get(row.run, []))]
    return found


def _is_trimmed(row: RunRow, history: Sequence[e.Event]) -> bool:
    """Retention keeps a finished run's first and last event."""
    return 0 < len(history) <= 2 < row.seq and history[0].seq == 1 and history[-1].seq in (1, row.seq)


def _row(row: RunRow, history: Sequence[e.Event], state: RunState) -> list[str]:
    started = history[0]
    assert isinstance(started, e.RunStarted)
    pairs: list[tuple[str, Any, Any]] = [
        ("run", row.run, started.run),
        ("workflow", row.workflow, started.workflow),
        ("version", row.version, started.version),
        ("seq", row.seq, state.seq),
        ("status", row.status, state.status),
        ("started", row.started, started.at),
        ("changed", row.changed, history[-1].at),
        ("idempotency_key", row.idempotency_key, started.idempotency_key),
        ("tags", tuple(row.tags), tuple(started.tags)),
        ("entity", row.entity, started.entity.id if started.entity is not None else None),
        ("parent", row.parent, started.parent.run if started.parent is not None else None),
    ]
    return [f"its row says {name} {kept!r}, its history {told!r}" for name, kept, told in pairs if kept != told]


def _timers(state: RunState, rows: dict[TimerId, int]) -> list[str]:
    """A paused run's timers stand still: the store does not give them, so only the ones it gives are compared."""
    wanted = {timer.id: timer.due for timer in state.timers.values()}
    if state.status is RunStatus.PAUSED:
        return [f"timer {timer} is a row and unknown to the run" for timer in rows if timer not in wanted]
    missing = [f"timer {timer} has no row" for timer in wanted if timer not in rows]
    extra = [f"timer {timer} is a row and unknown to the run" for timer in rows if timer not in wanted]
    moved = [
        f"timer {timer} is due {due}, its row says {rows[timer]}"
        for timer, due in wanted.items()
        if timer in rows and rows[timer] != due
    ]
    return missing + extra + moved


def _gates(state: RunState, rows: set[TokenId]) -> list[str]:
    wanted = {token.id for token in state.tokens.values() if token.gate is GateState.OPEN and token.state in LIVE}
    return [f"the open gate of visit {token} has no row" for token in sorted(wanted - rows)] + [
        f"there is a gate for visit {token}, which has none open" for token in sorted(rows - wanted)
    ]


def _outbox(state: RunState, rows: list[OutboxRow]) -> list[str]:
    """A row may be a moment behind its run (a stopped task, a closed gate), never ahead of it."""
    found = []
    for row in rows:
        token = getattr(row.effect, "token", None)
        if isinstance(row.effect, RunTask | OpenGate) and token is not None and token > state.last_token:
            found.append(f"outbox row {row.id} is about visit {token}, which was never created")
    return found


async def _rows(store: Store, shard: int, runs: list[RunId]) -> _Rows:
    """What is kept beside these runs' histories."""
    wanted = set(runs)
    timers: dict[RunId, dict[TimerId, int]] = {}
    for timer in await store.timers(shard, limit=1_000_000):
        if timer.run in wanted:
            timers.setdefault(timer.run, {})[timer.timer] = timer.due
    gates = {run: {gate.token for gate in await store.find_gates(run, ROWS)} for run in runs}
    outbox: dict[RunId, list[OutboxRow]] = {}
    for parked in (False, True):
        after = 0
        while page := await store.outbox(shard, after, ROWS, parked):
            for row in page:
                if row.run in wanted:
                    outbox.setdefault(row.run, []).append(row)
            after = page[-1].id
    return _Rows(timers, gates, outbox)


async def _strays(store: Store, shard: int, known: set[RunId], report: Report) -> list[Finding]:
    """Rows of runs that do not exist."""
    found = []
    timers = await store.timers(shard, limit=1_000_000)
    report.timers = len(timers)
    found += [Finding(t.run, "timer", f"timer {t.timer} belongs to no run") for t in timers if t.run not in known]
    gates = await store.find_gates(limit=1_000_000)
    report.gates = len(gates)
    found += [
        Finding(g.run, "gate", f"the gate of visit {g.token} belongs to no run") for g in gates if g.run not in known
    ]
    after = 0
    while page := await store.outbox(shard, after, ROWS):
        report.outbox += len(page)
        found += [Finding(r.run, "outbox", f"row {r.id} belongs to no run") for r in page if r.run not in known]
        after = page[-1].id
    missing = {finding.run for finding in found if finding.run is not None}
    born = {run for run in missing if await store.find_runs(RunQuery(run=run))}  # while we were looking
    return [finding for finding in found if finding.run not in born]

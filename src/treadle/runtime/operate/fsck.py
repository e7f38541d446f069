"""Checks a whole store against its histories: the invariant checker over a database.

First every checksum is compared (`store.seals`). Then for every run: the history can be read, has no gap, folds without
an error, and leads to the status, sequence number and version of its row; the folded state violates no invariant
(`kernel.invariants`); timers and gates have rows exactly where the state has them. Runs are read a page at a time with
their rows, and only a few histories are in memory at once, so the memory needed is that of the largest runs. A run that
changes while it is read (an engine is working) is read again; a difference that remains is a finding.

Owns the comparison. Must not repair: the evidence is needed to find the cause.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from treadle.errors import InvalidTransition, StoreDamaged
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.evolve import replay
from treadle.kernel.invariants import violations
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.references import spellings_of
from treadle.runtime.coordinate.library import KIND, Library
from treadle.runtime.operate.fsck_rows import item_problems, move_problems, outbox_problems, timer_problems
from treadle.runtime.operate.gate_rows import gate_problems
from treadle.store.port import RunQuery, RunRow, Store
from treadle.store.service import CHAINED, LogCheckableStore
from treadle.store.transfer import Beside, CheckableStore

CIRCLES_MAX = 3
"""How often a page may begin with the same run: runs may be dropped while they are listed, once or twice."""
PAGE = 200
"""Runs compared with one reading of their rows, all of which are in memory at once."""
AT_ONCE = 8
"""Histories in memory at once. A database answers so many questions almost as fast as one."""
LOOKS = 5
"""How often a run is read again if it seems wrong and has changed meanwhile: its owner is working on it."""

Progress = Callable[[int], None]
"""Called with the number of runs checked so far."""
GraphOf = Callable[[Sequence[e.Event]], Awaitable[ExecutionGraph | None]]


class Finding(Struct, frozen=True):
    """One disagreement."""

    run: RunId | None
    check: str
    """checksum | gap | replay | row | invariant | timer | gate | outbox | move | document | log | order | file"""
    message: str


class Report(Struct):
    """The figures of a check, and its findings."""

    runs: int = 0
    events: int = 0
    timers: int = 0
    gates: int = 0
    outbox: int = 0
    moves: int = 0
    trimmed: int = 0
    """Finished runs whose history was trimmed to the first and last event: they cannot be folded."""
    sealed: int = 0
    """Values whose checksum was compared."""
    unsealed: int = 0
    """Values written before there were checksums."""
    findings: list[Finding] = []

    @property
    def ok(self) -> bool:
        return not self.findings


async def check_store(store: Store, *, progress: Progress | None = None, findings_max: int = 1_000) -> Report:
    """Every problem of a store, up to `findings_max`. Rows of runs that do not exist are found by the store's own
    `integrity`."""
    assert isinstance(store, CheckableStore), "every store has them"
    checking = _Checking(store, store, Report(findings=[]))
    report = checking.report
    seals = await store.seals()
    report.sealed, report.unsealed = seals.sealed, seals.unsealed
    report.findings += [damaged(problem) for problem in seals.damaged[:findings_max]]
    report.findings += [one for one in await _documents(store) if one not in report.findings] + await _logs(store)
    async for page in _pages(store, report):
        beside = await checking.beside([row.run for row in page])
        for some in _some(page):
            histories = await asyncio.gather(*(checking.history(row.run) for row in some))
            for row, history in zip(some, histories, strict=True):
                found = await checking.run(row, history, beside)
                report.findings += [finding for finding in found if finding not in report.findings]
            report.runs += len(some)
            if progress is not None:
                progress(report.runs)
            if len(report.findings) >= findings_max:
                return report
    return report


async def _pages(store: Store, report: Report) -> AsyncIterator[list[RunRow]]:
    """Every run that exists now, in the order of creation. The listing ends after the newest of them, or it would never
    end beside a busy engine; a page of the newest is remembered, because some may be dropped before. In a damaged file
    the listing may go in a circle."""
    begun: Counter[RunId] = Counter()
    ends = {row.run for row in await store.find_runs(RunQuery(newest_first=True, limit=PAGE))}
    page = await store.find_runs(RunQuery(limit=PAGE))
    has_met_end = False
    while page:
        is_end = any(row.run in ends for row in page)
        if has_met_end and not is_end:
            return
        has_met_end |= is_end
        begun[page[0].run] += 1
        if begun[page[0].run] > CIRCLES_MAX:
            text = "its runs cannot be listed to the end: it leads in a circle, or they are forgotten faster than read"
            report.findings.append(Finding(None, "order", text))
            return
        yield page
        page = await _behind(store, page)


async def _behind(store: Store, seen: list[RunRow]) -> list[RunRow]:
    """The next page. If the last run was dropped meanwhile, no page follows it: then the page begins after an earlier
    run."""
    for row in reversed(seen):
        page = await store.find_runs(RunQuery(after=row.run, limit=PAGE))
        if page or await store.find_runs(RunQuery(run=row.run)):
            known = {one.run for one in seen}
            return [one for one in page if one.run not in known]
    return await store.find_runs(RunQuery(limit=PAGE))


async def _documents(store: Store) -> list[Finding]:
    library = Library(store)
    found = []
    for document in await store.documents(KIND):
        try:
            await library.graph(document.name, document.version)
        except StoreDamaged as problem:
            found.append(damaged(problem))
        except Exception as problem:  # every exception of a document that cannot be compiled is a finding
            found.append(Finding(None, "document", f"workflow {document.name!r} v{document.version}: {problem}"))
    return found


async def _logs(store: Store) -> list[Finding]:
    """Chained logs whose entries do not lead to their head."""
    verdicts = [await store.verify_log(log) for log in sorted(CHAINED)] if isinstance(store, LogCheckableStore) else []
    return [Finding(None, "log", f"{verdict.log}: {problem}") for verdict in verdicts for problem in verdict.problems]


def damaged(problem: StoreDamaged) -> Finding:
    """A row whose checksum does not match, without the place: the store has two names for it, a damage is told once."""
    text = f"damaged ({problem.where}): its checksum does not match"
    return Finding(RunId(problem.run) if problem.run is not None else None, "checksum", text)


def _some(page: list[RunRow]) -> Iterator[list[RunRow]]:
    return (page[start : start + AT_ONCE] for start in range(0, len(page), AT_ONCE))


class _Checking:
    """One check of a whole store."""

    def __init__(self, store: Store, rows: CheckableStore, report: Report) -> None:
        self._store = store
        self._rows = rows
        self._graph_of = Library(store).graph_of
        self.report = report

    async def beside(self, runs: list[RunId]) -> Beside:
        """The rows kept beside the histories of these runs."""
        found = await self._rows.beside(runs)
        self.report.timers += sum(len(timers) for timers in found.timers.values())
        self.report.gates += sum(len(gates) for gates in found.gates.values())
        self.report.outbox += sum(len(rows) for rows in found.outbox.values())
        self.report.moves += sum(len(rows) for rows in found.moves.values())
        return found

    async def history(self, run: RunId) -> list[e.Event] | Finding:
        """A run's history, or a finding if it cannot be read."""
        try:
            return await self._store.history(run)
        except StoreDamaged as problem:
            return damaged(problem)
        except (msgspec.DecodeError, ValueError) as problem:
            return Finding(run, "replay", f"its history cannot be read: {problem}")

    async def run(self, row: RunRow, history: list[e.Event] | Finding, beside: Beside) -> list[Finding]:
        """The findings of one run."""
        if isinstance(history, Finding):
            return [history]
        self.report.events += len(history)
        if _is_trimmed(row, history):
            self.report.trimmed += 1
            return [Finding(row.run, "row", message) for message in _row(row, history)]
        if not await _compare(self._graph_of, row, history, beside):
            return []
        for _ in range(LOOKS):
            before = await self._store.find_runs(RunQuery(run=row.run))
            beside, history = await self._rows.beside([row.run]), await self.history(row.run)
            if isinstance(history, Finding):
                return [history]
            after = await self._store.find_runs(RunQuery(run=row.run))
            if not after:
                return []  # dropped meanwhile
            if before == after:
                if _is_trimmed(after[0], history):
                    return [Finding(row.run, "row", message) for message in _row(after[0], history)]
                return await _compare(self._graph_of, after[0], history, beside)
        # It keeps changing: its history up to the row must lead to the row; its other rows cannot be judged.
        return await _compare(self._graph_of, before[0], history[: before[0].seq], None)


async def _compare(graph_of: GraphOf, row: RunRow, history: Sequence[e.Event], rows: Beside | None) -> list[Finding]:
    if not history or not isinstance(history[0], e.Beginning):
        return [Finding(row.run, "gap", "its history does not begin with run.started")]
    for position, event in enumerate(history, 1):
        if event.seq != position:
            return [Finding(row.run, "gap", f"event {position} of its history has number {event.seq}")]
    try:
        graph = await graph_of(history)
    except StoreDamaged as problem:
        return [damaged(problem)]
    if graph is None:
        return [Finding(row.run, "document", f"workflow {row.workflow!r} v{history[0].version} is gone")]
    try:
        state = replay(graph, history)
    except (InvalidTransition, AssertionError, LookupError, TypeError, ValueError, AttributeError) as problem:
        return [Finding(row.run, "replay", f"its history does not fold: {type(problem).__name__}: {problem}")]
    found = [Finding(row.run, "row", message) for message in _row(row, history)]
    if row.status is not state.status:
        found.append(Finding(row.run, "row", f"its row says status {row.status!r}, its history {state.status!r}"))
    found += [Finding(row.run, "invariant", message) for message in violations(state.graph, state)]
    if rows is None:
        return found
    found += [Finding(row.run, "timer", message) for message in timer_problems(state, rows.timers.get(row.run, {}))]
    found += [Finding(row.run, "gate", message) for message in gate_problems(state, rows.gates.get(row.run, {}))]
    found += [Finding(row.run, "outbox", message) for message in outbox_problems(state, rows.outbox.get(row.run, []))]
    found += [Finding(row.run, "item", message) for message in item_problems(history, rows.items.get(row.run, {}))]
    found += [Finding(row.run, "move", message) for message in move_problems(history, rows.moves.get(row.run, []))]
    return found


def _is_trimmed(row: RunRow, history: Sequence[e.Event]) -> bool:
    """Retention keeps a finished run's first and last event."""
    return 0 < len(history) <= 2 < row.seq and history[0].seq == 1 and history[-1].seq in (1, row.seq)


def _row(row: RunRow, history: Sequence[e.Event]) -> list[str]:
    """The differences between a row and its first and last event."""
    started = history[0]
    assert isinstance(started, e.Beginning)
    pairs: list[tuple[str, Any, Any]] = [
        ("run", row.run, started.run),
        ("workflow", row.workflow, started.workflow),
        ("version", row.version, _version(row, history, started)),
        ("seq", row.seq, history[-1].seq),
        ("started", row.started, _began(row, history, started)),
        ("changed", row.changed, history[-1].at),
        ("idempotency_key", row.idempotency_key, started.idempotency_key),
        ("tags", tuple(row.tags), tuple(started.tags)),
        ("entity", row.entity, _entity(row, started)),
        ("parent", row.parent, started.parent.run if started.parent is not None else None),
    ]
    return [f"its row says {name} {kept!r}, its history {told!r}" for name, kept, told in pairs if kept != told]


def _began(row: RunRow, history: Sequence[e.Event], started: e.Beginning) -> int:
    """When the run began: a fork began when it was forked, later than its inherited first event. A shortened history
    does not tell."""
    if _is_trimmed(row, history) and row.started > started.at:
        return row.started
    return next((event.at for event in reversed(history) if isinstance(event, e.RunForked)), started.at)


def _version(row: RunRow, history: Sequence[e.Event], started: e.Beginning) -> int:
    """The version the row should have: the one the run was migrated to last. A shortened history does not tell."""
    if _is_trimmed(row, history):
        return row.version
    return next((event.to for event in reversed(history) if isinstance(event, e.RunMigrated)), started.version)


def _entity(row: RunRow, started: e.Beginning) -> str | None:
    """The name of the entity that the row should have."""
    if started.entity is None:
        return None
    address = started.entity.address
    return row.entity if row.entity in spellings_of(address) else address

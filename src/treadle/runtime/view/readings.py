"""Runs that are being looked at: the fold of each history, kept for a while and continued with what was written since.

Owns the folds for readers. A run that somebody watches is asked for again and again; its history may have a million
events. So a reading is kept and only new events are added to it. The coordinator's own state is never shown: it
contains decisions that are not durable yet.

Promises
 1. A reading is exactly the fold of the committed events up to its `seq`; it never goes backwards.
 2. The event loop is never kept for longer than one slice of events.
 3. Memory is bounded by the number of events that the kept readings have folded.
Must not be used to decide: deciding is the coordinator's.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from treadle.errors import CommandRefused
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.evolve import evolve
from treadle.kernel.renaming import Renaming
from treadle.kernel.state import RunState
from treadle.model.events import Beginning, Event, RunMigrated, RunStarted
from treadle.model.ids import RunId
from treadle.model.states import TokenState
from treadle.runtime.coordinate.folding import fold
from treadle.runtime.coordinate.library import Library
from treadle.runtime.view.stats import RunSummary, summary_of
from treadle.runtime.view.visit_log import VisitLog, VisitRecord
from treadle.runtime.view.ways import WayLog
from treadle.store.port import RunQuery, RunRow, Store

SLICE = 500
"""Events folded at a time: some 5 ms, for which nothing else happens on the loop."""
READ = 5_000
"""Events read at a time: each reading is a change of threads, which costs more than opening 500 events."""
READINGS_MAX = 64
"""Runs kept. A person looks at a few at a time."""
EVENTS_MAX = 2_000_000
"""Events that all kept readings together have folded; a visit of some six events takes about 1 KB."""
PASTS_MAX = 8
"""States at a point in the past that are kept, so that the next point is reached from there: somebody plays a run."""

SUMMARIES_MAX = 5_000
"""Figures of runs that are kept: of a run at a sequence number they never change. Some 2 KB each."""


class RunReading:
    """The fold of one run's history so far."""

    def __init__(self, graph: ExecutionGraph) -> None:
        self.state = RunState(graph)
        self.log = VisitLog()
        self.ways = WayLog()
        self.started: Beginning | None = None
        self.began = 0
        """When it started; of a run that is queued: when it was asked for."""
        self.migrated: list[tuple[int, Renaming]] = []
        """The migrations: the number of the event, and the names of the version before in the one after."""
        self.shortened = False
        """Only the first and the last event are kept any more: there are no visits to show."""
        self.turn = asyncio.Lock()

    @property
    def seq(self) -> int:
        return self.state.seq

    def apply(self, events: Sequence[Event]) -> None:
        """Folds in the next events."""
        first = events[0]
        if first.seq == 1 and isinstance(first, Beginning):  # a queued run has another beginning later: its start
            self.started, self.began = first, first.at
            if len(events) > 1 and events[1].seq > 2:
                self.state, self.shortened = fold(self.state.graph, events[:2]), True
                self.log.seq, self.log.changed = events[1].seq, events[1].at
                return
        for event in events:
            before = self.state.graph
            evolve(self.state, event)
            self.ways.apply(event)
            if isinstance(event, RunMigrated):
                self.migrated.append((event.seq, Renaming(before, self.state.graph, event.nodes)))
                self.ways.rename(self.migrated[-1][1])
            elif isinstance(event, RunStarted) and not self.state.forked:
                self.began = event.at
        self.log.apply(events)
        for seq, names in self.migrated:
            if seq >= first.seq:
                self._rename_groups(seq, names)

    def _rename_groups(self, before: int, names: Renaming) -> None:
        for group in self.log.groups.values():
            if group.opened_seq < before:
                group.known_as = names.names(group.known_as)
                group.transitions = [names.via(transition) for transition in group.transitions]

    def node_of(self, visit: VisitRecord) -> str:
        """The name that a visit's node has now. The log leaves visits that had completed where they were."""
        node = visit.node
        for seq, names in self.migrated:
            if visit.status is TokenState.COMPLETED and visit.seqs[-1] < seq:
                node = names.ref(node)
        return node


class Readings:
    """See the module's docstring."""

    def __init__(self, store: Store, library: Library) -> None:
        self._store = self.store = store
        self._library = library
        self._kept: OrderedDict[RunId, RunReading] = OrderedDict()
        self._pasts: OrderedDict[RunId, tuple[RunState, int]] = OrderedDict()
        self._summaries: OrderedDict[tuple[RunId, int], RunSummary] = OrderedDict()

    async def row(self, run: RunId) -> RunRow | None:
        """The run's row; None if there is no such run."""
        rows = await self._store.find_runs(RunQuery(run=run))
        return rows[0] if rows else None

    async def reading(self, run: RunId) -> tuple[RunRow, RunReading] | None:
        """The run as it is now; None if there is no such run. The row is never newer than the reading."""
        row = await self.row(run)
        if row is None:
            self._kept.pop(run, None)
            self._pasts.pop(run, None)
            return None
        reading = self._kept.get(run)
        if reading is None or reading.seq > row.seq:  # a standby took over that had less of the history
            reading = RunReading(await self._graph(row))
        self._kept[run] = reading
        self._kept.move_to_end(run)
        async with reading.turn:
            while reading.seq < row.seq:
                events = await self._store.history(run, reading.seq, READ)
                if not events:
                    break  # it was forgotten meanwhile, or a service does not give histories
                await self._library.load_versions(row.workflow, events)
                for begin in range(0, len(events), SLICE):
                    reading.apply(events[begin : begin + SLICE])
                    await asyncio.sleep(0)
        if not reading.seq:
            del self._kept[run]
            return None
        self._forget_some()
        return row, reading

    async def past(self, row: RunRow, seq: int) -> tuple[RunState, int]:
        """The state after event number `seq`, and when that was. Raises CommandRefused if there is no such event, or
        it is no longer kept. The next point is reached from here if it is later."""
        if seq < 1:
            raise CommandRefused("BAD_REQUEST", f"events are counted from 1, got {seq}")
        if seq > row.seq:
            raise CommandRefused("NOT_FOUND", f"run {row.run!r} has {row.seq} events, none is number {seq}")
        state, at = self._pasts.pop(row.run, (None, 0))
        if state is None or state.seq > seq:
            state, at = RunState(await self._graph(row)), 0
        while state.seq < seq:
            events = await self._store.history(row.run, state.seq, min(SLICE, seq - state.seq))
            if not events or events[-1].seq != state.seq + len(events):
                raise CommandRefused("NOT_FOUND", f"of run {row.run!r} only the first and the last event are kept")
            await self._library.load_versions(row.workflow, events)
            for event in events:
                evolve(state, event)
            at = events[-1].at
            await asyncio.sleep(0)
        self._pasts[row.run] = (state, at)
        if len(self._pasts) > PASTS_MAX:
            self._pasts.popitem(last=False)
        return state, at

    async def events(self, run: RunId, seqs: Sequence[int]) -> list[Event]:
        """Some events by number, in order: neighbours are read together."""
        found: list[Event] = []
        position = 0
        while position < len(seqs):
            end = position
            while end + 1 < len(seqs) and seqs[end + 1] - seqs[position] < SLICE:
                end += 1
            wanted = set(seqs[position : end + 1])
            begin, count = seqs[position] - 1, seqs[end] - seqs[position] + 1
            found += [event for event in await self._store.history(run, begin, count) if event.seq in wanted]
            position = end + 1
        return found

    async def summary(self, row: RunRow, duration_ms: int | None) -> tuple[RunSummary, int]:
        """The figures of a run, and how many events were read for them: none if they were made before."""
        key = (row.run, row.seq)
        known = self._summaries.get(key)
        if known is not None:
            self._summaries.move_to_end(key)
            return known, 0
        log = VisitLog()
        while log.seq < row.seq:
            events = await self._store.history(row.run, log.seq, min(SLICE, row.seq - log.seq))
            if not events or events[-1].seq != log.seq + len(events):  # only its first and last event are kept
                break
            log.apply(events)
            await asyncio.sleep(0)
        self._summaries[key] = summary_of(log, duration_ms)
        if len(self._summaries) > SUMMARIES_MAX:
            self._summaries.popitem(last=False)
        return self._summaries[key], log.seq

    async def _graph(self, row: RunRow) -> ExecutionGraph:
        graph = await self._library.graph(row.workflow, row.version)
        assert graph is not None, "a run's version stays deployed"
        return graph

    def _forget_some(self) -> None:
        """Lets go of the readings that were asked for longest ago; the newest stays in any case."""
        total = sum(reading.seq for reading in self._kept.values())
        while len(self._kept) > 1 and (len(self._kept) > READINGS_MAX or total > EVENTS_MAX):
            _run, gone = self._kept.popitem(last=False)
            total -= gone.seq

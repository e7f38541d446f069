"""Loads runs that are not in memory, and looks up the idempotency keys of starts.

Owns the commands that wait: for a run that is being folded, or for a key that is being looked up. Promises that
commands keep their order per run, and that of several starts with one key one is decided and the others get its run.
Must not decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from treadle.kernel.migration_outputs import HistoryNeeded, outputs_of
from treadle.kernel.points import Past
from treadle.kernel.state import RunState
from treadle.model.commands import ForkRun, MigrateRun, StartRun
from treadle.model.events import ArtifactWritten, Beginning, Event
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.coordinate.committer import Committer
from treadle.runtime.coordinate.folding import fold
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.hot import Hots
from treadle.runtime.coordinate.library import Library, VersionMissing
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.patience import reliably
from treadle.store.port import InboxAnswer, RunQuery
from treadle.store.service import ServiceStore

UNREADABLE_S = 1.0
"""For this long a run that could not be read is not read again, and every command for it gets the same refusal. A run
asked for sixty times a second slowed the others by 5 %, mostly by being read, failing and being logged."""
UNREADABLE_MAX = 1_000
NEXT = 3
"""Runs that get a command soon come out of a heap: two of its first three entries are its smallest."""
FOLD_IN_THREAD = 5_000
"""Histories of at least so many events are folded in a thread: folding takes some 10 µs per event."""


log = logger("treadle.loading")


class Loading:
    """See the module's docstring."""

    def __init__(
        self,
        committer: Committer,
        library: Library,
        hots: Hots,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        requeue: Callable[[Iterable[Item]], None],
        failed: Callable[[Item, Exception], None],
        found: Callable[[Item, RunId], None],
        owns: Callable[[RunId], bool],
        is_over: Callable[[], bool],
    ) -> None:
        self._committer = committer
        self._store = committer.store
        self._library = library
        self._hots = hots
        self._spawn = spawn
        self._requeue = requeue
        """Puts items back into the queue, before those that came later."""
        self._failed = failed
        """Called with an item whose run or key cannot be read, and the exception."""
        self._found = found
        """Called with a start whose idempotency key belongs to a run already, and that run."""
        self._owns = owns
        self._is_over = is_over
        self.by_run: dict[RunId, list[Item]] = {}
        """Items that wait for a run that is being folded."""
        self._keys: dict[tuple[str, str], list[Item]] = {}
        self._reading: dict[RunId, tuple[int, asyncio.Future[RunState | None]]] = {}
        """Folds under way for readers, with the number of batches settled when each began."""
        self._unreadable: dict[RunId, tuple[float, Exception]] = {}
        """Runs that could not be read a moment ago: when to try again, and the exception."""

    def __contains__(self, run: RunId) -> bool:
        return run in self.by_run

    def __bool__(self) -> bool:
        return bool(self.by_run or self._keys)

    @property
    def waiting(self) -> list[Item]:
        return [item for items in (*self.by_run.values(), *self._keys.values()) for item in items]

    def load(self, item: Item) -> None:
        """Requeues the item when its run is hot, or as `fresh` if there is no such run."""
        waiting = self.by_run.get(item.run)
        if waiting is not None:
            waiting.append(item)
            return
        until, problem = self._unreadable.get(item.run, (0.0, None))
        if problem is not None and asyncio.get_running_loop().time() < until:
            self._failed(item, problem)
            return
        self.by_run[item.run] = [item]
        self._spawn(self._loaded(item.run))

    def warm(self, runs: list[RunId]) -> None:
        """Makes runs hot that get a command soon, unless the first few of them are."""
        if not all(run in self._hots.by_run for run in runs[:NEXT]):
            for run in runs:
                if run not in self._hots.by_run and run not in self.by_run:
                    self.by_run[run] = []
                    self._spawn(self._loaded(run))

    def reload(self, run: RunId, items: list[Item], missing: VersionMissing | HistoryNeeded | None = None) -> None:
        """Folds a run anew, once everything decided on it before is durable: a decision that raised has left its state
        half changed. `missing`: something that the decision needs is read meanwhile."""
        for item in items:
            item.recalls = isinstance(missing, HistoryNeeded)
        self.by_run.setdefault(run, []).extend(items)

        async def again() -> None:
            await self._committer.drained()
            self._hots.drop(run)
            await self._loaded(run, missing)

        self._spawn(again())

    def read_past(self, item: Item, command: ForkRun) -> None:
        """Requeues the start of a fork when the history it inherits has been read. Refused if there is none."""
        self.by_run[item.run] = []  # later commands for the run wait behind it
        self._spawn(self._with_past(item, command))

    async def _with_past(self, item: Item, command: ForkRun) -> None:
        origin, store = command.origin, self._store
        try:
            # The ends are read first: a decision that is written in between is not seen.
            ends = await reliably(lambda: cast(ServiceStore, store).decisions(origin), self._is_over)
            limit = ends[-1] if ends else 0
            history = await reliably(lambda: store.history(origin, 0, limit), self._is_over) if ends else []
            if history:
                started = history[0]
                assert isinstance(started, Beginning)
                item.command = replace(command, version=started.version)
                await reliably(lambda: self._library.load_versions(started.workflow, history), self._is_over)
                await self._inherit_artifacts(item.run, history)
            item.past = Past(history, ends)
        except Exception as problem:
            log.error("the past of a fork cannot be read", run=origin, exc_info=problem)
            self._failed(item, problem)
            self._requeue(self.by_run.pop(item.run))
        else:
            self._requeue([item, *self.by_run.pop(item.run)])

    async def _inherit_artifacts(self, run: RunId, history: list[Event]) -> None:
        """Lets the fork own what it inherits by reference: it stays when the other run is deleted."""
        for digest in {event.digest for event in history if isinstance(event, ArtifactWritten)}:
            content = await reliably(partial(self._store.get_blob, digest), self._is_over)
            if content is not None:
                await reliably(partial(self._store.put_blob, run, content), self._is_over)

    def look_up(self, item: Item, key: str) -> None:
        """Looks for a run with this key. If there is one, `found` is called; else the item is requeued as `keyed`.
        Other starts with the same key wait until this one is answered."""
        assert item.workflow is not None
        place = (item.workflow, key)
        waiting = self._keys.get(place)
        if waiting is not None:
            waiting.append(item)
            return
        self._keys[place] = []
        self._spawn(self._looked_up(item, place))

    async def state(self, run: RunId) -> RunState | None:
        """A run's state for reading, None if there is no such run. A thousand callers at once, like the rows of a wide
        fan-out after a restart, share one fold as long as nothing was written meanwhile."""
        written, reading = self._reading.get(run, (-1, None))
        if reading is None or written != self._committer.settled:
            reading = asyncio.ensure_future(self._read(run))
            self._reading[run] = (self._committer.settled, reading)
            reading.add_done_callback(lambda done: self._forget_reading(run, done))
        return await asyncio.shield(reading)

    def _forget_reading(self, run: RunId, done: asyncio.Future[RunState | None]) -> None:
        if self._reading.get(run, (0, None))[1] is done:
            del self._reading[run]

    async def _read(self, run: RunId) -> RunState | None:
        history = await reliably(lambda: self._store.history(run), self._is_over)
        return await self._folded(history) if history else None

    async def _loaded(self, run: RunId, missing: VersionMissing | HistoryNeeded | None = None) -> None:
        try:
            if isinstance(missing, VersionMissing):
                await reliably(lambda: self._library.graph(missing.name, missing.version or None), self._is_over)
            state = await self._current(run)  # not shared with readers: decisions change it
            second = await self._second(run, self.by_run[run]) if state is None else {}
            for item in self.by_run[run]:
                if item.recalls and state is not None:
                    await self._recall(item, state)
        except Exception as problem:
            log.error("a run cannot be read", run=run, exc_info=problem)
            if len(self._unreadable) >= UNREADABLE_MAX:
                self._unreadable.clear()
            self._unreadable[run] = (asyncio.get_running_loop().time() + UNREADABLE_S, problem.with_traceback(None))
            for item in self.by_run.pop(run):
                self._failed(item, problem)
            return
        items = self.by_run.pop(run)
        if state is not None and (items or state.status not in RUN_ENDED) and self._owns(run):
            self._hots.keep(run, state)
        for item in items:
            item.fresh = state is None
            if id(item) in second:
                self._found(item, second[id(item)])
        self._requeue(item for item in items if id(item) not in second)

    async def _folded(self, history: list[Event]) -> RunState:
        started = history[0]
        assert isinstance(started, Beginning)
        graph = await reliably(lambda: self._library.graph_of(history), self._is_over)
        assert graph is not None, f"{started.workflow} version {started.version} was deployed when the run began"
        if len(history) < FOLD_IN_THREAD:
            return fold(graph, history)
        return await asyncio.to_thread(fold, graph, history)

    async def _recall(self, item: Item, state: RunState) -> None:
        """Fills in the outputs that a migration needs. The state is the one it will be decided on."""
        command = item.command
        assert isinstance(command, MigrateRun)
        new = await reliably(lambda: self._library.graph(state.graph.workflow_name, command.to), self._is_over)
        if new is not None:
            history = await reliably(lambda: self._store.history(item.run, 0, state.seq), self._is_over)
            found = outputs_of(history, state, new, command.nodes)
            item.command = replace(command, outputs=found, seq=state.seq)
        item.recalls = False

    async def _current(self, run: RunId) -> RunState | None:
        """The state as the store has it. Reads again if another node may have written during the reading."""
        while True:
            forgotten = self._hots.forgotten
            state = await self._read(run)
            if forgotten == self._hots.forgotten:
                return state

    async def _second(self, run: RunId, items: list[Item]) -> dict[int, RunId]:
        """Runs of starts that came before: those whose key was free when it was looked up and is taken now, because
        another node was first, and those that have become items of a batch."""
        keyed = [item for item in items if item.keyed]
        runs = {id(item): await self._with_key((item.workflow or "", _key(item))) for item in keyed}
        starts = [item for item in items if isinstance(item.command, StartRun)]
        if starts and await self._batches(starts[0]):
            rows = await reliably(lambda: self._store.find_runs(RunQuery(item=run, limit=1)), self._is_over)
            runs |= {id(item): row.run for item in starts for row in rows}
        return {item: found for item, found in runs.items() if found is not None}

    async def _batches(self, item: Item) -> bool:
        """Whether the starts of the item's workflow become items of batches."""
        assert isinstance(item.command, StartRun)
        name, version = item.workflow or "", item.command.version or None
        graph = await reliably(lambda: self._library.graph(name, version), self._is_over)
        return graph is not None and graph.flow is not None and graph.flow.batch is not None

    async def _looked_up(self, item: Item, place: tuple[str, str]) -> None:
        try:
            run = await self._with_key(place)
            if run is not None:
                self._found(item, run)
            else:
                await self._first(item)
        except Exception as problem:
            log.error("a key cannot be looked up", workflow=place[0], key=place[1], exc_info=problem)
            self._failed(item, problem)
        self._requeue(self._keys.pop(place))

    async def _with_key(self, place: tuple[str, str]) -> RunId | None:
        query = RunQuery(workflow=place[0], idempotency_key=place[1], limit=1)
        rows = await reliably(lambda: self._store.find_runs(query), self._is_over)
        return rows[0].run if rows else None

    async def _first(self, item: Item) -> None:
        """Requeues the first start with a key and waits for its durable answer, so that later ones find its run."""
        decided: asyncio.Future[InboxAnswer] = asyncio.get_running_loop().create_future()
        outer, item.future = item.future, decided
        item.keyed = True
        self._requeue([item])
        try:
            answer = await decided
        except Exception as problem:
            if outer is not None and not outer.done():
                outer.set_exception(problem)
            return
        if outer is not None and not outer.done():
            outer.set_result(answer)


def _key(item: Item) -> str:
    assert isinstance(item.command, StartRun) and item.command.idempotency_key is not None
    return item.command.idempotency_key

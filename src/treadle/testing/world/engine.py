"""The engine of a virtual world: the production `runtime.Core` on a virtual clock, with scripted work and crashes.

Owns one core and its agenda. Promises that it is the same core as in production: only its ports and the question which
other workers live are replaced. Between two entries of the agenda the event loop runs until the core is quiet. Must not
keep anything a recovery would need: a crash closes its access to the store and drops it without closing it.

                          ┌ before_commit: the batch is lost, the client asks again
    command ──► decide ──►│ commit ──►│ deliver ──►│ …
                                      │            └ after_dispatch: work was handed out, its result is lost
                                      └ after_commit: the client has its answer, nobody else was told
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

from treadle.errors import TreadleError
from treadle.kernel.state import RunState
from treadle.model.commands import Command, StartRun
from treadle.model.errors import Rejection
from treadle.model.ids import RunId, TimerId
from treadle.runtime.coordinate.book_reading import read_book
from treadle.runtime.coordinate.gathering import Decided
from treadle.runtime.deliver.core import Core
from treadle.runtime.surroundings.ports import Report
from treadle.store.port import Fence, InboxAnswer, OutboxRow
from treadle.testing.world.agenda import Agenda, Happening
from treadle.testing.world.doorway import Doorway, as_store
from treadle.testing.world.fuse import Crashed
from treadle.testing.world.scripted import AgendaClock, ScriptedExecutor, SilentCourier
from treadle.testing.world.surroundings import Surroundings

PATIENCE_S = 30.0
"""Seconds of the event loop after which an engine that has not come to rest is stuck."""
LEASE_MS = 1 << 50
"""A lease that outlasts every virtual clock: a scenario's engine loses it only by crashing."""

_names = count(1)


class EngineStuck(TreadleError):
    """The engine does not come to rest."""


class WorldEngine:
    """See the module's docstring. `heads` maps each run to its newest durable sequence number; it belongs to the
    world."""

    def __init__(self, around: Surroundings, heads: dict[RunId, int]) -> None:
        self.around = around
        self.agenda = Agenda(around.random)
        self._heads = heads
        self._known: dict[RunId, RunState] = {}
        self._crash: Crashed | None = None
        self._resting: asyncio.Task[Any] | None = None
        self._defect: Exception | None = None
        """The exception that deciding has raised: in production other runs go on, a test fails."""
        self._answer: Any = None
        """The result of the current request, before the core is quiet again."""
        self.doorway = Doorway(around, heads, self._blow)
        self.store = as_store(self.doorway)
        self.started: RunId | None = None
        self.core: Core
        self.executor: ScriptedExecutor

    def open(self) -> None:
        """Takes the store from the engine before it, and recovers its unfinished work."""
        self._live(self._open())

    async def _open(self) -> None:
        owner = f"engine-{next(_names)}"
        fences = [await self._taken(owner, shard) for shard in range(self.around.store.shards)]
        made = PlayedCore if self.around.random is not None else LonelyCore
        self.core = made(self, self.store, AgendaClock(self), self._make_executor, SilentCourier(self))
        await self.core.open()
        await self.core.gain(*fences)

    async def _taken(self, owner: str, shard: int) -> Fence:
        fence = await self.around.store.lease(shard, owner, self.around.clock.now, LEASE_MS, evict=True)
        assert fence is not None, "the lost engine's lease is taken from it"
        return fence

    def _make_executor(self, report: Report) -> ScriptedExecutor:
        self.executor = ScriptedExecutor(self, report)
        return self.executor

    def look(self) -> None:
        """Reads the deployed workflows again."""
        self._live(self.core.library.refresh())

    def start(self, workflow: str, command: StartRun) -> Rejection | None:
        """Creates a run of the newest version. `started` is then the run that the caller gets: another one if its key
        or its batch has one already."""
        self.started = None
        return self._ask(self.core.coordinator.ask(command.run, command, workflow))

    def queue(self, workflow: str) -> list[RunId]:
        """The queued runs of a workflow, in the order in which they will start."""
        book = self.core.coordinator.flow.book(workflow)
        if book is None:
            book = self.around.wait(read_book(self.around.store, self.core.library, workflow)).book
        return [place.run for place in book.order()]

    def handle(self, run: RunId, command: Command) -> Rejection | None:
        """Sends one command to one run, and waits for its commit."""
        rejection = self._ask(self.core.coordinator.ask(run, command))
        self.executor.heard(run, command)
        return rejection

    def _ask(self, question: Coroutine[Any, Any, InboxAnswer]) -> Rejection | None:
        answer: InboxAnswer = self._live(question)
        if isinstance(answer.result, str):
            self.started = RunId(answer.result)
        return answer.rejection

    def act(self, action: Callable[[], None]) -> None:
        """Calls `action` on the core's event loop, and runs the loop until the core is quiet."""

        async def acting() -> None:
            action()

        self._live(acting())

    def answer_later(self, run: RunId, command: Command, after_ms: int) -> None:
        """Puts a worker's report on the agenda. If this engine crashes before, the report is lost."""
        self.agenda.at(self.around.clock.now + after_ms, lambda: self._hear(run, command))

    def _hear(self, run: RunId, command: Command) -> None:
        self.handle(run, command)

    def at_once(self, happening: Happening) -> None:
        """Puts `happening` on the agenda for this instant, after the core has come to rest."""
        self.agenda.at(self.around.clock.now, happening)

    def state(self, run: RunId) -> RunState | None:
        """The state that the engine decides on, else the folded history."""
        known = self._known.get(run)
        if known is not None and known.seq == self._heads.get(run):
            return known
        state = self.around.wait(self.core.coordinator.state(run))
        if state is not None:
            self._known[run] = state
        return state

    def die(self) -> None:
        """Crashes: nothing it does reaches the store any more."""
        self.doorway.bar()
        self.core.coordinator.stop(EngineStuck("it has crashed"))
        tasks = asyncio.all_tasks(self.around.loop)
        for task in tasks:
            task.cancel()
        self.around.wait(_gone(tasks))

    def passes_commit(self) -> bool:
        """Whether it survives the crash points after the commits just made."""
        try:
            for _commit in range(self.doorway.take_committed()):
                self.around.fuse.passing("after_commit")
        except Crashed as crash:
            self._blow(crash)
            return False
        return True

    def note_defect(self, problem: Exception) -> None:
        """Keeps an exception of deciding, so that `_live` raises it."""
        self._defect = self._defect or problem

    def _blow(self, crash: Crashed) -> None:
        self.doorway.bar()
        if self._crash is None:
            self._crash = crash
            if self._resting is not None:
                self._resting.cancel()

    def _live(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Does some work and runs the loop until the core is quiet. Raises `Crashed` if it dies meanwhile."""
        self._answer = None
        self._resting = resting = self.around.loop.create_task(self._rest(work))
        patience = self.around.loop.call_later(PATIENCE_S, resting.cancel)
        try:
            result = self.around.wait(resting)
        except asyncio.CancelledError:
            if self._crash is None:
                raise EngineStuck(f"the engine did not come to rest within {PATIENCE_S:.0f} s") from None
            crash, answer = self._crash, self._answer
            crash.committed = answer is not None
            crash.rejection = answer.rejection if isinstance(answer, InboxAnswer) else None
            crash.result = answer.result if isinstance(answer, InboxAnswer) else None
            raise crash from None
        finally:
            patience.cancel()
            self._resting = None
        if self._defect is not None:
            raise self._defect
        return result

    async def _rest(self, work: Coroutine[Any, Any, Any]) -> Any:
        result = self._answer = await work
        await self.core.wait_quiet()
        if self.core.coordinator.stopped is not None:
            raise self.core.coordinator.stopped
        return result


class LonelyCore(Core):
    """The only engine on its store: every worker of the engine before it died with that engine, whatever its lease
    says. Between a commit and its delivery it passes the crash points of a scenario."""

    def __init__(self, engine: WorldEngine, *parts: Any) -> None:
        self._engine = engine
        super().__init__(*parts)

    def durable(self, decided: list[Decided], rows: list[OutboxRow]) -> None:
        if self._engine.passes_commit():
            super().durable(decided, rows)

    def defect(self, problem: Exception) -> None:
        self._engine.note_defect(problem)

    def _is_gone(self, _worker: str | None) -> bool:
        return True


class PlayedCore(LonelyCore):
    """With a shuffled order, every due timer has an entry of its own on the agenda: timers of one instant may fire in
    any order, and other entries may come between them."""

    def _due(self, run: RunId, timer: TimerId) -> None:
        self._engine.at_once(lambda: self._engine.act(lambda: Core._due(self, run, timer)))


async def _gone(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)

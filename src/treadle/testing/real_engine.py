"""The real engine as one world knows it: `runtime.Core` on a virtual clock, with scripted work, and mortal.

Owns one core and the agenda of what will happen to it. Promises that it is the same core that serves people: nothing of
it is replaced but its ports and the question who else is alive. Between two things on the agenda the event loop runs
until the core is quiet. Must not keep anything a recovery would need: a crash bars its way to the store and drops it,
unclosed.

                          ┌ before_commit: the batch is lost, whoever asked asks again
    command ──► decide ──►│ commit ──►│ deliver ──►│ …
                                      │            └ after_dispatch: work was handed out, its result is lost
                                      └ after_commit: whoever asked has its answer, nobody else was told
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
from treadle.runtime.core import Core
from treadle.runtime.gathering import Decided
from treadle.runtime.ports import Report
from treadle.store.port import Fence, InboxAnswer, OutboxRow
from treadle.testing.agenda import Agenda, Happening
from treadle.testing.doorway import Doorway, as_store
from treadle.testing.engine import LEASE_MS
from treadle.testing.fuse import Crashed
from treadle.testing.scripted import AgendaClock, ScriptedExecutor, SilentCourier
from treadle.testing.surroundings import Surroundings

PATIENCE_S = 30.0
"""Real seconds within which an engine comes to rest between two things: what takes longer is stuck."""

_names = count(1)


class Stuck(TreadleError):
    """The engine does not come to rest."""


class RealEngine:
    """See the module's docstring. `heads` says how far every run has come, durably; it belongs to the world."""

    def __init__(self, around: Surroundings, loop: asyncio.AbstractEventLoop, heads: dict[RunId, int]) -> None:
        self.around = around
        self.loop = loop
        self.agenda = Agenda(around.random)
        self._heads = heads
        self._known: dict[RunId, RunState] = {}
        self._blown: asyncio.Future[Crashed] = loop.create_future()
        self.doorway = Doorway(around, heads, self._blow)
        self.store = as_store(self.doorway)
        self.core: Core
        self.executor: ScriptedExecutor

    def open(self) -> None:
        """Takes the store, from whoever had it, and makes up for what it left undone."""
        self._live(self._open())

    async def _open(self) -> None:
        owner = f"engine-{next(_names)}"
        fences = [await self._taken(owner, shard) for shard in range(self.around.store.shards)]
        made = PlayedCore if self.around.random is not None else LonelyCore
        self.core = made(self.store, AgendaClock(self), self._make_executor, SilentCourier(self))
        if isinstance(self.core, PlayedCore):
            self.core.engine = self
        deliver = self.core.coordinator.deliver

        def after_commit(decided: list[Decided], rows: list[OutboxRow]) -> None:
            try:
                for _commit in range(self.doorway.take_committed()):
                    self.around.fuse.passing("after_commit")
            except Crashed as crash:
                self._blow(crash)
            else:
                deliver(decided, rows)

        self.core.coordinator.deliver = after_commit
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
        """Somebody has deployed something."""
        self._live(self.core.library.refresh())

    def start(self, workflow: str, version: int | None, command: StartRun) -> Rejection | None:
        assert version is None, "the engine knows the newest"
        return self._ask(self.core.coordinator.ask(command.run, command, workflow))

    def handle(self, run: RunId, command: Command) -> Rejection | None:
        rejection = self._ask(self.core.coordinator.ask(run, command))
        self.executor.heard(run, command)
        return rejection

    def _ask(self, question: Coroutine[Any, Any, InboxAnswer]) -> Rejection | None:
        answer: InboxAnswer = self._live(question)
        return answer.rejection

    def act(self, action: Callable[[], None]) -> None:
        """Does something where the core lives, and lets it come to rest."""

        async def acting() -> None:
            action()

        self._live(acting())

    def answer_later(self, run: RunId, command: Command, after_ms: int) -> None:
        self.agenda.at(self.around.clock.now + after_ms, lambda: self._hear(run, command))

    def _hear(self, run: RunId, command: Command) -> None:
        self.handle(run, command)

    def at_once(self, happening: Happening) -> None:
        """Will happen now, when the core has come to rest."""
        self.agenda.at(self.around.clock.now, happening)

    def state(self, run: RunId) -> RunState | None:
        """The state the engine decides on, else what its history gives."""
        known = self._known.get(run)
        if known is not None and known.seq == self._heads.get(run):
            return known
        state = self.around.wait(self.core.coordinator.state(run))
        if state is not None:
            self._known[run] = state
        return state

    def die(self) -> None:
        """Without another word: nothing it does reaches the store any more."""
        self.doorway.bar()
        self.core.coordinator.stop(Stuck("it has crashed"))
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        self.around.wait(_gone(tasks))

    def _blow(self, crash: Crashed) -> None:
        self.doorway.bar()
        if not self._blown.done():
            self._blown.set_result(crash)

    def _live(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Does some work and runs the loop until the core is quiet. Raises `Crashed` if it dies meanwhile."""
        task = self.loop.create_task(work)
        resting = self.loop.create_task(self._rest(task))
        self.around.wait(_first(resting, self._blown))
        if self._blown.done():
            crash = self._blown.result()
            answer = task.result() if task.done() and not task.cancelled() and task.exception() is None else None
            crash.committed = answer is not None
            crash.rejection = answer.rejection if isinstance(answer, InboxAnswer) else None
            raise crash
        if not resting.done():
            raise Stuck(f"the engine did not come to rest within {PATIENCE_S:.0f} s")
        return resting.result()

    async def _rest(self, task: asyncio.Task[Any]) -> Any:
        result = await task
        await self.core.wait_quiet()
        if self.core.coordinator.stopped is not None:
            raise self.core.coordinator.stopped
        return result


class LonelyCore(Core):
    """The only one on its store: whoever worked for the last engine died with it, whatever its lease says."""

    def _is_gone(self, _worker: str | None) -> bool:
        return True


class PlayedCore(LonelyCore):
    """Under a shuffled order every due timer has a place of its own on the agenda: what is due at one instant may be
    noticed in any order, and anything may come between."""

    engine: RealEngine

    def _due(self, run: RunId, timer: TimerId) -> None:
        self.engine.at_once(lambda: self.engine.act(lambda: Core._due(self, run, timer)))


async def _first(*futures: asyncio.Future[Any]) -> None:
    await asyncio.wait(futures, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)


async def _gone(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)

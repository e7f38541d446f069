"""The moving parts of an engine put together: coordinator, delivery, timers, recovery, on any clock, executor, courier.

Owns the order of starting and stopping. `Engine` runs it for real; scenarios run it on a virtual clock with scripted
work. Must not know concrete stores, executors or couriers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from treadle.errors import EngineStopped
from treadle.model.commands import FireTimer
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.runtime.committer import reliably
from treadle.runtime.coordinator import Coordinator
from treadle.runtime.deliver import Delivery
from treadle.runtime.facts import Facts
from treadle.runtime.gathering import Item
from treadle.runtime.library import Library
from treadle.runtime.outgoing import Outgoing
from treadle.runtime.ports import Clock, Courier, Executor, Report
from treadle.runtime.progress import Progress
from treadle.runtime.recovery import Recovery
from treadle.runtime.timers import Timers
from treadle.store.port import Answer, Fence, Store

PATIENCE_S = 10.0
"""How long a closing engine waits for a store that takes nothing: as long as a file may be locked by somebody else."""

MakeExecutor = Callable[[Report], Executor]


class Core:
    """See the module's docstring. Made on the event loop it will live on; `open` before anything else."""

    def __init__(
        self,
        store: Store,
        fence: Fence,
        clock: Clock,
        make_executor: MakeExecutor,
        courier: Courier,
        random: Random | None = None,
    ) -> None:
        self.library = Library(store)
        self.coordinator = Coordinator(store, fence, clock, self.library)
        self.timers = Timers(store, fence.shard, clock, self._due)
        self.executor = make_executor(lambda run, command: self.delivery.report(run, command))
        self.outgoing = Outgoing(self.coordinator, courier, clock)
        progress = Progress(self.coordinator.tell, clock)
        facts = Facts(store, self.coordinator.state, progress, random)
        self.delivery = Delivery(self.coordinator, self.executor, self.timers, facts, self.outgoing, progress)
        self.recovery = Recovery(self.coordinator, self.delivery, self._has_in_hand)
        self.coordinator.deliver = self.delivery.durable
        self.coordinator.recover = self._recover
        self.coordinator.fenced = self._fenced
        self._stopping: asyncio.Task[None] | None = None

    async def open(self, graceful: bool = False) -> None:
        """Takes up what is there. Returns when everything left behind has been said again, not when it is done.
        `graceful`: the last owner was closed, not killed."""
        await self.library.refresh()
        await self.timers.open(lambda: self.coordinator.spawn(self._reliably(self.timers.turn_page)))
        await self.recovery.recover(graceful)

    async def look(self) -> None:
        """Somebody else has written: requests, or a new version of a workflow."""
        await self._reliably(self.recovery.read_inbox)

    async def wait_quiet(self) -> None:
        """Until nothing happens any more without news from outside: executors, clocks, people."""
        while True:
            await self.outgoing.wait_idle()
            if self.coordinator.is_quiet or self.coordinator.stopped is not None:
                return
            await self.coordinator.wait_quiet()

    def _fenced(self) -> None:
        self.timers.close()
        self._stopping = asyncio.get_running_loop().create_task(self.executor.close(0))

    async def close(self, grace_ms: int = 0) -> None:
        """Lets work in hand end for so long, commits what it reports, then stops. What is left will be recovered."""
        self.timers.close()
        if self._stopping is not None:
            await self._stopping
        await self.executor.close(grace_ms)
        await self.outgoing.close()
        await self._wait_written()
        self.coordinator.stop(EngineStopped("it was closed"))

    async def _wait_written(self) -> None:
        """Until everything is durable, or the store has not taken anything for a while: what it does not have was never
        promised to anybody."""
        quiet = asyncio.ensure_future(self.coordinator.wait_quiet())
        written = -1
        while not quiet.done() and written != self.coordinator.written:
            written = self.coordinator.written
            await asyncio.wait([quiet], timeout=PATIENCE_S)
        quiet.cancel()

    async def _recover(self) -> None:
        """After a commit whose outcome is unknown: what it may have said, timers included, is said again."""
        await self._reliably(self.timers.turn_page)
        await self._reliably(self.recovery.recover)

    async def _reliably(self, step: Callable[[], Awaitable[None]]) -> None:
        """A step that may be begun again from the start, until the store answers."""
        await reliably(step, lambda: self.coordinator.stopped is not None)

    def _due(self, run: RunId, timer: TimerId) -> None:
        future: asyncio.Future[Answer] = self.coordinator.future()

        def told(answered: asyncio.Future[Answer]) -> None:
            rejection = None if answered.cancelled() or answered.exception() else answered.result().rejection
            self.timers.settled(run, timer, rejection is not None and rejection.kind == "BAD_REQUEST")

        future.add_done_callback(told)
        self.coordinator.put(Item(run, FireTimer(timer), future=future))

    def _has_in_hand(self, run: RunId, token: TokenId, attempt: int) -> bool:
        return self.executor.has_in_hand(run, token, attempt) or self.coordinator.has_handed_out(run, token)

"""The moving parts of an engine put together: coordinator, delivery, timers, recovery, on any clock, executor, courier.

Owns the order of starting and stopping. `Engine` runs it for real; scenarios run it on a virtual clock with scripted
work. Must not know concrete stores, executors or couriers.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from treadle.errors import EngineStopped
from treadle.model.commands import FireTimer
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.runtime.coordinator import Coordinator
from treadle.runtime.deliver import Delivery
from treadle.runtime.facts import Facts
from treadle.runtime.library import Library
from treadle.runtime.outgoing import Outgoing
from treadle.runtime.ports import Clock, Courier, Executor, Report
from treadle.runtime.progress import Progress
from treadle.runtime.recovery import Recovery
from treadle.runtime.timers import Timers
from treadle.store.port import Fence, Store

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
        self.coordinator.recover = self.recovery.recover

    async def open(self) -> None:
        """Takes up what is there. Returns when everything left behind has been said again, not when it is done."""
        await self.library.refresh()
        await self.timers.open(lambda: self.coordinator.spawn(self.timers.turn_page()))
        await self.recovery.recover()

    async def look(self) -> None:
        """Somebody else has written: requests, or a new version of a workflow."""
        await self.library.refresh()
        await self.recovery.read_inbox()

    async def wait_quiet(self) -> None:
        """Until nothing happens any more without news from outside: executors, clocks, people."""
        while True:
            await self.outgoing.wait_idle()
            if self.coordinator.is_quiet or self.coordinator.stopped is not None:
                return
            await self.coordinator.wait_quiet()

    async def close(self, grace_ms: int = 0) -> None:
        """Lets work in hand end for so long, commits what it reports, then stops. What is left will be recovered."""
        self.timers.close()
        await self.executor.close(grace_ms)
        await self.outgoing.close()
        await self.coordinator.wait_quiet()
        self.coordinator.stop(EngineStopped("it was closed"))

    def _due(self, run: RunId, timer: TimerId) -> None:
        self.coordinator.tell(run, FireTimer(timer))

    def _has_in_hand(self, run: RunId, token: TokenId, attempt: int) -> bool:
        return self.executor.has_in_hand(run, token, attempt)

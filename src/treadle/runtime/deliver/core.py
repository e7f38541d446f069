"""The moving parts of an engine put together: coordinator, delivery, timers, recovery, on any clock, executor, courier.

Owns the order of starting and stopping, and what happens when shards come and go. `Engine` runs it for real; scenarios
run it on a virtual clock with scripted work. Must not know concrete stores, executors or couriers, nor why a shard
comes or goes (`membership`).

A shard comes by `gain`: what its last owner left undone is made up for. It goes in one of two ways: `lose`, when it is
somebody else's already (its work here stops, its states are forgotten), or `hand_over`, in good order (its work here
goes on under a claim, what was decided becomes durable, then the lease is given back). `doubt` comes before either,
when its lease may have run out: its work goes on, and what that reports is kept back. Mostly the store was away for
everybody, the shard comes back, and nothing has to be executed twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from random import Random

from treadle.display.numbers import ranges
from treadle.errors import EngineStopped
from treadle.model.commands import FireTimer
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.runtime.base.logs import logger
from treadle.runtime.base.ports import Clock, Courier, MakeExecutor
from treadle.runtime.coordinate.committer import reliably
from treadle.runtime.coordinate.coordinator import Coordinator, Shape
from treadle.runtime.coordinate.gathering import Decided, Item
from treadle.runtime.coordinate.library import Library
from treadle.runtime.coordinate.shards import Shards
from treadle.runtime.deliver.delivery import Delivery
from treadle.runtime.deliver.handover import Claims, Handover
from treadle.runtime.deliver.inbox import Inbox
from treadle.runtime.deliver.other_nodes import OtherNodes
from treadle.runtime.deliver.outgoing import Outgoing
from treadle.runtime.deliver.own_work import OwnWork
from treadle.runtime.deliver.recovery import Recovery
from treadle.runtime.deliver.timers import Timers
from treadle.runtime.execute.attempt_of_run import AttemptMaker
from treadle.runtime.execute.progress import Progress
from treadle.store.port import Fence, InboxAnswer, OutboxRow, Store

PATIENCE_S = 10.0
"""How long a closing engine waits for a store that takes nothing: as long as a file may be locked by somebody else."""

log = logger("treadle.core")


class Core:
    """See the module's docstring. Made on the event loop it will live on; `open` before anything else."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        make_executor: MakeExecutor,
        courier: Courier,
        random: Random | None = None,
    ) -> None:
        self.library = Library(store)
        self.shards = Shards(store.shards)
        self.coordinator = Coordinator(store, self.shards, clock, self.library, self)
        self.timers = Timers(store, lambda: self.shards.owned, clock, self._due)
        self.outgoing = Outgoing(self.coordinator, courier, clock)
        self.claims = Claims()
        progress = Progress(self.coordinator.tell, clock)
        attempts = AttemptMaker(store, self.coordinator.state, progress, random)
        self.own_work = OwnWork(self.coordinator, make_executor, attempts, progress, self.claims)
        self.executor = self.own_work.executor
        self.delivery = Delivery(self.coordinator, self.own_work, self.timers, self.outgoing)
        self.inbox = Inbox(self.coordinator, self.delivery)
        self.recovery = Recovery(self.coordinator, self.delivery, self._has_in_hand, self._is_gone)
        self.other_nodes = OtherNodes(
            store, self.shards, clock, self.coordinator.spawn, self.coordinator.settle, self._is_over
        )
        self.handover = Handover(self.coordinator, self.executor, clock, self.claims, self.own_work.report)
        self.other_nodes.left_in_inbox = self.inbox.give_back
        self.other_nodes.signed = self.claims.signed
        self.on_moved: Callable[[], None] = lambda: None
        """Called when shards have come or gone."""
        self._hear_answered: Callable[[list[RunId]], None] = lambda _runs: None
        self._hear_durable: Callable[[list[Decided]], None] | None = None
        self._stopping: asyncio.Task[None] | None = None

    # The coordinator's neighbours (`coordinate.neighbours`)

    def durable(self, decided: list[Decided], rows: list[OutboxRow]) -> None:
        self.delivery.durable(decided, rows)
        if self._hear_durable is not None:
            self._hear_durable(decided)

    def answered(self, runs: list[RunId]) -> None:
        self._hear_answered(runs)

    async def recover(self) -> None:
        """After a commit whose outcome is unknown: everything it may have asked for is done again, timers included."""
        await self._reliably(self.timers.turn_page)
        await self._reliably(self._make_up)

    def not_here(self, item: Item) -> None:
        self.other_nodes.take(item)

    def lost(self, shards: Collection[int]) -> None:
        self.lose(shards, reason="the store says so")

    def fenced(self) -> None:
        self.timers.close()
        self._stopping = asyncio.get_running_loop().create_task(self.executor.close(0))

    def defect(self, problem: Exception) -> None:
        """Logged where it was refused; other runs go on."""

    # Other listeners

    def hear_answered(self, heard: Callable[[list[RunId]], None]) -> None:
        """Requests of the inbox that have been answered are told to `heard`, too."""
        self._hear_answered = heard

    def offer_work(self, shape: Shape, heard: Callable[[list[Decided]], None]) -> None:
        """Queue work of this store is claimed by workers: `shape` makes offers of it; durable decisions are told to
        `heard`, too."""
        self.coordinator.offer_work(shape)
        self._hear_durable = heard

    async def open(self) -> None:
        """Takes up what is there beside the runs."""
        await self.library.refresh()
        await self.timers.open(lambda: self.coordinator.spawn(self._reliably(self.timers.turn_page)))

    # Shards come and go

    async def gain(self, *fences: Fence, graceful: bool = False) -> None:
        """Decides for these shards from now on. Returns when everything left behind has been said again, not when it is
        done. `graceful`: the last owner was closed, not killed."""
        self.accept(fences)
        await self.make_up(fences, graceful)

    def accept(self, fences: Collection[Fence]) -> None:
        """The first half of `gain`: decides for these shards from this very moment."""
        for fence in fences:
            self.claims.owner = self.other_nodes.owner = fence.owner
        anew = self.shards.gain(fences)
        self._stop_work(lambda run: self.shards.of(run) in anew)  # of before; somebody else has had them since
        self.other_nodes.sort_out(self.coordinator.put)
        self.on_moved()

    async def make_up(self, fences: Collection[Fence], graceful: bool = False) -> None:
        """The second half: what was left behind in these shards is said again."""
        shards = tuple(fence.shard for fence in fences)
        await self.coordinator.drained()  # a result of before may be on its way back from a batch that was refused
        await self._reliably(self.library.refresh)
        await self._reliably(self.timers.turn_page)
        await self._reliably(lambda: self._make_up(shards, graceful))

    def lose(self, shards: Collection[int], reason: str) -> None:
        """They are somebody else's, or may be: nothing of them is decided or written any more."""
        lost = sorted((self.shards.fences.keys() | self.shards.doubted.keys()) & set(shards))
        if lost:
            log.warning("shards were lost", shards=ranges(lost), reason=reason)
            self.shards.lose(lost)
            self._let_go()
            self.other_nodes.sort_out(self.coordinator.put)

    def doubt(self, shards: Collection[int], reason: str) -> None:
        """They may be somebody else's: nothing of them is decided or written before the store has said whose they are.
        What is executed for them goes on."""
        doubtful = sorted(self.shards.fences.keys() & set(shards))
        if doubtful:
            log.warning("shards are in doubt", shards=ranges(doubtful), reason=reason)
            self.shards.doubt(doubtful)
            self._let_go()

    async def hand_over(self, shards: Collection[int]) -> None:
        """Gives them back in good order: work in hand goes on under a claim, and what was decided is durable before
        anybody else can take them."""
        await self.handover.claim_cold(shards)
        settle = self.handover.claim(shards)
        self.shards.leave(shards)
        self._let_go()
        await self.coordinator.drained()
        settle()
        fences = [self.shards.fences[shard] for shard in shards if shard in self.shards.fences]
        self.shards.lose([fence.shard for fence in fences])
        release = self.coordinator.store.release
        await asyncio.gather(*(reliably(partial(release, fence), self._is_over) for fence in fences))

    def _let_go(self) -> None:
        """Everything that is kept here of runs this node does not decide for is forgotten or stopped, but for work
        under a claim and work of shards in doubt."""
        owns, of, doubted = self.shards.owns, self.shards.of, self.shards.doubted
        self.coordinator.let_go()
        self.timers.drop_unless(owns)
        self.own_work.drop_unless(owns)
        self.outgoing.drop_unless(owns)
        self._stop_work(lambda run: not owns(run) and of(run) not in doubted)
        self.on_moved()

    def _stop_work(self, is_lost: Callable[[RunId], bool]) -> None:
        for attempt in self.executor.in_hand:
            if attempt.queue is None and attempt.identity not in self.claims and is_lost(attempt.run):
                self.executor.stop(*attempt.identity)

    # Living and ending

    async def look(self) -> None:
        """Somebody else has written: requests, answers, or a new version of a workflow."""
        self.other_nodes.look()
        await self._reliably(self.inbox.read)

    async def wait_quiet(self) -> None:
        """Until nothing happens any more without news from outside: executors, clocks, people."""
        while True:
            await self.outgoing.wait_idle()
            if self.coordinator.is_quiet or self.coordinator.stopped is not None:
                return
            await self.coordinator.wait_quiet()

    async def close(self, grace_ms: int = 0, handed_over: Callable[[], None] = lambda: None) -> None:
        """Lets work in hand end for so long, commits what it reports, then stops. What is left will be recovered; on a
        shared store shards are handed over first, so that others go on at once."""
        if self.shards.is_shared and self.shards.owned and not self._is_over():
            with suppress(TimeoutError):  # the store cannot be reached: the leases will run out
                await asyncio.wait_for(self.hand_over(self.shards.owned), PATIENCE_S)
            handed_over()
        self.timers.close()
        if self._stopping is not None:
            await self._stopping
        await self.executor.close(grace_ms)
        self.handover.give_up()
        await self.outgoing.close()
        await self._wait_written()
        self.other_nodes.close()
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

    async def _make_up(self, shards: Sequence[int] | None = None, graceful: bool = False) -> None:
        await self.recovery.recover(shards, graceful)
        await self.inbox.read()

    async def _reliably(self, step: Callable[[], Awaitable[None]]) -> None:
        """A step that may be begun again from the start, until the store answers."""
        await reliably(step, self._is_over)

    def _is_over(self) -> bool:
        return self.coordinator.stopped is not None

    def _due(self, run: RunId, timer: TimerId) -> None:
        future: asyncio.Future[InboxAnswer] = self.coordinator.future()

        def told(answered: asyncio.Future[InboxAnswer]) -> None:
            rejection = None if answered.cancelled() or answered.exception() else answered.result().rejection
            self.timers.settled(run, timer, rejection is not None and rejection.kind == "BAD_REQUEST")

        future.add_done_callback(told)
        self.coordinator.put(Item(run, FireTimer(timer), future=future))

    def _has_in_hand(self, run: RunId, token: TokenId, attempt: int) -> bool:
        return self.executor.has_in_hand(run, token, attempt) or self.coordinator.has_handed_out(run, token)

    def _is_gone(self, worker: str | None) -> bool:
        """A store of one owner is executed for by that owner alone, and the last one is gone. On a shared one nobody
        knows before the lease is over: a result may be under way."""
        return not self.shards.is_shared or worker is None

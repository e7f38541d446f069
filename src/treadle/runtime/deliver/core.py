"""The moving parts of an engine put together: coordinator, delivery, timers, recovery, on any clock, executor, courier.

Owns the order of starting and stopping, and the steps taken when shards are gained, lost or handed over. `Engine` runs
it for real; scenarios run it on a virtual clock with scripted work. Must not know concrete stores, executors or
couriers, nor why a shard is gained or lost (`membership`).

A shard is gained with `gain`: effects and work that its last owner left undone are carried out again. It leaves in one
of two ways. `lose`: another node has it already, so its work here stops and its states are forgotten. `hand_over`: it
is given up in good order, so its work here goes on under a claim, its decisions become durable, then the lease is
released.

`doubt` comes before either, when the lease may have run out: work goes on, and its reports are kept back. Mostly the
store was unreachable for all nodes. Then the shard comes back, and no work has to be executed twice.
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
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.patience import reliably
from treadle.runtime.surroundings.ports import Clock, Courier, MakeExecutor, Tracing
from treadle.store.port import Fence, InboxAnswer, OutboxRow, Store

PATIENCE_S = 10.0
"""How long a closing engine waits for a store that writes nothing: as long as another process may lock a file."""

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
        tracing: Tracing | None = None,
    ) -> None:
        self.tracing = tracing
        self.library = Library(store)
        self.shards = Shards(store.shards)
        self.coordinator = Coordinator(store, self.shards, clock, self.library, self)
        self.timers = Timers(store, lambda: self.shards.owned, clock, self._due)
        if tracing is not None:
            self.coordinator.observers.append(tracing.observe)
        self.outgoing = Outgoing(self.coordinator, courier, clock, tracing)
        self.claims = Claims()
        progress = Progress(self.coordinator.tell, clock)
        attempts = AttemptMaker(store, self.coordinator.state, progress, random, tracing)
        self.own_work = OwnWork(self.coordinator, make_executor, attempts, progress, self.claims)
        self.executor = self.own_work.executor
        self.delivery = Delivery(self.coordinator, self.own_work, self.timers, self.outgoing, tracing)
        self.inbox = Inbox(self.coordinator, self.delivery)
        self.recovery = Recovery(self.coordinator, self.delivery, self._has_in_hand, self._is_gone)
        self.other_nodes = OtherNodes(
            store, self.shards, clock, self.coordinator.spawn, self.coordinator.settle, self._is_over
        )
        self.handover = Handover(self.coordinator, self.executor, clock, self.claims, self.own_work.report)
        self.other_nodes.left_in_inbox = self.inbox.give_back
        self.other_nodes.signed = self.claims.signed
        self.on_moved: Callable[[], None] = lambda: None
        """Called when shards were gained or left."""
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
        """After a failed commit: carries out again every effect that may have been left undone, timers included."""
        await self._reliably(self.timers.turn_page)
        await self._reliably(self._recover)

    def not_here(self, item: Item) -> None:
        self.other_nodes.take(item)

    def lost(self, shards: Collection[int]) -> None:
        self.lose(shards, reason="the store says that another node owns them")

    def fenced(self) -> None:
        self.timers.close()
        self._stopping = asyncio.get_running_loop().create_task(self.executor.close(0))

    def defect(self, problem: Exception) -> None:
        """Does nothing: `refusals` has logged it, and other runs go on."""

    # Other listeners

    def hear_answered(self, heard: Callable[[list[RunId]], None]) -> None:
        """Calls `heard` with the runs whose requests in the inbox have been answered."""
        self._hear_answered = heard

    def offer_work(self, shape: Shape, heard: Callable[[list[Decided]], None]) -> None:
        """Workers claim the queue work of this store: `shape` turns it into offers, and `heard` is called with durable
        decisions."""
        self.coordinator.offer_work(shape)
        self._hear_durable = heard

    async def open(self) -> None:
        """Reads the deployed workflows and the next timers."""
        await self.library.refresh()
        await self.timers.open(lambda: self.coordinator.spawn(self._reliably(self.timers.turn_page)))

    # Shards are gained, lost and handed over

    async def gain(self, *fences: Fence, graceful: bool = False) -> None:
        """Decides for these shards from now on. Returns when every effect left undone has been handed to its handler,
        not when it is done. `graceful`: the last owner was closed, not killed."""
        self.accept(fences)
        await self.recover_shards(fences, graceful)

    def accept(self, fences: Collection[Fence]) -> None:
        """The first half of `gain`: decides for these shards from this very moment."""
        for fence in fences:
            self.claims.owner = self.other_nodes.owner = fence.owner
        anew = self.shards.gain(fences)
        self.delivery.held.hold([fence.shard for fence in fences])
        self._stop_work(lambda run: self.shards.of(run) in anew)  # another node has had them, and executes it
        self.other_nodes.release_held(self.coordinator.put)
        self.on_moved()

    async def recover_shards(self, fences: Collection[Fence], graceful: bool = False) -> None:
        """The second half of `gain`: carries out again the effects that the last owner of these shards left undone."""
        shards = tuple(fence.shard for fence in fences)
        if self.tracing is not None and not graceful:
            self.tracing.took_over(shards, self.shards.of)
        holds = self.delivery.held.of(shards)
        try:
            await self.coordinator.drained()  # an earlier result may be in a batch that is being refused
            await self._reliably(self.library.refresh)
            await self._reliably(self.timers.turn_page)
            await self._reliably(lambda: self._recover(shards, graceful))
        finally:
            self.delivery.let_on(holds)  # usually they are: only reading that fails for good has left them

    def lose(self, shards: Collection[int], reason: str) -> None:
        """Another node owns these shards: decides and writes nothing about their runs any more, and stops their
        work."""
        lost = sorted((self.shards.fences.keys() | self.shards.doubted.keys()) & set(shards))
        if lost:
            log.warning("shards were lost", shards=ranges(lost), reason=reason)
            self.shards.lose(lost)
            self._let_go()
            self.other_nodes.release_held(self.coordinator.put)

    def doubt(self, shards: Collection[int], reason: str) -> None:
        """Another node may own these shards: decides and writes nothing about their runs before the store has said
        which node owns them. Work for them goes on."""
        doubtful = sorted(self.shards.fences.keys() & set(shards))
        if doubtful:
            log.warning("shards are in doubt", shards=ranges(doubtful), reason=reason)
            self.shards.doubt(doubtful)
            self._let_go()

    async def hand_over(self, shards: Collection[int]) -> None:
        """Gives shards back in good order: work in hand goes on under a claim, and everything decided is durable before
        another node can take the shards."""
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
        """Forgets the states, timers and rows of runs this node does not own, and stops their work, except for work
        under a claim and work for shards in doubt."""
        owns, of, doubted = self.shards.owns, self.shards.of, self.shards.doubted
        self.coordinator.let_go()
        self.timers.drop_unless(owns)
        self.own_work.drop_unless(owns)
        self.outgoing.drop_unless(owns)
        if self.tracing is not None:
            self.tracing.drop_unless(owns)
        self._stop_work(lambda run: not owns(run) and of(run) not in doubted)
        self.on_moved()

    def _stop_work(self, is_lost: Callable[[RunId], bool]) -> None:
        for attempt in self.executor.in_hand:
            if attempt.queue is None and attempt.identity not in self.claims and is_lost(attempt.run):
                self.executor.stop(*attempt.identity)

    # Running and closing

    async def look(self) -> None:
        """Another process may have written requests or answers: reads them."""
        self.other_nodes.look()
        await self._reliably(self.inbox.read)

    async def wait_quiet(self) -> None:
        """Waits until nothing more happens without a report, a timer or a request."""
        while True:
            await self.outgoing.wait_idle()
            if self.coordinator.is_quiet or self.coordinator.stopped is not None:
                return
            await self.coordinator.wait_quiet()

    async def close(self, grace_ms: int = 0, handed_over: Callable[[], None] = lambda: None) -> None:
        """Waits up to `grace_ms` for work in hand, commits its results, then stops. The next owner recovers the rest.
        On a shared store the shards are handed over first, so that other nodes go on at once; `handed_over` is called
        then."""
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
        """Waits until everything is durable, or the store has written nothing for a while. A decision that is not
        durable has not been answered, so giving it up breaks no promise."""
        quiet = asyncio.ensure_future(self.coordinator.wait_quiet())
        written = -1
        while not quiet.done() and written != self.coordinator.written:
            written = self.coordinator.written
            await asyncio.wait([quiet], timeout=PATIENCE_S)
        quiet.cancel()

    async def _recover(self, shards: Sequence[int] | None = None, graceful: bool = False) -> None:
        await self.recovery.recover(shards, graceful)
        await self.inbox.read()

    async def _reliably(self, step: Callable[[], Awaitable[None]]) -> None:
        """Repeats a step from its beginning until the store answers."""
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
        """Whether a worker is known to be gone. On a store with one owner only that owner executes work, and the last
        one is gone. On a shared store a named worker may still send a result until its lease runs out."""
        return not self.shards.is_shared or worker is None

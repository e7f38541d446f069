"""A node among others on one store: says that it is alive, takes its share of the shards, gives back what is too much.

Owns the heartbeat and which shards this node reaches for. Promises that what a dead node held is taken over after its
lease (`ttl_ms`) and a beat, or with the next beat of a node on its machine, which sees that its process is gone; that a
node nobody has heard of for as long stops writing by itself, although fencing would refuse it anyway; that shards move
only as `balance` says, and in good order (`Core.hand_over`). Everything is compared by the store's clock; durations by
one that nobody can set. Must not know runs.

    beat ─► standing ─► lost: mine no longer        ─► core.lose
      ▲          │────► too many: above my share    ─► core.hand_over ─► others are nudged
      │          └────► free: dealt to me           ─► lease ─► core.gain
      └── every ttl/4, or when somebody says that something has changed

Failure
    a beat fails              tried again soon; the leases live on until a ttl after the last one that succeeded
    it fails for a ttl        everything is in doubt: nothing is decided or written, work in hand goes on. The next beat
                              that succeeds shows what others have taken; the rest is taken back, and if nobody had it
                              meanwhile its work is still this node's own
    the answer gets lost      the store may hold leases for this node that it does not know: the next beat shows them,
                              and they are taken up like others
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from treadle.display.numbers import ranges
from treadle.errors import StoreUnavailable
from treadle.runtime.base.logs import logger
from treadle.runtime.base.outage import OUTAGE
from treadle.runtime.base.ports import Alarm, SteadyClock
from treadle.runtime.cluster.balance import moves
from treadle.runtime.cluster.predecessor import is_dead
from treadle.runtime.deliver.core import Core
from treadle.store.members import Member, Members, Standing
from treadle.store.port import Fence

TTL_MS = 10_000
"""Longer than a pause of the garbage collector, a busy machine or a restart of the database; not so long that somebody
who waits for a run whose node has died begins to wonder."""
BEATS = 4
"""Per ttl: three may be lost or late."""
LOOKS = 40
"""At most so many beats per ttl, however often somebody says that something has changed."""
TRY_AGAIN = 16
"""A beat that failed is tried again after this part of the ttl."""

log = logger("treadle.membership")


class Membership:
    """See the module's docstring. `open` before anything else; `close` hands everything over and closes the core."""

    def __init__(
        self, members: Members, core: Core, node: Member, clock: SteadyClock, random: Random, ttl_ms: int = TTL_MS
    ) -> None:
        self._members = members
        self._core = core
        self._node = node
        self._clock = clock
        self._random = random
        self._ttl_ms = ttl_ms
        self.nudge: Callable[[], None] = lambda: None
        """Called when shards have become free: others should look."""
        self.lacks: Callable[[], dict[str, tuple[str, ...]]] = dict
        """What work that waits in queues needs and is not here: with every beat others are told."""
        self.heard: Callable[[Standing, int], None] = lambda _standing, _took_ms: None
        """Called with every standing, and how long it took: for a clock that follows the store's."""
        self._beating = asyncio.Lock()
        self._next: Alarm | None = None
        self._doubt: Alarm | None = None
        self._began = 0
        """When the last beat did."""
        self._leaving: set[int] = set()
        """Being handed over."""
        self._neighbours: dict[str, Member] = {}
        """Owner → node, as last seen."""
        self._given_back = 0
        """How often something was: what was seen before that is not news."""
        self._closed = False

    @property
    def owner(self) -> str:
        return self._node.owner

    async def open(self) -> None:
        """Joins, and takes what is free and its share. Raises StoreUnavailable."""
        async with self._beating:
            gained = await self._beat()
        if gained:
            await self._core.make_up(gained)
        self._again_in(self._ttl_ms // BEATS)

    def look(self) -> None:
        """Something may have changed among the nodes: sooner than at the next beat."""
        if not self._closed and not self._beating.locked():
            self._again_in(max(0, self._began + self._ttl_ms // LOOKS - self._clock.elapsed()))

    async def close(self, grace_ms: int = 0) -> None:
        """Hands everything over, lets work in hand end for so long, leaves."""
        self._node = replace(self._node, coordinates=False)
        try:
            async with self._beating:  # what is being taken comes to its end first
                await self._members.beat(self._node, self._ttl_ms)
        except StoreUnavailable as problem:
            log.warning("others could not be told that this node leaves", error=str(problem))
        try:
            await self._core.close(grace_ms, self.nudge)
        finally:
            self._closed = True
            for alarm in (self._next, self._doubt):
                if alarm is not None:
                    alarm.cancel()
        try:
            await self._members.leave(self._node.owner)
        except StoreUnavailable as problem:
            log.warning("this node could not sign off: it will be missed after a while", error=str(problem))
        self.nudge()

    # The heartbeat

    def _again_in(self, ms: int) -> None:
        if self._next is not None:
            self._next.cancel()
        planned = self._clock.elapsed() + ms
        self._next = None if self._closed else self._clock.call_after(ms, lambda: self._ring(planned))

    def _ring(self, planned: int) -> None:
        self._next = None
        self._node = replace(self._node, behind=max(0, self._clock.elapsed() - planned), lacks=self.lacks())
        self._core.coordinator.spawn(self._go_on())

    async def _go_on(self) -> None:
        """One beat and what follows from it; then the next one is due, whatever became of this one."""
        if self._beating.locked():
            return  # whoever beats goes on
        pause = self._ttl_ms // TRY_AGAIN
        try:
            async with self._beating:
                gained = await self._beat()
            pause = int(self._ttl_ms / BEATS * self._random.uniform(0.8, 1.0))
            if gained:
                self._core.coordinator.spawn(self._core.make_up(gained))
        except StoreUnavailable as problem:
            OUTAGE.failed("heartbeat", problem)
        finally:
            self._again_in(pause)

    async def _beat(self) -> list[Fence]:
        """What was gained."""
        self._began, given_back = self._clock.elapsed(), self._given_back
        standing = await self._members.beat(self._node, self._ttl_ms)
        OUTAGE.answered()
        if await self._bury_dead(standing):
            standing = await self._members.beat(self._node, self._ttl_ms)
        self._trust_until(self._began + self._ttl_ms)
        self.heard(standing, self._clock.elapsed() - self._began)
        return await self._follow(standing, is_fresh=given_back == self._given_back)

    async def _bury_dead(self, standing: Standing) -> bool:
        """Whether there were nodes whose process is known to be dead: killed, on this machine. Nobody has to wait for
        their leases."""
        dead = [node for node in standing.nodes if node.owner != self._node.owner and is_dead(node.process)]
        for node in dead:
            await self._members.bury(node.owner)
            self._neighbours.pop(node.owner, None)
            log.warning("a node on this machine is dead: taking over", node=node.name)
        return bool(dead)

    def _trust_until(self, instant: int) -> None:
        if self._doubt is not None:
            self._doubt.cancel()
        self._doubt = self._clock.call_after(max(0, instant - self._clock.elapsed()), self._give_up)

    def _give_up(self) -> None:
        """Others may have taken everything over."""
        self._doubt = None
        self._neighbours.clear()  # whoever is missed after this was perhaps only as lonely
        self._core.doubt(tuple(self._core.shards.fences), f"no heartbeat has succeeded for {self._ttl_ms} ms")

    # What follows from how things stand

    async def _follow(self, standing: Standing, is_fresh: bool) -> list[Fence]:
        me, shards = self._node.owner, self._core.shards
        mine = {lease.shard: Fence(me, lease.shard, lease.epoch) for lease in standing.leases if lease.owner == me}
        held = {lease.shard: lease.owner for lease in standing.leases}
        gone = [shard for shard, fence in shards.fences.items() if mine.get(shard) != fence]
        taken = [shard for shard in (*gone, *shards.doubted) if held.get(shard, me) != me]
        self._core.lose(taken, "another node has taken them over")
        self._core.doubt(gone, "their leases have run out")
        coordinators = {node.owner for node in standing.nodes if node.coordinates}
        planned = moves(me, coordinators, held, shards.count)
        too_many = set(planned.release) - self._leaving
        if too_many:
            self._core.coordinator.spawn(self._hand_over({shard: mine[shard] for shard in too_many}))
        found = [mine[shard] for shard in mine.keys() - shards.fences.keys() - self._leaving - set(planned.release)]
        gained = (found if is_fresh else []) + await self._take(planned.take)
        if gained:
            self._core.accept(gained)  # before anybody looks again
        self._tell(standing, gained)
        return gained

    def _tell(self, standing: Standing, gained: list[Fence]) -> None:
        """In the log: who has come and gone, and what this node has now. One that has left was heard of a moment
        before, one that has died was not."""
        before, taken = self._neighbours, ranges(sorted(fence.shard for fence in gained))
        self._neighbours = {node.owner: node for node in standing.nodes if node.owner != self._node.owner}
        for owner in before.keys() - self._neighbours.keys():
            if standing.now - before[owner].beat >= self._ttl_ms:
                log.warning("a node is gone without a word", node=before[owner].name, taken_over=taken or "nothing yet")
            else:
                log.info("a node has left", node=before[owner].name)
        for owner in self._neighbours.keys() - before.keys():
            log.info("there is another node", node=self._neighbours[owner].name)
        if taken:
            log.info("shards were taken", shards=taken, all=len(self._core.shards.fences))

    async def _take(self, wanted: tuple[int, ...]) -> list[Fence]:
        """Side by side: a database syncs many at once. One whose answer gets lost is found at the next beat."""
        lease = self._core.coordinator.store.lease
        asked = (lease(shard, self._node.owner, None, self._ttl_ms) for shard in wanted if shard not in self._leaving)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for problem in answers:
            if isinstance(problem, StoreUnavailable):
                OUTAGE.failed("taking shards", problem)
            elif isinstance(problem, BaseException):
                log.error("a shard could not be taken", exc_info=problem)
        return [fence for fence in answers if isinstance(fence, Fence)]

    async def _hand_over(self, fences: dict[int, Fence]) -> None:
        self._leaving |= fences.keys()
        unknown = [fence for shard, fence in fences.items() if shard not in self._core.shards.fences]
        try:
            await self._core.hand_over(sorted(fences))
            for fence in unknown:  # taken by a call whose answer was lost
                await self._core.coordinator.store.release(fence)
        except StoreUnavailable as problem:  # the next beat finds what is still held
            OUTAGE.failed("handing over", problem)
        finally:
            self._leaving -= fences.keys()
            self._given_back += 1
        self.nudge()

"""The membership of a node on a shared store: sends heartbeats, takes its share of the shards, gives back the surplus.

Owns the heartbeat and the choice of shards. Promises that the shards of a dead node are taken over one beat after its
lease (`ttl_ms`) has run out, or with the next beat of a node on the same machine, which sees that the process is gone;
that a node whose beats fail for a whole lease stops writing by itself, although fencing would refuse its writes anyway;
that shards move only as `balance` says, and in good order (`Core.hand_over`). Instants are compared by the store's
clock, durations by a clock that cannot be set. Must not know runs.

    beat ─► standing ─► lost: mine no longer        ─► core.lose
      ▲          │────► too many: above my share    ─► core.hand_over ─► others are nudged
      │          └────► free: dealt to me           ─► lease ─► core.gain
      └── every ttl/4, or when a notice says that something has changed

Failure
    a beat fails              it is tried again soon; the leases last until a ttl after the last successful beat
    it fails for a ttl        all shards are in doubt: nothing is decided or written, work in hand goes on. The next
                              successful beat shows which shards others have taken. The rest is taken back; if no other
                              node had a shard meanwhile, its work is still this node's own
    the answer gets lost      the store may hold leases for this node that it does not know of: the next beat shows
                              them, and they are taken up like others
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from msgspec.structs import replace

from treadle.display.numbers import ranges
from treadle.errors import StoreUnavailable
from treadle.runtime.cluster.balance import moves
from treadle.runtime.cluster.predecessor import is_dead
from treadle.runtime.deliver.core import Core
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.outage import OUTAGE
from treadle.runtime.surroundings.ports import Alarm, SteadyClock
from treadle.store.members import Member, Members, Standing
from treadle.store.port import Fence

TTL_MS = 10_000
"""Longer than a pause of the garbage collector, a busy machine or a restart of the database; short enough for a user
who waits for a run whose node has died."""
BEATS = 4
"""Beats per ttl: three in a row may be lost or late."""
LOOKS = 40
"""The most beats per ttl, however many notices of changes arrive."""
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
        """Called when shards have become free, so that other nodes look."""
        self.lacks: Callable[[], dict[str, tuple[str, ...]]] = dict
        """The functions that waiting queue work needs and this node lacks; sent with every beat."""
        self.heard: Callable[[Standing, int], None] = lambda _standing, _took_ms: None
        """Called with every standing and its round trip: for a clock that follows the store's."""
        self._beating = asyncio.Lock()
        self._next: Alarm | None = None
        self._doubt: Alarm | None = None
        self._began = 0
        """When the last beat succeeded."""
        self._leaving: set[int] = set()
        """Shards that are being handed over."""
        self._neighbours: dict[str, Member] = {}
        """Owner → node, as last seen."""
        self._given_back = 0
        """How often shards were given back: a standing read before that is outdated."""
        self._closed = False

    @property
    def owner(self) -> str:
        return self._node.owner

    async def open(self) -> None:
        """Joins, and takes its share of the free shards. Raises StoreUnavailable."""
        async with self._beating:
            gained = await self._beat()
        if gained:
            await self._core.recover_shards(gained)
        self._again_in(self._ttl_ms // BEATS)

    def look(self) -> None:
        """Beats soon: something may have changed among the nodes."""
        if not self._closed and not self._beating.locked():
            self._again_in(max(0, self._began + self._ttl_ms // LOOKS - self._clock.elapsed()))

    async def close(self, grace_ms: int = 0) -> None:
        """Hands all shards over, lets work in hand go on for `grace_ms`, and leaves."""
        self._node = replace(self._node, coordinates=False)
        try:
            async with self._beating:  # shards that are being taken are taken first
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
        """One beat and its consequences; then the next one is scheduled, even if this one failed."""
        if self._beating.locked():
            return  # the heartbeat must go on
        pause = self._ttl_ms // TRY_AGAIN
        try:
            async with self._beating:
                gained = await self._beat()
            pause = int(self._ttl_ms / BEATS * self._random.uniform(0.8, 1.0))
            if gained:
                self._core.coordinator.spawn(self._core.recover_shards(gained))
        except StoreUnavailable as problem:
            OUTAGE.failed("heartbeat", problem)
        finally:
            self._again_in(pause)

    async def _beat(self) -> list[Fence]:
        """The shards that were gained."""
        self._began, given_back = self._clock.elapsed(), self._given_back
        standing = await self._members.beat(self._node, self._ttl_ms)
        OUTAGE.answered()
        if await self._bury_dead(standing):
            standing = await self._members.beat(self._node, self._ttl_ms)
        self._trust_until(self._began + self._ttl_ms)
        self.heard(standing, self._clock.elapsed() - self._began)
        return await self._follow(standing, is_fresh=given_back == self._given_back)

    async def _bury_dead(self, standing: Standing) -> bool:
        """Removes nodes of this machine whose process is dead; True if there were any. Nobody has to wait for their
        leases."""
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
        """All shards are in doubt: other nodes may have taken them over."""
        self._doubt = None
        self._neighbours.clear()  # a node that missed its beat may itself have lost the store; wait one more beat
        self._core.doubt(tuple(self._core.shards.fences), f"no heartbeat has succeeded for {self._ttl_ms} ms")

    # Consequences of a standing

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
            self._core.accept(gained)  # before the next look
        self._tell(standing, gained)
        return gained

    def _tell(self, standing: Standing, gained: list[Fence]) -> None:
        """Logs which nodes have come and gone, and the shards of this node. A node that left had sent a beat a moment
        before; one that died had not."""
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
        """Takes shards concurrently, because a database syncs many commits at once. A lease whose answer gets lost is
        found at the next beat."""
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

"""A process of a simulated world: the production runtime, on a machine that may die or stand still at any step.

Owns the putting together, as `runtime.engine` and `runtime.worker` do it for people: what coordinates, executes and
claims here is what serves them. Only the ports are virtual: clock, event loop, store line, notices, executor, courier.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from random import Random
from typing import TYPE_CHECKING

from tests.simulator.hub import Ear
from tests.simulator.line import LEASE_MS, STALL_MS, Line
from tests.simulator.schedule import Host
from treadle.actions.protocol import Call, Reply
from treadle.actions.registry import Registry
from treadle.errors import StoreUnavailable
from treadle.kernel.state import RunState
from treadle.model.effects import CallWebhook, Effect, OpenGate
from treadle.model.ids import RunId
from treadle.runtime.cluster.membership import Membership
from treadle.runtime.cluster.notices_heard import NoticesHeard
from treadle.runtime.command import presence
from treadle.runtime.command.commander import Commander, Remote
from treadle.runtime.command.direct import Direct, Shared
from treadle.runtime.deliver.core import Core
from treadle.runtime.execute.executor import LocalExecutor
from treadle.runtime.execute.workshop import Workshop
from treadle.runtime.queue.claimant import Claimant
from treadle.runtime.queue.engine_queues import ALONE, EngineQueues, listen
from treadle.runtime.surroundings.clock import SharedClock
from treadle.runtime.surroundings.ports import Alarm, Clock, MakeExecutor, Report
from treadle.store.members import Member
from treadle.store.notices import NODES
from treadle.store.rows import SHARD

if TYPE_CHECKING:
    from tests.simulator.world import World

CLAIM_MS = 200
FOREVER_MS = 1 << 50
DOWN_MS = (10, 700)
SKEW_MS = 250
AGAIN_S = 0.1
FAULT_EVERY = 10
"""Steps, on average, after which the question is asked whether a process dies or stands still: asking costs time."""


class NodeClock(SharedClock):
    """The machine's clock is wrong by `skew`; the store's is right, and heard of with every beat."""

    def __init__(self, host: Host, skew: int) -> None:
        self._schedule = host.schedule
        self._loop = host.loop
        self._ahead = host.schedule.now - self.elapsed() + skew

    def elapsed(self) -> int:
        return int(self._schedule.time() * 1_000 + 1e-6)

    def call_after(self, ms: int, action: Callable[[], None]) -> Alarm:
        assert self._loop is not None
        return self._loop.call_later(ms / 1_000, action)


class Process(Host):
    """Dies and comes back while there are faults."""

    death = "crash"
    """The fault it dies of."""

    def __init__(self, name: str, world: World) -> None:
        super().__init__(name, world.schedule)
        self.world = world
        self.lives = 0
        self._steps_to_fault = 1
        self.start()

    def start(self) -> None:
        self.lives += 1
        self.boot(self._main)

    def about_to_step(self) -> bool:
        if self.stalled_until > self.schedule.time():
            return False
        if self.world.faults.calm:
            return True
        self._steps_to_fault -= 1
        return self._steps_to_fault > 0 or self._is_spared()

    def _is_spared(self) -> bool:
        """False: this is where it crashes or stands still."""
        faults, draw, world = self.world.faults, self.world.draw, self.world
        self._steps_to_fault = draw.between(1, 2 * FAULT_EVERY)
        if faults.happens(self.death, 0.02 * FAULT_EVERY):
            self.die()
            world.outside.loop.call_later(draw.between(*DOWN_MS) / 1_000, self.come_back)  # type: ignore[union-attr]
            return False
        if faults.happens("stall", 0.02 * FAULT_EVERY):
            self.stand_still(draw.between(*STALL_MS))
            return False
        return True

    def die(self) -> None:
        super().die()
        self.world.shelves.abandon(self.owner)

    def come_back(self) -> None:
        if not self.is_up:
            self.start()

    async def _main(self) -> None:
        """Until it has opened; what was begun lives on the loop. If the store is away the process ends, with everything
        that was begun, and is started again."""
        try:
            await self._open()
        except StoreUnavailable:
            self.world.outside.loop.call_soon(self._give_up, self.lives)  # type: ignore[union-attr]

    def _give_up(self, life: int) -> None:
        if self.is_up and self.lives == life:
            self.die()
            self.world.outside.loop.call_later(AGAIN_S, self.come_back)  # type: ignore[union-attr]

    async def _open(self) -> None:
        raise NotImplementedError

    def _clock(self) -> NodeClock:
        draw, faults = self.world.draw, self.world.faults
        return NodeClock(
            self,
            draw.between(-SKEW_MS, SKEW_MS) if self.world.plan.shards > 1 and faults.happens("clock_skew", 10) else 0,
        )

    def _hands(self, clock: Clock) -> Callable[[Report], LocalExecutor]:
        registry = Registry()
        registry.register(Bench(self))
        shop = Workshop(registry, clock, name=self.owner)
        return lambda report: LocalExecutor(shop, report, name=self.owner, lease_ms=CLAIM_MS)

    @property
    def owner(self) -> str:
        return f"{self.name}.{self.lives}"

    def _random(self) -> Random:
        return Random(f"{self.world.plan.seed}/{self.name}/{self.lives}")


class Bench:
    """The crew at one process: what it executes there is known to have been executed there."""

    name = "mock"

    def __init__(self, process: Process) -> None:
        self._process = process

    def run(self, call: Call) -> Reply:
        core: Core | None = getattr(self._process, "core", None)
        fence = core.shards.fences.get(core.shards.of(call.facts.run)) if core is not None else None
        return self._process.world.crew.run(call, self._process.owner, fence.epoch if fence is not None else 0)


class Engine(Process):
    """Coordinates and executes: alone on its store, or one of several."""

    core: Core | None = None
    commander: Commander | None = None

    def die(self) -> None:
        super().die()
        self.core = self.commander = None

    async def _open(self) -> None:
        line, ear, clock = Line(self.world, self, self.owner), Ear(self.world, self), self._clock()
        execute = self._hands(clock)
        core = Core(line, clock, execute, Courier(self.world), self._random())  # type: ignore[arg-type]
        heard = NoticesHeard(core, ear, core.library.refresh)
        self.core = core
        if line.shards > 1:
            await self._join(core, line, ear, clock, execute)
        else:
            await self._own(core, line, ear, clock, execute)
        heard.open(is_shared=line.shards > 1)

    async def _own(self, core: Core, line: Line, ear: Ear, clock: Clock, execute: MakeExecutor) -> None:
        owner = self.owner
        commander = Direct(core, lambda: None)
        engine_queues = self._queues(core, commander, line, ear, clock, execute, worker=ALONE)
        await core.open()
        fence = await line.lease(SHARD, owner, clock.now(), FOREVER_MS, evict=True)
        assert fence is not None, "an evicting lease is always given"
        await engine_queues.bury_predecessor()
        await core.gain(fence)
        engine_queues.open()
        self.commander = commander

    def _queues(
        self,
        core: Core,
        commander: Commander,
        line: Line,
        ear: Ear,
        clock: Clock,
        execute: MakeExecutor,
        *,
        worker: str,
    ) -> EngineQueues:
        return EngineQueues(
            core,
            commander,
            line,  # type: ignore[arg-type]
            ear,
            execute,
            clock,
            worker=worker,
            queues=None,
            lease_ms=CLAIM_MS,
            random=self._random(),
        )

    async def _join(self, core: Core, line: Line, ear: Ear, clock: NodeClock, execute: MakeExecutor) -> None:
        owner = self.owner
        remote = Remote(line, clock, ear, presence.Shared(line), core.coordinator.feed)  # type: ignore[arg-type]
        commander = Shared(core, lambda: None, remote, ear)
        engine_queues = self._queues(core, commander, line, ear, clock, execute, worker=f"{owner}:hands")
        await core.open()
        member = Member(owner, self.name)
        membership = Membership(line, core, member, clock, self._random(), LEASE_MS)  # type: ignore[arg-type]
        membership.nudge = lambda: ear.say(NODES)
        membership.heard = lambda standing, took_ms: clock.hear(standing.now, took_ms)
        ear.hear(NODES, lambda _name: membership.look())
        await membership.open()
        engine_queues.open()
        self.commander = commander

    def state(self, run: RunId) -> RunState | None:
        """What it decides on at this moment, if the run is in its memory."""
        if self.core is None:
            return None
        hot = self.core.coordinator._hots.get(run)
        return hot.state if hot is not None else None


class Worker(Process):
    """Only executes: claims queue work."""

    death = "dead_worker"

    async def _open(self) -> None:
        line, ear, clock = Line(self.world, self, self.owner), Ear(self.world, self), self._clock()
        remote = Remote(line, clock, ear, presence.Shared(line))  # type: ignore[arg-type]
        await remote.library.refresh()
        claimant = Claimant(
            remote,
            line,  # type: ignore[arg-type]
            self._hands(clock),
            clock,
            worker=self.owner,
            queues=None,
            lease_ms=CLAIM_MS,
            random=self._random(),
        )
        listen(ear, claimant)
        claimant.open()


class Courier:
    """Tells the people outside; a receiver may not be there, or hear everything twice."""

    def __init__(self, world: World) -> None:
        self._world = world

    def turn(self, _effect: Effect, _context: object) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def carry(self, run: RunId, effect: Effect, _context: object) -> None:
        world = self._world
        if world.faults.happens("lost_message"):
            raise ConnectionError("nobody is there")
        for _ in range(2 if world.faults.happens("duplicate_effect") else 1):
            if isinstance(effect, OpenGate):
                world.people.attend(run, effect)
            elif isinstance(effect, CallWebhook):
                world.people.call_back(run, effect)
        if world.faults.happens("lost_reply"):
            raise ConnectionError("the answer got lost")

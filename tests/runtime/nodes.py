"""Several nodes on one memory store, in one process, on one virtual clock: they come, go, stall and die as told.

Every node has a door to the store and a clock of its own. A dead node hears nothing and reaches nothing; a stalled one
goes on as if nothing had happened when it wakes up, with whatever it was about to write.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import Any, cast

from tests.runtime.cores import Letters
from tests.runtime.executing import VirtualClock, turns
from treadle.actions.registry import Registry
from treadle.errors import EngineStopped, StoreUnavailable
from treadle.model.commands import Command, SendSignal, StartRun
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.cluster.membership import Membership
from treadle.runtime.coordinate.library import Library
from treadle.runtime.coordinate.shards import Moved
from treadle.runtime.deliver.core import Core
from treadle.runtime.execute.executor import LocalExecutor
from treadle.runtime.execute.workshop import Workshop
from treadle.runtime.operate.fsck import check_store
from treadle.runtime.surroundings.ports import Alarm
from treadle.store.members import Member
from treadle.store.memory import MemoryStore
from treadle.store.port import InboxAnswer, InboxRequest, RunQuery, Store

TTL_MS = 10_000
POLL_MS = 1_000
"""Between looks into the inbox, as an engine does: wakes may be lost."""


class NodeClock:
    """The world's clock as one node sees it: it stands still while the node does."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.stalled = False
        self.dead = False
        self._missed: list[Callable[[], None]] = []

    def now(self) -> int:
        return self._clock.now()

    def elapsed(self) -> int:
        return self._clock.now()

    def call_at(self, due: int, action: Callable[[], None]) -> Alarm:
        return self._clock.call_at(due, lambda: self._ring(action))

    def call_after(self, ms: int, action: Callable[[], None]) -> Alarm:
        return self.call_at(self.now() + ms, action)

    def wake(self) -> None:
        self.stalled, missed = False, self._missed
        self._missed = []
        for action in missed:
            action()

    def _ring(self, action: Callable[[], None]) -> None:
        if self.stalled:
            self._missed.append(action)
        elif not self.dead:
            action()


class Door:
    """A node's way to the store: shut while it stalls, for ever when it is dead; `trouble` may fail a call before or
    after it has happened."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._open = asyncio.Event()
        self._open.set()
        self.dead = False
        self.trouble: Callable[[str], str] = lambda _verb: ""
        self.calls: Counter[str] = Counter()

    def shut(self) -> None:
        self._open.clear()

    def wake(self) -> None:
        self._open.set()

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)
        if not callable(verb):
            return verb

        async def call(*args: Any, **kwargs: Any) -> Any:
            await self._pass()
            trouble = self.trouble(name)
            if trouble == "before":
                raise StoreUnavailable("connection refused")
            self.calls[name] += 1
            result = await verb(*args, **kwargs)
            if trouble == "after":
                raise StoreUnavailable("connection lost", outcome_unknown=True)
            await self._pass()
            return result

        return call

    async def _pass(self) -> None:
        await self._open.wait()
        if self.dead:
            await asyncio.Event().wait()


class Here:
    """One node."""

    def __init__(self, world: World, name: str, coordinates: bool = True) -> None:
        self.world = world
        self.name = name
        self.clock = NodeClock(world.clock)
        self.door = Door(world.store)
        store = cast(Store, self.door)
        registry = Registry()
        registry.functions.update({name: self._mine(function) for name, function in world.functions.items()})
        self.letters = Letters()
        self.shop = Workshop(registry, self.clock, name=name)
        self.core = Core(
            store,
            self.clock,
            lambda report: LocalExecutor(self.shop, report, name=name),
            self.letters,
        )
        node = Member(name, name, coordinates)
        self.membership = Membership(cast(Any, self.door), self.core, node, self.clock, Random(name), TTL_MS)
        self.core.other_nodes.wake = world.rung
        self.membership.nudge = world.nudged
        self.is_open = False

    def _mine(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The world's function, told who executes it."""

        async def works(facts: Any) -> Any:
            return await function(self, facts)

        works.__annotations__ = {"facts": "AttemptFacts"}
        return works

    async def open(self) -> Here:
        await self.core.open()
        await self.membership.open()
        self.is_open = True
        self._poll()
        return self

    def _poll(self) -> None:
        if self.is_open and self.core.coordinator.stopped is None:
            self.look()
            self.clock.call_after(POLL_MS, self._poll)

    def look(self) -> None:
        self.core.coordinator.spawn(self.core.look())

    @property
    def owned(self) -> tuple[int, ...]:
        return self.core.shards.owned

    def kill(self) -> None:
        """Without another word."""
        self.is_open = False
        self.clock.dead = self.door.dead = True
        for attempt in self.core.executor.in_hand:
            self.core.executor.stop(*attempt.identity)
        self.core.coordinator.stop(EngineStopped("it was killed"))
        self.world.nodes.pop(self.name, None)

    def stall(self) -> None:
        """Its alarms do not ring and what it sends does not arrive, until it wakes up."""
        self.clock.stalled = True
        self.door.shut()

    def wake(self) -> None:
        self.door.wake()
        self.clock.wake()

    async def close(self, grace_ms: int = 0) -> None:
        await self.membership.close(grace_ms)
        await self.shop.close()
        self.is_open = False
        self.world.nodes.pop(self.name, None)


Function = Callable[[Here, Any], Awaitable[Any]]


class World:
    """The store, the clock, the nodes, and clients that ask any of them."""

    def __init__(self, functions: Mapping[str, Function], shards: int = 8) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore(shards=shards, now=self.clock.now)
        self.functions = functions
        self.nodes: dict[str, Here] = {}
        self.wakes_are_lost = False
        self._requests = itertools.count(1)
        self._graves: list[Here] = []

    async def __aenter__(self) -> World:
        return self

    async def __aexit__(self, *_exception: object) -> None:
        for node in list(self.nodes.values()):
            node.kill()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def node(self, name: str, coordinates: bool = True) -> Here:
        node = self.nodes[name] = Here(self, name, coordinates)
        self._graves.append(node)
        return await node.open()

    async def deploy(self, *workflows: Workflow) -> None:
        for workflow in workflows:
            await Library(cast(Store, self.store)).deploy(workflow)

    def rung(self, run: RunId) -> None:
        for node in self.nodes.values():
            if not self.wakes_are_lost and node.is_open and node.core.coordinator.owns(run):
                node.look()

    def nudged(self) -> None:
        for node in self.nodes.values():
            if not self.wakes_are_lost and node.is_open:
                node.membership.look()

    async def pass_time(self, ms: int, step_ms: int = 250) -> None:
        for _ in range(max(1, ms // step_ms)):
            await self.clock.advance(step_ms)
            await turns(30)

    async def later(self, ms: int) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.clock.call_at(self.clock.now() + ms, lambda: None if woken.done() else woken.set_result(None))
        await woken

    async def ask(self, node: Here, run: str, command: Command, workflow: str | None = None) -> InboxAnswer:
        """As a client of this node would: directly if it owns the run, else through the inbox."""
        request = InboxRequest(f"q{next(self._requests)}", RunId(run), command, self.clock.now(), workflow)
        try:
            return await node.core.coordinator.ask(RunId(run), command, workflow)
        except Moved:
            pass
        while (answer := await self.store.submit(request)) is None:
            self.rung(request.run)
            await self.later(200)
        return answer

    async def start(self, node: Here, workflow: str, run: str, **more: Any) -> InboxAnswer:
        return await self.ask(node, run, StartRun(RunId(run), version=0, **more), workflow)

    async def signal(self, node: Here, run: str, name: str, id: str) -> InboxAnswer:
        return await self.ask(node, run, SendSignal(name, id=id))

    async def statuses(self) -> dict[str, RunStatus]:
        return {row.run: row.status for row in await self.store.find_runs(RunQuery(limit=100_000))}

    async def wait_ended(self, count: int, patience_ms: int = 300_000) -> dict[str, RunStatus]:
        """Until so many runs exist and all have ended."""
        until = self.clock.now() + patience_ms
        while self.clock.now() < until:
            statuses = await self.statuses()
            if len(statuses) >= count and all(status in RUN_ENDED for status in statuses.values()):
                return statuses
            await self.pass_time(1_000)
        open_runs = {run: status for run, status in (await self.statuses()).items() if status not in RUN_ENDED}
        raise AssertionError(f"{len(open_runs)} of {len(await self.statuses())} runs have not ended: {open_runs}")

    async def fsck(self) -> list[str]:
        report = await check_store(cast(Store, self.store))
        return [f"{finding.run}: {finding.check}: {finding.message}" for finding in report.findings]

    def shares(self) -> dict[str, int]:
        return {name: len(node.owned) for name, node in self.nodes.items()}

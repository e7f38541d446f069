"""The composition root: a store, a coordinator, an executor and a courier become an engine people open and close.

    async with Engine("treadle.db") as engine:
        run = await engine.start(flow, {"topic": "tea"})
        print((await run.wait()).output)

Owns which parts are used, and the right to decide: one process coordinates a SQLite file, any number share a PostgreSQL
database, each with a part of the runs; everybody else may `connect`. Must not contain rules; must not be imported by
anything below the faces.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self, cast

import uuid_utils

from treadle.actions.registry import Registry
from treadle.errors import EngineStopped, TreadleError
from treadle.runtime.access.root import root_secret
from treadle.runtime.client import Client, Definition, Deployed
from treadle.runtime.cluster.membership import Membership
from treadle.runtime.cluster.notices_heard import NoticesHeard
from treadle.runtime.cluster.predecessor import this_process
from treadle.runtime.cluster.store_ownership import OpenStore, later, open_as_owner
from treadle.runtime.command import presence
from treadle.runtime.command.commander import Commander, Remote
from treadle.runtime.command.direct import Direct as Direct
from treadle.runtime.command.direct import Shared, Unopened
from treadle.runtime.definitions import kinds_of
from treadle.runtime.deliver.core import Core
from treadle.runtime.deliver.courier import WebhookCourier
from treadle.runtime.equipment import equip_on_store, executing, workshop
from treadle.runtime.garbage import spare_collector
from treadle.runtime.operate.retention import Retention
from treadle.runtime.operate.retention_setting import KeepRules
from treadle.runtime.queue.cannot_execute import CannotExecute
from treadle.runtime.queue.engine_queues import ALONE, EngineQueues
from treadle.runtime.scheduler import Scheduler
from treadle.runtime.service.subscription_sender import SubscriptionSender
from treadle.runtime.settings import EngineSettings as EngineSettings
from treadle.runtime.surroundings.clock import SharedClock, SystemClock
from treadle.runtime.surroundings.patience import reliably, until_open
from treadle.runtime.surroundings.ports import Clock, MakeExecutor
from treadle.runtime.traces.tracing import open_tracing
from treadle.store.members import Member, Members
from treadle.store.notices import MISSED, NODES, WORK, Notices, Silence
from treadle.store.places import StoreLocation, place_of
from treadle.store.port import Commit, Store
from treadle.store.rows import SHARD
from treadle.store.work import WorkStore
from treadle.tasks.trust import Trust

FOREVER_MS = 1 << 50
"""A SQLite file's lease never expires by itself: the operating system says when its owner is gone, and nothing has to
be written while nothing happens."""


class Engine(Client):
    """Coordinates and executes the runs of one store. See the module's docstring."""

    name: str
    settings: EngineSettings
    registry: Registry

    def __init__(
        self,
        store: str | Path | StoreLocation | Store = "treadle.db",
        *,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        registry: Registry | None = None,
        settings: EngineSettings | None = None,
        name: str | None = None,
        wait_for_ownership: bool = False,
    ) -> None:
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.settings = settings or EngineSettings()
        self.registry = registry or Registry()
        self.registry.functions.update(functions or {})
        self.registry.node = self.name
        self.registry.trust = Trust(self.settings.functions_allow)
        self.secrets_key_file = self.settings.secrets_key_file
        self._place = store
        self._wait = wait_for_ownership
        self._random = Random(uuid_utils.uuid4().int)
        self._closing: list[Callable[[], Awaitable[None]]] = []
        """Undone in reverse order."""
        self._is_entered = False
        self._observers: list[Callable[[Sequence[Commit], float], None]] = []
        super().__init__(cast(Commander, Unopened()))

    async def __aenter__(self) -> Self:
        if self._is_entered:
            raise EngineStopped("this engine is open already: use it, or make another Engine")
        self._is_entered = True
        try:
            await until_open(self._open, self._undo, self.settings.open_wait_ms)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        return bool(self._closing)

    async def close(self) -> None:
        """Lets work in hand end for `grace_ms`, then stops; what is left goes on when an engine opens the store."""
        try:
            await self._undo()
        finally:
            self._is_entered = False

    async def _undo(self) -> None:
        problems: list[Exception] = []
        while self._closing:
            try:
                await self._closing.pop()()
            except Exception as problem:  # the lock of the file must go, whatever else does not work
                problems.append(problem)
        if problems:
            raise problems[0]

    async def _open(self) -> None:
        if self.settings.spare_collector:
            spare_collector()
        self._owner = f"{self.name}:{secrets.token_hex(4)}"  # unlike every one before, also under the same name
        opened = await self._open_store()
        store, notices = opened.store, opened.notices
        clock: SystemClock | SharedClock = SystemClock() if opened.members is None else SharedClock()
        outside = await equip_on_store(self.registry, self.settings, store, clock)
        self._closing.append(self.registry.close)
        self.public_url, self.address_gate = outside.settings.public_url, outside.client.gate
        courier = WebhookCourier(outside, await root_secret(store), clock=clock)
        tracing = await open_tracing(self.settings.traces, store, clock, self._closing)
        shop = workshop(self.registry, clock, self.settings, self._owner)
        self._closing.append(shop.close)
        self.workshop = shop
        execute = executing(shop, self.settings, self._owner)
        self._core = core = Core(store, clock, execute, courier, self._random, tracing)
        core.library.cel_bytes_max = self.settings.cel_bytes_max
        coordinator = core.coordinator
        coordinator.observers.append(self._observed)
        heard = NoticesHeard(core, notices, self._look_beside)
        who = (self.name, clock.now())
        if opened.members is not None:
            remote = Remote(store, clock, notices, presence.Shared(opened.members), coordinator.feed)
            super().__init__(Shared(core, self._look, remote, notices))
        else:
            self._alone = presence.Alone(store, lambda: who, clock.now)
            super().__init__(Direct(core, self._look, self._alone))
        self._scheduler = Scheduler(store, clock, self, coordinator.feed, coordinator.spawn, core.shards.owns)
        rules = KeepRules(self.settings.keep, self.settings.keep_of)
        self._retention = Retention(
            store, core.shards, clock, coordinator.feed, rules, workflows=core.library.names, spawn=coordinator.spawn
        )
        self._senders = SubscriptionSender(coordinator, courier, self.sealing, core.shards.owns)
        self.on_subscribed = self._senders.attached(core.delivery)
        core.on_moved = self._moved
        self._queues = engine_queues = self._make_queues(store, notices, clock, execute)
        await core.open()
        await self._senders.refresh()
        if opened.members is not None and isinstance(clock, SharedClock):
            await self._join(opened.members, notices, clock)
        else:
            await self._own(store, clock, engine_queues)
        if engine_queues is not None:
            self._closing.append(lambda: engine_queues.close(self.settings.grace_ms))
            engine_queues.open()
        self._closing.append(later(self._scheduler.close))
        self._closing.append(self._senders.close)
        await self._look_beside()
        self._closing.append(later(self._retention.close))
        await self._retention.open()
        self._closing.append(heard.close)
        heard.open(is_shared=opened.members is not None)
        coordinator.spawn(self._warm_up())

    async def _warm_up(self) -> None:
        """Imports what deployed workflows will need and takes seconds to import, before a run waits for it."""
        with suppress(TreadleError):  # a store that is gone, a version that cannot be read: others say so
            for deployed in await self.workflows() if self.settings.llm is not None else ():
                await self.registry.warm(kinds_of(await self.definition(deployed.workflow)))

    async def _own(self, store: Store, clock: Clock, queues: EngineQueues | None) -> None:
        """The right to decide for the whole store."""
        core = self._core
        free = await store.lease(SHARD, self._owner, clock.now(), FOREVER_MS)  # given back: closed, not killed
        fence = free or await store.lease(SHARD, self._owner, clock.now(), FOREVER_MS, evict=True)
        assert fence is not None, "an evicting lease is always given"
        self._closing.append(lambda: store.release(fence))
        self._closing.append(lambda: core.close(self.settings.grace_ms))
        if queues is not None:
            self._alone.lacks = lambda: queues.claimant.cannot_execute.lacks
            await presence.note_served(store, self.settings.queues)
            await queues.bury_predecessor()
        await core.gain(fence, graceful=free is not None)

    async def _join(self, members: Members, notices: Notices, clock: SharedClock) -> None:
        """The right to decide for a share of the store, which changes as nodes come and go."""
        core, settings = self._core, self.settings
        queues = tuple(settings.queues) if settings.queues is not None else None
        node = Member(self._owner, self.name, queues=queues, process=this_process())
        membership = Membership(members, core, node, clock, self._random, settings.lease_ms)
        membership.nudge = lambda: notices.say(NODES)
        membership.lacks = lambda: self._queues.claimant.cannot_execute.lacks if self._queues is not None else {}
        membership.heard = lambda standing, took_ms: clock.hear(standing.now, took_ms)
        notices.hear(NODES, lambda _name: membership.look())
        notices.hear(MISSED, lambda _name: membership.look())
        self._closing.append(lambda: membership.close(settings.grace_ms))
        await membership.open()

    def _moved(self) -> None:
        """Shards have come or gone, and with them what is theirs beside runs."""
        self._retention.moved()
        self._senders.drop_unless(self._core.shards.owns)
        self._core.coordinator.spawn(self._look_beside())

    def _make_queues(self, store: Store, notices: Notices, clock: Clock, execute: MakeExecutor) -> EngineQueues | None:
        """Where workers claim queue work, this engine is one of them; else that work is its own."""
        if not isinstance(store, WorkStore):
            return None
        return EngineQueues(
            self._core,
            self._commander,
            store,
            notices,
            execute,
            clock,
            worker=self._owner if self._core.shards.is_shared else ALONE,
            queues=self.settings.queues,
            lease_ms=self.settings.claim_ms,
            random=self._random,
            cannot_execute=CannotExecute(self.registry.missing, self.name, partial(notices.say, WORK)),
        )

    async def _open_store(self) -> OpenStore:
        if not isinstance(self._place, str | Path | StoreLocation):
            store = self._place
            return OpenStore(store, Silence(), store if isinstance(store, Members) and store.shards > 1 else None)
        place = place_of(self._place)
        return await open_as_owner(
            place, self.name, self._closing, wait=self._wait, payload_max=self.settings.payload_max
        )

    def _look(self) -> None:
        """Something was written beside the runs, here."""
        self._core.coordinator.spawn(self._core.look())
        self._core.coordinator.spawn(self._look_beside())

    async def _look_beside(self) -> None:
        core = self._core
        for step in (core.library.refresh, self._scheduler.refresh, self._senders.refresh):
            await reliably(step, lambda: core.coordinator.stopped is not None)

    def observe(self, observed: Callable[[Sequence[Commit], float], None]) -> None:
        """Calls `observed` with every batch of decisions that was written, and the seconds it took; also before the
        engine is open."""
        self._observers.append(observed)

    def _observed(self, commits: Sequence[Commit], seconds: float) -> None:
        for observed in self._observers:
            observed(commits, seconds)

    @property
    def shards_owned(self) -> int:
        """How many shards of the runs this engine decides for."""
        return len(self._core.shards.owned)

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Calls `heard` whenever something was committed; returns how to stop that."""
        return self._core.coordinator.feed.listen(lambda _newest: heard())

    async def deploy(self, definition: Definition, *, expected: int | None = None) -> Deployed:
        """Makes a version, after checking that this engine can do what it asks: functions and their signatures, kinds.
        The functions of a `Flow` are known from now on. Deploying the newest again changes nothing. Raises
        DefinitionError with every problem, or as `Client.deploy`; then nothing has changed."""
        from treadle.runtime.admission import admit, functions_of

        workflow = await asyncio.to_thread(admit, definition, self.registry, self.settings.queues)
        self.registry.functions.update(functions_of(definition))
        deployed = await super().deploy(workflow, expected=expected)
        self._core.coordinator.spawn(self.registry.warm(kinds_of(workflow)))
        return deployed

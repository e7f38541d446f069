"""The composition root: a store, a coordinator, an executor and a courier become an engine people open and close.

    async with Engine("treadle.db") as engine:
        run = await engine.start(flow, {"topic": "tea"})
        print((await run.wait()).output)

Owns which parts are used, and ownership of the store: one process coordinates a SQLite file, others `connect`. Must not
contain rules; must not be imported by anything below the faces.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Self

import uuid_utils
from msgspec import Struct

from treadle.actions.llm.kind import install_llm
from treadle.actions.llm.profiles import LlmSettings
from treadle.actions.mcp.kind import install_mcp
from treadle.actions.mcp.servers import McpSettings
from treadle.actions.outside import OutsideSettings, install_outside
from treadle.actions.registry import Registry
from treadle.errors import OwnedElsewhere
from treadle.kernel.state import RunState
from treadle.model.commands import Command
from treadle.model.ids import RunId
from treadle.runtime.client import Client, Definition, Deployed
from treadle.runtime.clock import SystemClock
from treadle.runtime.connecting import connect as connect
from treadle.runtime.core import Core
from treadle.runtime.courier import WebhookCourier
from treadle.runtime.executor import LocalExecutor
from treadle.runtime.feed import Watch
from treadle.runtime.garbage import spare_collector
from treadle.runtime.keep import Keep, Rules
from treadle.runtime.library import Library
from treadle.runtime.ports import Clock, Report
from treadle.runtime.retention import Retention
from treadle.runtime.scheduler import Scheduler
from treadle.runtime.wake import INBOX, WATCH, Bell, Subscribers, clear_away
from treadle.store.port import Answer, OutboxRow, Store
from treadle.store.rows import SHARD

FOREVER_MS = 1 << 50
"""A SQLite file's lease never expires by itself: the operating system says when its owner is gone, and nothing has to
be written while nothing happens."""
GRACE_MS = 5_000
"""How long work in hand may go on when an engine closes."""


class EngineSettings(Struct, frozen=True, kw_only=True):
    """What an operator decides; everything has a default."""

    attempts_max: int = 1_000
    threads_max: int | None = None
    processes_max: int | None = None
    queues: Mapping[str, int] | None = None
    """Queues this engine works for, with how many attempts of each at once; None: all of them."""
    outside: OutsideSettings | None = None
    llm: LlmSettings | None = None
    """Profiles of language models; needs the extra `llm`."""
    mcp: McpSettings | None = None
    """MCP servers; needs the extra `mcp`."""
    payload_max: int = 64 * 1024
    """Larger values move out of the history into content-addressed blobs."""
    grace_ms: int = GRACE_MS
    keep: Keep = Keep()
    """How long finished runs are kept: for ever, unless it says otherwise."""
    keep_of: Mapping[str, Keep] = {}
    """Workflows with a rule of their own, instead of `keep`."""


class Engine(Client):
    """Coordinates and executes the runs of one store. See the module's docstring."""

    name: str
    settings: EngineSettings
    registry: Registry

    def __init__(
        self,
        store: str | Path | Store = "treadle.db",
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
        self._place = store
        self._wait = wait_for_ownership
        self._random = Random(uuid_utils.uuid4().int)
        self._closing: list[Callable[[], Awaitable[None]]] = []
        """Undone in reverse order."""
        self._is_listening = False

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._undo()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    @property
    def is_open(self) -> bool:
        return bool(self._closing)

    async def close(self) -> None:
        """Lets work in hand end for `grace_ms`, then stops; what is left goes on when an engine opens the store."""
        await self._undo()

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
        spare_collector()
        clock = SystemClock()
        bell = Bell(self._rung)
        self._closing.append(_later(bell.close))
        self._subscribers = Subscribers(bell)
        store = await self._own_store(bell.address)
        owner = f"{self.name}:{secrets.token_hex(4)}"  # unlike every one before, also after a restart under one name
        free = await store.lease(
            SHARD, owner, clock.now(), FOREVER_MS
        )  # given back: the last one was closed, not killed
        fence = free or await store.lease(SHARD, owner, clock.now(), FOREVER_MS, evict=True)
        assert fence is not None, "an evicting lease is always given"
        self._closing.append(lambda: store.release(fence))
        outside = install_outside(self.registry, self.settings.outside)
        if self.settings.llm is not None:
            install_llm(self.registry, self.settings.llm, outside.settings.secrets)
        if self.settings.mcp is not None:
            install_mcp(self.registry, self.settings.mcp, outside.settings.secrets)
        self._closing.append(self.registry.close)
        courier = WebhookCourier(outside, await _callback_key(store))
        self._core = Core(store, fence, clock, self._executor(clock), courier, self._random)
        self._closing.append(lambda: self._core.close(self.settings.grace_ms))
        coordinator = self._core.coordinator
        coordinator.feed.listen(lambda _run, _seq, _status: self._subscribers.tell())
        coordinator.answered = self._subscribers.tell
        super().__init__(Direct(self._core, self._look), SHARD)
        self._scheduler = Scheduler(store, clock, self, coordinator.feed, coordinator.spawn)
        self._closing.append(_later(self._scheduler.close))
        rules = Rules(self.settings.keep, self.settings.keep_of)
        library, spawn = self._core.library, coordinator.spawn
        retention = Retention(store, fence, clock, coordinator.feed, rules, library.names, spawn)
        self._closing.append(_later(retention.close))
        self._is_listening = True
        await self._core.open(graceful=free is not None)
        await self._scheduler.refresh()
        await retention.open()

    def _executor(self, clock: Clock) -> Callable[[Report], LocalExecutor]:
        settings = self.settings
        limits = {"threads_max": settings.threads_max, "processes_max": settings.processes_max}
        given = {name: value for name, value in limits.items() if value is not None}
        return lambda report: LocalExecutor(
            self.registry,
            report,
            clock,
            name=self.name,
            attempts_max=settings.attempts_max,
            queues=settings.queues,
            **given,
        )

    async def _own_store(self, wake: str) -> Store:
        """The store, and the right to coordinate it."""
        if not isinstance(self._place, str | Path):
            return self._place
        if str(self._place) == ":memory:":
            from treadle.store.memory import MemoryStore

            return MemoryStore()
        from treadle.store.sqlite import Ownership, SqliteStore

        ownership = Ownership(self._place, owner=self.name, wake=wake)
        other = ownership.try_take()
        if other is not None and not self._wait:
            raise OwnedElsewhere(str(self._place), other.description)
        if other is not None:
            await ownership.wait_gone()
        self._closing.append(_later(ownership.release))
        if ownership.left_behind is not None:
            clear_away(ownership.left_behind)
        store = await SqliteStore.open(self._place, payload_max=self.settings.payload_max)
        self._closing.append(store.close)
        return store

    def _rung(self, message: bytes) -> None:
        if message == INBOX:
            if self._is_listening:  # else opening reads the inbox itself
                self._look()
        elif message.startswith(WATCH):
            self._subscribers.add(message.removeprefix(WATCH).decode())

    def _look(self) -> None:
        """Something was written beside the runs, or into the inbox."""

        async def look() -> None:
            await self._core.look()
            await self._scheduler.refresh()

        self._core.coordinator.spawn(look())

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Calls `heard` whenever something was committed; returns how to stop that."""
        return self._core.coordinator.feed.listen(lambda _run, _seq, _status: heard())

    async def deploy(self, definition: Definition) -> Deployed:
        """Makes a version, after checking that this engine can do what it asks: functions and their signatures, kinds.
        The functions of a `Flow` are known from now on. Deploying the newest again changes nothing. Raises
        DefinitionError with every problem; then nothing has changed."""
        from treadle.runtime.admission import admit, functions_of

        workflow = await asyncio.to_thread(admit, definition, self.registry, self.settings.queues)
        self.registry.functions.update(functions_of(definition))
        return await super().deploy(workflow)


class Direct:
    """The commander of the process that coordinates."""

    def __init__(self, core: Core, look: Callable[[], None]) -> None:
        self._look = look
        self._coordinator = core.coordinator
        self._recovery = core.recovery

    @property
    def store(self) -> Store:
        return self._coordinator.store

    @property
    def clock(self) -> Clock:
        return self._coordinator.clock

    @property
    def library(self) -> Library:
        return self._coordinator.library

    async def ask(self, run: RunId, command: Command, workflow: str | None = None, fresh: bool = False) -> Answer:
        return await self._coordinator.ask(run, command, workflow, fresh)

    def will_tell(self, run: RunId) -> bool:
        return self._coordinator.is_hot(run)

    def watch(self, run: RunId) -> Watch:
        return self._coordinator.feed.watch(run)

    async def state(self, run: RunId) -> RunState | None:
        return await self._coordinator.state(run)

    async def revive(self, letter: OutboxRow) -> None:
        await self._recovery.revive(letter.id)

    def changed(self) -> None:
        self._look()


async def _callback_key(store: Store) -> bytes:
    """What callback tokens are signed with: made once per store, so that a token outlives its engine."""
    kept = await store.documents("_callback_key", "key")
    if not kept:
        made = secrets.token_hex(32)
        kept = [await store.put_document("_callback_key", "key", hashlib.sha256(made.encode()).hexdigest(), made)]
    return bytes.fromhex(kept[0].body)


def _later(action: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    async def act() -> None:
        action()

    return act

"""A node that only executes: claims work of its queues on a shared store, wherever that is, and decides nothing.

    async with Worker("postgresql://…", queues={"gpu": 1}, functions={"render": render}) as worker:
        await worker.wait()

Part of the composition root. Owns which parts are used: a way to the runs (`Remote`), hands (`Claimant`), a sign of
life (`Members.beat`). Needs no deployment of its own: definitions come from the store, functions from this process.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Self

import uuid_utils
from msgspec.structs import replace

from treadle.actions.registry import Registry
from treadle.errors import StorePlaceError, StoreUnavailable
from treadle.runtime.cluster.predecessor import is_dead, this_process
from treadle.runtime.cluster.store_ownership import open_channel, open_database
from treadle.runtime.command import presence
from treadle.runtime.command.commander import Remote
from treadle.runtime.equipment import equip_on_store, executing, workshop
from treadle.runtime.execute.workshop import CORES
from treadle.runtime.garbage import spare_collector
from treadle.runtime.queue.cannot_execute import CannotExecute
from treadle.runtime.queue.claimant import Claimant
from treadle.runtime.queue.engine_queues import listen
from treadle.runtime.settings import EngineSettings
from treadle.runtime.surroundings.clock import SystemClock
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.outage import OUTAGE
from treadle.runtime.surroundings.patience import until_open
from treadle.store.members import Member, Members
from treadle.store.notices import WORK
from treadle.store.places import StoreLocation, place_of
from treadle.tasks.trust import Trust

PLACES = CORES
"""Of a queue without a number: work that needs a queue of its own usually needs a core, or a device."""

log = logger("treadle.worker")


class Worker:
    """See the module's docstring. `queues`: how many attempts of each at once."""

    def __init__(
        self,
        store: str | Path | StoreLocation,
        *,
        queues: Mapping[str, int],
        functions: Mapping[str, Callable[..., Any]] | None = None,
        registry: Registry | None = None,
        settings: EngineSettings | None = None,
        name: str | None = None,
    ) -> None:
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.owner = f"{self.name}:{secrets.token_hex(4)}"
        self.queues = dict(queues)
        self.settings = settings or EngineSettings()
        self.registry = registry or Registry()
        self.registry.functions.update(functions or {})
        self.registry.node = self.name
        self.registry.trust = Trust(self.settings.functions_allow)
        self._place = place_of(store)
        self._parts = AsyncExitStack()
        self._over = asyncio.Event()

    @property
    def executing(self) -> int:
        """How much it has in hand."""
        return self._claimant.executing

    async def __aenter__(self) -> Self:
        try:
            await until_open(self._open, self._parts.aclose, self.settings.open_wait_ms)
        except BaseException:
            await self._parts.aclose()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def wait(self) -> None:
        """Until somebody closes it."""
        await self._over.wait()

    async def close(self) -> None:
        """Claims nothing more, lets what it has end for `grace_ms`, gives the rest back."""
        await self._parts.aclose()
        self._over.set()

    async def _open(self) -> None:
        if self._place.dsn is None:
            text = "a worker claims work that engines share"
            raise StorePlaceError(
                str(self._place), text, "a file has one engine, which executes it all: treadle engine"
            )
        if self.settings.spare_collector:
            spare_collector()
        clock, settings, defer = SystemClock(), self.settings, self._parts.push_async_callback
        store = await open_database(self._place.dsn)
        defer(store.close)
        notices = open_channel(self._place.dsn)
        defer(notices.close)
        await equip_on_store(self.registry, settings, store, clock)
        defer(self.registry.close)
        shop = workshop(self.registry, clock, settings, self.name)
        defer(shop.close)
        remote = Remote(store, clock, notices, presence.Shared(store))
        remote.library.cel_bytes_max = self.settings.cel_bytes_max
        await remote.library.refresh()
        self._claimant = claimant = Claimant(
            remote,
            store,
            executing(shop, settings, self.name),
            clock,
            worker=self.owner,
            queues=self.queues,
            lease_ms=settings.claim_ms,
            random=Random(uuid_utils.uuid4().int),
            cannot_execute=CannotExecute(self.registry.missing, self.name, partial(notices.say, WORK)),
        )
        listen(notices, self._claimant)
        await self._stay_listed(store, claimant.cannot_execute)
        defer(self._claimant.close, settings.grace_ms)
        self._claimant.open()

    async def _stay_listed(self, members: Members, cannot_execute: CannotExecute) -> None:
        """In `treadle nodes`. Nothing hangs on it: what it holds, it holds by its claims."""
        queues = tuple(self.queues)
        node = Member(self.owner, self.name, coordinates=False, queues=queues, process=this_process())
        ttl_ms = self.settings.lease_ms
        for other in (await members.beat(node, ttl_ms)).nodes:
            if is_dead(other.process):  # nobody has to wait for its claims
                await members.bury(other.owner)

        async def beat() -> None:
            while True:
                await asyncio.sleep(ttl_ms / 4_000)
                try:
                    await members.beat(replace(node, lacks=cannot_execute.lacks), ttl_ms)
                    OUTAGE.answered()
                except StoreUnavailable as problem:
                    OUTAGE.failed("heartbeat", problem)
                except Exception as problem:  # it must not stop for whatever nobody has thought of
                    log.error("a heartbeat failed", exc_info=problem)

        async def leave() -> None:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
            with suppress(StoreUnavailable):
                await members.leave(self.owner)

        beating = asyncio.get_running_loop().create_task(beat())
        self._parts.push_async_callback(leave)

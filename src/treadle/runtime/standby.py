"""A client whose process takes the store over when no other process coordinates it any more.

Owns the wait for that moment and the engine that follows. Promises that requests made meanwhile are answered by the old
coordinator or by that engine; and that leaving ends the wait, or closes the engine. Must not decide whether to wait:
the caller does.

The client stays the same when the engine opens: it speaks to its own process as it has spoken to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from treadle.errors import StoreUnavailable
from treadle.runtime.client import Client
from treadle.runtime.command.presence import NodeRow, Presence
from treadle.runtime.connecting import connect
from treadle.runtime.engine import Engine
from treadle.store.places import StoreLocation

LOOK_S = 2.0
"""Seconds between two looks whether anybody coordinates a shared store. A file needs none: its lock tells at once."""


Taken = Callable[[Exception | None], None]
"""Told when the store has been taken over, or why that could not be done."""


class StandBy:
    """`async with` gives itself; `client` is the way to the store, `engine` the one that has taken it over, if any."""

    client: Client

    def __init__(self, place: StoreLocation, heir: Engine, taken: Taken) -> None:
        """`heir`: not open, and willing to wait for the ownership of a file."""
        self.engine: Engine | None = None
        self._place = place
        self._heir = heir
        self._taken = taken
        self._connecting = connect(place, create=True)  # its coordinator may be about to make it

    async def __aenter__(self) -> Self:
        self.client = await self._connecting.__aenter__()
        remote = self._connecting.remote
        self._waiting = asyncio.ensure_future(self._wait(remote.presence))
        remote.presence = _Expected(remote.presence, self._waiting)
        return self

    async def __aexit__(self, *_exception: object) -> None:
        try:
            self._waiting.cancel()
            await asyncio.wait({self._waiting})
            if self.engine is not None:
                await self.engine.close()
        finally:
            await self._connecting.__aexit__()

    async def _wait(self, truth: Presence) -> None:
        try:
            while self._place.dsn is not None and await _is_owned(truth):
                await asyncio.sleep(LOOK_S)
            self.engine = await self._heir.__aenter__()
        except Exception as problem:
            self._taken(problem)
        else:
            self._taken(None)


async def _is_owned(truth: Presence) -> bool:
    """Whether the store is coordinated. True while it cannot be asked: nobody could take it over then."""
    try:
        return await truth.is_owned()
    except StoreUnavailable as problem:
        if problem.final:
            raise
        return True


class _Expected:
    """Presence that counts this process as an owner while it waits to take the store over."""

    def __init__(self, truth: Presence, waiting: asyncio.Future[None]) -> None:
        self._truth = truth
        self._waiting = waiting

    async def is_owned(self) -> bool:
        return not self._waiting.done() or await self._truth.is_owned()

    async def nodes(self) -> list[NodeRow]:
        return await self._truth.nodes()

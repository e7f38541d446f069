"""The store of a world: in memory, in a SQLite file of its own, or in PostgreSQL.

Owns how it is opened, and opened again after a crash. Must not know what is stored.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from treadle.store.memory import MemoryStore
from treadle.store.port import Store
from treadle.store.sqlite import SqliteStore
from treadle.testing.world.loop import VirtualLoop

if TYPE_CHECKING:
    from treadle.testing.world.postgres import Hall

IN_MEMORY = Path("/dev/shm")
"""A folder in memory: a sync costs nothing there. Scenarios test what an engine does with a store, not disks."""

SHARDS = 3
"""Shards of a world on PostgreSQL: enough that runs which exchange messages are in different ones."""

_empties: list[bytes] = []
"""A file with nothing but the schema: copying it is faster than making one for every world."""


class StorePlace(Protocol):
    """The place of one store, which outlives its engines."""

    loop: asyncio.AbstractEventLoop | None
    """The event loop of its connections; None: any loop, the world makes one."""

    async def open(self) -> Store:
        """Opens the store, empty."""

    async def reopen(self, lost: Store) -> Store:
        """Opens the store again, as a new process finds it."""

    async def close(self, store: Store) -> None:
        """Closes the store: the world is over."""


class MemoryPlace:
    """The reference store, as durable as this object."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = VirtualLoop()  # type: ignore[abstract]

    async def open(self) -> Store:
        return MemoryStore()

    async def reopen(self, lost: Store) -> Store:
        return lost

    async def close(self, store: Store) -> None:
        del store


class SqlitePlace:
    """A file in a temporary folder, which is removed with the world."""

    loop: asyncio.AbstractEventLoop | None = None

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="treadle-", dir=_quickest(), ignore_cleanup_errors=True)
        self._file = Path(self._folder.name, "treadle.db")

    async def open(self) -> Store:
        self._file.write_bytes(await _empty(self._file.with_name("empty.db")))
        return await SqliteStore.open(self._file)

    async def reopen(self, lost: Store) -> Store:
        """Opens the file through new connections. The old ones have nothing under way: the dead engine cannot reach
        them."""
        await self.let_go(lost)
        return await self.another()

    async def another(self) -> Store:
        """The same file through further connections."""
        return await SqliteStore.open(self._file)

    async def close(self, store: Store) -> None:
        await self.let_go(store)
        self._folder.cleanup()

    @staticmethod
    async def let_go(store: Store) -> None:
        """Closes the connections of one store; the file stays."""
        assert isinstance(store, SqliteStore)
        await store.close()


class PostgresPlace:
    """Tables in a schema of this process; empty for each world."""

    def __init__(self, shards: int = SHARDS, hall: Hall | None = None) -> None:
        from treadle.testing.world.postgres import hall as shared  # needs a driver, and perhaps starts a server

        self._hall = hall or shared()
        self.loop: asyncio.AbstractEventLoop | None = self._hall.loop
        self._shards = shards

    async def open(self) -> Store:
        await self._hall.empty(self._shards)
        return await self.another()

    async def reopen(self, lost: Store) -> Store:
        """Opens the tables through other connections than the lost engine's."""
        found = await self.another()
        self._hall.give_back(lost)
        return found

    async def another(self) -> Store:
        """The same tables through further connections."""
        return await self._hall.store(self._shards)

    async def close(self, store: Store) -> None:
        await self.let_go(store)

    async def let_go(self, store: Store) -> None:
        """Returns the connections of a store, for the next world."""
        self._hall.give_back(store)


def _quickest() -> str | None:
    """A folder in memory, unless the user has set the place of temporary files; None: the system's own."""
    told = any(name in os.environ for name in ("TMPDIR", "TEMP", "TMP"))
    return None if told or not os.access(IN_MEMORY, os.W_OK) else str(IN_MEMORY)


async def _empty(scratch: Path) -> bytes:
    if not _empties:
        store = await SqliteStore.open(scratch)
        await store.close()
        _empties.append(scratch.read_bytes())
    return _empties[0]

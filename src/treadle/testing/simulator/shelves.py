"""Where a simulated world's store is: one in memory for everybody, or on SQLite or PostgreSQL, with connections for
each engine.

Owns the connections. Promises that an engine that has died leaves its own as they were, open and unused: nobody closed
anything, and the next life of the engine opens new ones. Must not know what is kept.
"""

from __future__ import annotations

import asyncio
from typing import Literal, Protocol

from treadle.store.memory import MemoryStore
from treadle.store.port import Store
from treadle.testing.instant import Wait, instantly
from treadle.testing.stores import PostgresPlace, SqlitePlace

ShelfName = Literal["memory", "sqlite", "postgres"]
NOBODY = ""
"""Who reads without writing: clients, the observer."""


class Shelves(Protocol):
    """See the module's docstring."""

    wait: Wait

    def of(self, owner: str) -> Store:
        """The store through the connections of one engine."""

    def abandon(self, owner: str) -> None:
        """An engine has died."""

    def close(self) -> None:
        """The world has ended."""


class MemoryShelves:
    """One store, no connections."""

    def __init__(self, shards: int = 1) -> None:
        self.wait: Wait = instantly
        self._store = MemoryStore(shards)

    def of(self, owner: str) -> Store:
        del owner
        return self._store

    def abandon(self, owner: str) -> None:
        """Everything it knew was its own."""

    def close(self) -> None:
        """Memory goes by itself."""


class DurableShelves:
    """One place. Every engine has its own connections to it, and so has whoever only reads."""

    def __init__(self, place: SqlitePlace | PostgresPlace) -> None:
        self._loop = place.loop or asyncio.new_event_loop()
        self.wait: Wait = self._loop.run_until_complete
        self._place = place
        self._open: dict[str, Store] = {NOBODY: self.wait(place.open())}
        self._abandoned: list[Store] = []

    def of(self, owner: str) -> Store:
        if owner not in self._open:
            self._open[owner] = self.wait(self._place.another())
        return self._open[owner]

    def abandon(self, owner: str) -> None:
        store = self._open.pop(owner, None)
        if store is not None:
            self._abandoned.append(store)

    def close(self) -> None:
        observer = self._open.pop(NOBODY)
        for store in (*self._abandoned, *self._open.values()):
            self.wait(self._place.let_go(store))
        self.wait(self._place.close(observer))
        if self._place.loop is None:
            self._loop.close()


def make_shelves(name: ShelfName, shards: int = 1) -> Shelves:
    """Empty ones."""
    if name == "memory":
        return MemoryShelves(shards)
    assert name == "postgres" or shards == 1, "a SQLite file has one owner at a time"
    return DurableShelves(PostgresPlace(shards) if name == "postgres" else SqlitePlace())

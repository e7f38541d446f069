"""Where a simulated world's store is: one in memory for everybody, or a SQLite file with connections for each engine.

Owns the connections. Promises that an engine that has died leaves its own as they were, open and unused: nobody closed
anything, and the next life of the engine opens new ones. Must not know what is kept.
"""

from __future__ import annotations

import asyncio
from typing import Literal, Protocol

from treadle.store.memory import MemoryStore
from treadle.store.port import Store
from treadle.testing.instant import Wait, instantly
from treadle.testing.stores import SqlitePlace

ShelfName = Literal["memory", "sqlite"]
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

    def __init__(self) -> None:
        self.wait: Wait = instantly
        self._store = MemoryStore()

    def of(self, owner: str) -> Store:
        del owner
        return self._store

    def abandon(self, owner: str) -> None:
        """Everything it knew was its own."""

    def close(self) -> None:
        """Memory goes by itself."""


class SqliteShelves:
    """One file. Every engine has its own connections, and so has whoever only reads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.wait: Wait = self._loop.run_until_complete
        self._place = SqlitePlace()
        self._open: dict[str, Store] = {NOBODY: self.wait(self._place.open())}
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
        self._loop.close()


def make_shelves(name: ShelfName) -> Shelves:
    return SqliteShelves() if name == "sqlite" else MemoryShelves()

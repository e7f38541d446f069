"""The store of a simulated world: one in memory for every process, or a SQLite file or a PostgreSQL schema to which
every life of a process has connections of its own.

Owns the connections and the store's clock. Promises that a call happens in one instant of virtual time, that the store
goes by virtual time alone, and that a process that has died leaves its connections open and unused: nobody closed them,
and the next life opens new ones. Must not know what is kept.
"""

from __future__ import annotations

import asyncio
import atexit
from asyncio import events
from collections.abc import Awaitable, Callable
from functools import cache
from random import Random
from typing import Any, Literal, Protocol, TypeVar

from treadle.store.memory_work import QueueMemoryStore
from treadle.store.port import Store
from treadle.testing.world import postgres
from treadle.testing.world.instant import instantly
from treadle.testing.world.stores import PostgresPlace, SqlitePlace

ShelfName = Literal["memory", "sqlite", "postgres"]
OBSERVER = ""
"""The world itself, which looks at the store without being a process of it."""
T = TypeVar("T")


class Shelves(Protocol):
    """See the module's docstring."""

    def of(self, owner: str) -> Any:
        """The store through the connections of one life of one process."""

    def ask(self, verb: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        """The result of one call, while virtual time stands still."""

    def abandon(self, owner: str) -> None:
        """A process has died."""

    def close(self) -> None:
        """The world has ended."""


class MemoryShelves:
    """One store, no connections."""

    def __init__(self, shards: int, now: Callable[[], int], random: Random) -> None:
        self._store = QueueMemoryStore(shards, now, random)

    def ask(self, verb: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        return instantly(verb(*arguments, **named))

    def of(self, owner: str) -> Store:
        del owner
        return self._store

    def abandon(self, owner: str) -> None:
        """Everything it knew was its own."""

    def close(self) -> None:
        """Memory goes by itself."""


class DurableShelves:
    """One place. Its calls are made on an event loop of real time, between two steps of the virtual ones."""

    def __init__(self, place: SqlitePlace | PostgresPlace) -> None:
        self._loop = place.loop or asyncio.new_event_loop()
        self._place = place
        self._open: dict[str, Store] = {OBSERVER: self.ask(place.open)}
        self._abandoned: list[Store] = []

    def ask(self, verb: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        virtual = events._get_running_loop()
        events._set_running_loop(None)
        try:
            return self._loop.run_until_complete(_asked(verb, arguments, named))
        finally:
            events._set_running_loop(virtual)

    def of(self, owner: str) -> Store:
        if owner not in self._open:
            self._open[owner] = self.ask(self._place.another)
        return self._open[owner]

    def abandon(self, owner: str) -> None:
        store = self._open.pop(owner, None)
        if store is not None:
            self._abandoned.append(store)

    def close(self) -> None:
        observer = self._open.pop(OBSERVER)
        for store in (*self._abandoned, *self._open.values()):
            self.ask(self._place.let_go, store)
        self.ask(self._place.close, observer)
        if self._place.loop is None:
            self._loop.close()


class SqliteShelves(DurableShelves):
    """A file whose connections go by the world's clock, and draw turns as the store in memory does."""

    def __init__(self, now: Callable[[], int], random: Random) -> None:
        self._now, self._random = now, random
        super().__init__(SqlitePlace())
        self._tune(self._open[OBSERVER])

    def of(self, owner: str) -> Store:
        is_new = owner not in self._open
        store = super().of(owner)
        if is_new:
            self._tune(store)
        return store

    def _tune(self, store: Any) -> None:
        store.now, store.random = self._now, self._random


class PostgresShelves(DurableShelves):
    """A schema whose clock is the world's: `clock_timestamp()` is found in the schema before PostgreSQL's own."""

    def __init__(self, shards: int, now: Callable[[], int]) -> None:
        self._hall = _virtual_hall()
        self._now = now
        self._told = 0
        super().__init__(PostgresPlace(shards, self._hall))

    def ask(self, verb: Callable[..., Awaitable[T]], *arguments: Any, **named: Any) -> T:
        if self._told != (now := self._now()):
            super().ask(self._hall.tell, f"UPDATE virtual_clock SET now = {now}")
            self._told = now
        return super().ask(verb, *arguments, **named)


async def _asked(verb: Callable[..., Awaitable[T]], arguments: tuple[Any, ...], named: dict[str, Any]) -> T:
    """Begun where it is awaited: some verbs make a task at once."""
    return await verb(*arguments, **named)


@cache
def _virtual_hall() -> postgres.Hall:
    """The schema of this process in which time is virtual."""
    hall = postgres.Hall(postgres.server(), asyncio.new_event_loop(), "treadle_simulated", _VIRTUAL_CLOCK)
    atexit.register(hall.close)
    return hall


_VIRTUAL_CLOCK = """
CREATE TABLE virtual_clock (now bigint NOT NULL);
INSERT INTO virtual_clock VALUES (0);
CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
AS 'SELECT to_timestamp(now / 1000.0) FROM virtual_clock'
"""


def make_shelves(name: ShelfName, shards: int, now: Callable[[], int], random: Random) -> Shelves:
    """Empty ones."""
    if name == "memory":
        return MemoryShelves(shards, now, random)
    if name == "postgres":
        return PostgresShelves(shards, now)
    assert shards == 1, "a SQLite file has one owner at a time"
    return SqliteShelves(now, random)

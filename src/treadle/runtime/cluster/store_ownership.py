"""Opens the store of an engine and takes the right to coordinate it, alone or together with other engines.

Part of the composition root: it knows the concrete stores. A file has one coordinating process, which holds a lock of
the operating system; a database has any number of them, which share its runs by leases; a store in memory belongs to
its process.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from treadle.errors import OwnedElsewhere, StoreDamaged, StorePlaceError
from treadle.runtime.cluster.file_notices import FileNotices, clear_away
from treadle.runtime.surroundings.logs import logger
from treadle.store.members import Members
from treadle.store.notices import Notices, Silence
from treadle.store.places import MEMORY, StoreLocation
from treadle.store.port import Store

log = logger("treadle.store")

if TYPE_CHECKING:
    from treadle.store.postgres import PostgresStore

Closing = list[Callable[[], Awaitable[None]]]
"""Actions that undo the opening, to be run in reverse order."""
DAMAGES_MAX = 1_000
"""Damaged rows logged by one engine. A store with more is beyond use, and `fsck` lists them all."""
EXTRA = "it needs the extra `postgres`: pip install 'treadle[postgres]'"


class OpenStore(NamedTuple):
    """An open store."""

    store: Store
    notices: Notices
    members: Members | None = None
    """Set if other engines may coordinate the store, too."""


class DamageLog:
    """Logs which damaged rows were left out, each once: they are met at every look."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, problem: StoreDamaged) -> None:
        text = str(problem)
        if text not in self._said and len(self._said) < DAMAGES_MAX:
            self._said.add(text)
            log.error("a damaged row is left out: its run waits, the others go on", run=problem.run, error=text)


async def open_as_owner(
    place: StoreLocation, name: str, closing: Closing, *, wait: bool, payload_max: int
) -> OpenStore:
    """Opens the store at a place and takes the right to coordinate it; `closing` gets the actions that give both back.
    Raises OwnedElsewhere, StorePlaceError, StoreUnavailable."""
    if place.dsn is not None:
        store = await open_database(place.dsn, payload_max=payload_max)
        store.tell = DamageLog()
        closing.append(store.close)
        notices = open_channel(place.dsn)
        closing.append(notices.close)
        return OpenStore(store, notices, store)
    if place.path is None:
        assert str(place) == MEMORY, "a place is a file, a database or memory"
        from treadle.store.memory_work import QueueMemoryStore

        return OpenStore(QueueMemoryStore(), Silence())
    bells = FileNotices()
    closing.append(bells.close)
    return OpenStore(await _own_file(place.path, name, bells.address, closing, wait, payload_max), bells)


async def _own_file(path: Path, name: str, wake: str, closing: Closing, wait: bool, payload_max: int) -> Store:
    from treadle.store.sqlite import Ownership, SqliteStore

    SqliteStore.check(path)  # before a lock file is put beside a file that is not a store
    ownership = Ownership(str(path), owner=name, wake=wake)
    other = ownership.try_take()
    if other is not None and not wait:
        raise OwnedElsewhere(str(path), other.description)
    if other is not None:
        await ownership.wait_gone()

    closing.append(later(ownership.release))
    if ownership.left_behind is not None:
        clear_away(ownership.left_behind)
    store = await SqliteStore.open(path, payload_max=payload_max)
    store.tell = DamageLog()
    closing.append(store.close)
    return store


def later(action: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """A plain function as an action for `Closing`."""

    async def act() -> None:
        action()

    return act


async def open_database(dsn: str, payload_max: int | None = None, *, make: bool = True) -> PostgresStore:
    """The store in a database. `make`: create its tables, or bring older ones up to date. Raises StorePlaceError, also
    if the driver is not installed."""
    require_driver(dsn)
    from treadle.store.postgres import PostgresStore
    from treadle.store.postgres.hosts import way_to

    way_to(dsn).told = lambda problem: log.error("a database that has gone back is refused", error=problem)
    if payload_max is None:
        return await PostgresStore.open(dsn, make=make)
    return await PostgresStore.open(dsn, make=make, payload_max=payload_max)


def open_channel(dsn: str) -> Notices:
    """Notices between the processes on a database."""
    from treadle.store.postgres.notices import Channel

    place = StoreLocation(dsn)
    return Channel(
        dsn,
        lambda problem: log.info("no notices for now: the store is polled instead", place=str(place), error=problem),
    )


def require_driver(dsn: str) -> None:
    """Raises StorePlaceError if the driver is not installed."""
    from importlib.util import find_spec

    if find_spec("asyncpg") is None:
        raise StorePlaceError(str(StoreLocation(dsn)), "asyncpg is not installed", EXTRA)

"""Which world a scenario is played on: the virtual one, or the real engine on a store.

memory          virtual: the kernel on the memory store, no event loop; the fastest
memory-engine   the real engine on the memory store
sqlite          the real engine on a SQLite file of its own, in a folder for temporary files
postgres        the real engine on PostgreSQL, in a schema of this process
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from treadle.errors import TreadleError
from treadle.testing.scenario import Outcome
from treadle.testing.world import World

StoreName = Literal["memory", "memory-engine", "sqlite", "postgres"]


class NoPostgres(TreadleError):
    """There is no PostgreSQL to play on."""


def make_world(store: StoreName, mocks: Mapping[str, Sequence[Outcome]], seed: int | None = None) -> World:
    """A fresh world; leave it (`with`) when it is over."""
    if store == "memory":
        return World(mocks, seed)
    from treadle.testing.engine_world import EngineWorld  # a virtual world needs neither engine nor driver
    from treadle.testing.stores import MemoryPlace, PostgresPlace, SqlitePlace, StorePlace

    makers: dict[StoreName, Callable[[], StorePlace]] = {"sqlite": SqlitePlace, "postgres": PostgresPlace}
    return EngineWorld(mocks, seed, makers.get(store, MemoryPlace)())

"""Which world a scenario is played on: the virtual one, or the real engine on a store.

memory          virtual: the kernel on the memory store, no event loop; the fastest
memory-engine   the real engine on the memory store
sqlite          the real engine on a SQLite file of its own, in a folder for temporary files
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from treadle.testing.scenario import Outcome
from treadle.testing.world import World

StoreName = Literal["memory", "memory-engine", "sqlite"]


def make_world(store: StoreName, mocks: Mapping[str, Sequence[Outcome]], seed: int | None = None) -> World:
    """A fresh world; leave it (`with`) when it is over."""
    if store == "memory":
        return World(mocks, seed)
    from treadle.testing.engine_world import EngineWorld  # a virtual world needs neither engine nor driver
    from treadle.testing.stores import MemoryPlace, SqlitePlace

    return EngineWorld(mocks, seed, SqlitePlace() if store == "sqlite" else MemoryPlace())

"""Which store the world of a scenario has.

memory     the reference store, which is as durable as the world; the fastest
sqlite     a SQLite file of its own, in a folder for temporary files
postgres   PostgreSQL, in a schema of this process
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from treadle.errors import TreadleError
from treadle.testing.world.outcomes import Outcome
from treadle.testing.world.world import World

StoreName = Literal["memory", "sqlite", "postgres"]


class NoPostgres(TreadleError):
    """There is no PostgreSQL to play on."""


def make_world(store: StoreName, mocks: Mapping[str, Sequence[Outcome]], seed: int | None = None) -> World:
    """A fresh world; leave it (`with`) when it is over."""
    if store == "memory":
        return World(mocks, seed)
    from treadle.testing.world.stores import (  # neither driver nor server for a world in memory
        PostgresPlace,
        SqlitePlace,
    )

    return World(mocks, seed, SqlitePlace() if store == "sqlite" else PostgresPlace())

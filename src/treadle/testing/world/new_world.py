"""Makes a world on the store that a scenario or the command line names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treadle.testing.world.outcomes import Outcome
from treadle.testing.world.store_names import StoreName
from treadle.testing.world.world import World


def make_world(store: StoreName, mocks: Mapping[str, Sequence[Outcome]], seed: int | None = None) -> World:
    """A fresh world. Use it in a `with`: leaving it closes the store."""
    if store == "memory":
        return World(mocks, seed)
    from treadle.testing.world.stores import (  # a world in memory needs neither a driver nor a server
        PostgresPlace,
        SqlitePlace,
    )

    return World(mocks, seed, SqlitePlace() if store == "sqlite" else PostgresPlace())

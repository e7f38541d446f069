"""The histories that a seed's world leaves in its store."""

from __future__ import annotations

from dataclasses import replace

from tests.simulator.coverage import Coverage
from tests.simulator.generator import generate
from tests.simulator.plan import plan_of
from tests.simulator.shelves import ShelfName
from tests.simulator.world import World


def histories(seed: int, store: ShelfName = "memory", shards: int | None = None) -> dict[str, list[str]]:
    """Every run's events as the store gives them back at the end."""
    plan = plan_of(seed)
    plan = plan if shards is None else replace(plan, shards=shards)
    world = World(plan, generate(plan), Coverage(), store)
    try:
        world.live()
        return {str(run): [repr(event) for event in world.history(run)] for run in world.runs}
    finally:
        world.close()

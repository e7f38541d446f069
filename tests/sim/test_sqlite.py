"""The simulator on SQLite files: the same seeds hold, and write what they write in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from treadle.testing.simulator.coverage import Coverage
from treadle.testing.simulator.generator import generate
from treadle.testing.simulator.plan import plan_of
from treadle.testing.simulator.report import describe
from treadle.testing.simulator.shelves import ShelfName, make_shelves
from treadle.testing.simulator.simulate import simulate
from treadle.testing.simulator.world import World

FIXED = range(5_000, 5_100)


@pytest.mark.parametrize("first", FIXED[::25])
def test_a_fixed_batch_holds_on_sqlite(first: int) -> None:
    outcomes = [simulate(seed, store="sqlite") for seed in range(first, first + 25)]
    failed = [describe(outcome) for outcome in outcomes if outcome.failure is not None]
    assert not failed, "\n\n".join(failed)
    assert sum(outcome.completed_runs for outcome in outcomes) > 10, "hardly any run completes: a hollow pass"


@pytest.mark.parametrize("seed", [1_001, 1_002, 1_003])
def test_a_seed_writes_the_same_histories_on_sqlite_as_in_memory(seed: int) -> None:
    assert histories(seed, "sqlite") == histories(seed, "memory")


def test_a_dead_engine_leaves_its_connections_and_the_next_life_opens_new_ones() -> None:
    shelves = make_shelves("sqlite")
    first = shelves.of("engine-0")
    shelves.abandon("engine-0")
    second = shelves.of("engine-0")
    fence = shelves.wait(first.lease(0, "a", 0, 100))
    assert second is not first
    assert shelves.wait(second.lease(0, "b", 50, 100)) is None, "they share one file"
    assert fence is not None
    shelves.close()


def histories(seed: int, store: ShelfName) -> dict[str, list[str]]:
    plan = replace(plan_of(seed), shards=1)
    world = World(plan, generate(plan), Coverage(), make_shelves(store))
    world.live()
    found = {str(run): [repr(event) for event in world.depot.history(run)] for run in world.runs}
    world.depot.close()
    return found

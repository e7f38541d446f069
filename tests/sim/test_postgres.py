"""The simulator on PostgreSQL: the same seeds hold, and write what they write in memory, over as many shards."""

from __future__ import annotations

import pytest

from tests import postgres
from treadle.testing.simulator.coverage import Coverage
from treadle.testing.simulator.generator import generate
from treadle.testing.simulator.plan import plan_of
from treadle.testing.simulator.report import describe
from treadle.testing.simulator.shelves import ShelfName, make_shelves
from treadle.testing.simulator.simulate import simulate
from treadle.testing.simulator.world import World

FIXED = range(7_000, 7_016)


@pytest.fixture(autouse=True)
def _where_there_is_one() -> None:
    postgres.server()


@pytest.mark.slow
@pytest.mark.parametrize("first", FIXED[::8])
def test_a_fixed_batch_holds_on_postgresql(first: int) -> None:
    outcomes = [simulate(seed, store="postgres") for seed in range(first, first + 8)]
    failed = [describe(outcome) for outcome in outcomes if outcome.failure is not None]
    assert not failed, "\n\n".join(failed)
    assert sum(outcome.completed_runs for outcome in outcomes) > 3, "hardly any run completes: a hollow pass"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1_001, 1_002, 1_004])
def test_a_seed_writes_the_same_histories_on_postgresql_as_in_memory(seed: int) -> None:
    assert histories(seed, "postgres") == histories(seed, "memory")


def test_a_world_finds_nothing_of_the_one_before() -> None:
    shelves = make_shelves("postgres", 4)
    store = shelves.of("engine-0")
    assert shelves.wait(store.lease(3, "engine-0", 0, 100)) is not None
    shelves.wait(store.put_document("workflow", "w", "hash", {}))
    shelves.close()
    shelves = make_shelves("postgres", 2)
    store = shelves.of("engine-1")
    assert shelves.wait(store.documents("workflow")) == []
    assert shelves.wait(store.lease(3, "engine-1", 0, 100)) is not None
    shelves.close()


def histories(seed: int, store: ShelfName) -> dict[str, list[str]]:
    plan = plan_of(seed)
    world = World(plan, generate(plan), Coverage(), make_shelves(store, plan.shards))
    world.live()
    found = {str(run): [repr(event) for event in world.depot.history(run)] for run in world.runs}
    world.depot.close()
    return found

"""The simulator on SQLite files: the same seeds hold, and write what they write in memory."""

from __future__ import annotations

from random import Random

import pytest

from tests.sim.histories import histories
from tests.simulator.report import describe
from tests.simulator.shelves import make_shelves
from tests.simulator.simulate import simulate

FIXED = range(5_000, 5_100)


@pytest.mark.parametrize("first", FIXED[::25])
def test_a_fixed_batch_holds_on_sqlite(first: int) -> None:
    outcomes = [simulate(seed, store="sqlite") for seed in range(first, first + 25)]
    failed = [describe(outcome) for outcome in outcomes if outcome.failure is not None]
    assert not failed, "\n\n".join(failed)
    assert sum(outcome.completed_runs for outcome in outcomes) > 10, "hardly any run completes: a hollow pass"


@pytest.mark.parametrize("seed", [1_001, 1_002, 1_003])
def test_a_seed_writes_the_same_histories_on_sqlite_as_in_memory(seed: int) -> None:
    assert histories(seed, "sqlite", shards=1) == histories(seed, "memory", shards=1)


def test_a_dead_engine_leaves_its_connections_and_the_next_life_opens_new_ones() -> None:
    shelves = make_shelves("sqlite", 1, lambda: 0, Random(1))
    first = shelves.of("engine-0.1")
    shelves.abandon("engine-0.1")
    second = shelves.of("engine-0.1")
    fence = shelves.ask(first.lease, 0, "a", 0, 100)
    assert second is not first
    assert shelves.ask(second.lease, 0, "b", 50, 100) is None, "they share one file"
    assert fence is not None
    shelves.close()

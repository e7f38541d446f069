"""The simulator on PostgreSQL: the same seeds hold, over as many shards, and the database goes by virtual time."""

from __future__ import annotations

from random import Random

import pytest

from tests import postgres
from tests.sim.histories import histories
from tests.simulator.report import describe
from tests.simulator.shelves import make_shelves
from tests.simulator.simulate import simulate

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
    shelves = make_shelves("postgres", 4, lambda: 0, Random(1))
    store = shelves.of("engine-0.1")
    assert shelves.ask(store.lease, 3, "engine-0.1", 0, 100) is not None
    shelves.ask(store.put_document, "workflow", "w", "hash", {})
    shelves.close()
    shelves = make_shelves("postgres", 2, lambda: 0, Random(1))
    store = shelves.of("engine-1.1")
    assert shelves.ask(store.documents, "workflow") == []
    assert shelves.ask(store.lease, 3, "engine-1.1", 0, 100) is not None
    shelves.close()


def test_a_lease_runs_out_by_the_clock_of_the_world() -> None:
    now = [1_000_000]
    shelves = make_shelves("postgres", 1, lambda: now[0], Random(1))
    store = shelves.of("engine-0.1")
    assert shelves.ask(store.lease, 0, "engine-0.1", None, 500) is not None
    assert shelves.ask(store.lease, 0, "engine-1.1", None, 500) is None
    now[0] += 501
    assert shelves.ask(store.lease, 0, "engine-1.1", None, 500) is not None
    shelves.close()

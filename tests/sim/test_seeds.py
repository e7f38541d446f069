"""The simulator: seeds that once failed hold, a fixed batch holds and gets something done, a seed repeats itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulator.report import describe
from tests.simulator.simulate import Outcome, simulate

FIXED = range(1_000, 1_060)
"""Enough to notice a broken simulator; the search for the unknown is `./dev sim`, a minute of it in every test run."""


def regression_seeds() -> list[tuple[int, frozenset[str]]]:
    """Seeds, and the features and faults without which they failed."""
    lines = Path(__file__).with_name("seeds.txt").read_text("utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return [(int(seed), frozenset(more[1].split(",") if more[0] == "--without" else ())) for seed, *more in words]


def explained(outcome: Outcome) -> str:
    return describe(outcome) if outcome.failure is not None else ""


@pytest.mark.parametrize(("seed", "without"), regression_seeds())
def test_a_seed_that_once_failed_holds(seed: int, without: frozenset[str]) -> None:
    outcome = simulate(seed, without)
    assert outcome.failure is None, explained(outcome)


def test_a_fixed_batch_holds_and_gets_something_done() -> None:
    outcomes = [simulate(seed) for seed in FIXED]
    failed = [explained(outcome) for outcome in outcomes if outcome.failure is not None]
    assert not failed, "\n\n".join(failed)
    assert sum(outcome.completed_runs for outcome in outcomes) > len(FIXED) / 2, (
        "hardly any run completes: a hollow pass"
    )
    assert sum(outcome.completed_visits for outcome in outcomes) > 5 * len(FIXED)


def test_a_seed_does_the_same_again() -> None:
    first, second = simulate(1_234), simulate(1_234)
    assert (first.steps, first.runs, first.completed_visits) == (second.steps, second.runs, second.completed_visits)

"""A world that breeds more runs than anybody can wait for is thinned out, and has to come to rest of that."""

from __future__ import annotations

import pytest

from tests.simulator import world
from tests.simulator.audit.complaint import Violation
from tests.simulator.coverage import Coverage
from tests.simulator.generator import generate
from tests.simulator.plan import plan_of
from tests.simulator.world import World
from treadle.model.states import RUN_ENDED


@pytest.fixture(autouse=True)
def _few_are_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "CROWD", 3)
    monkeypatch.setattr(world, "STEPS_MAX", 1_000)


def made(seed: int) -> World:
    plan = plan_of(seed)
    return World(plan, generate(plan), Coverage())


def test_a_crowd_is_thinned_out_and_all_of_it_ends() -> None:
    thinned = 0
    for seed in range(60, 160):
        crowd = made(seed)
        try:
            if not crowd.live():
                thinned += 1
                assert len(crowd.runs) > world.CROWD
                assert all(crowd.state(run).status in RUN_ENDED for run in crowd.runs)
        except Violation as violation:
            is_short = violation.text.endswith("no rest") or "somebody spins" in violation.text
            assert is_short, f"with so few steps others do not come to rest either, but {violation}"
        finally:
            crowd.close()
    assert thinned >= 3

"""Events of played worlds, as rows of JSON, come back as the same events."""

from __future__ import annotations

import json

import pytest

from tests.simulator.coverage import Coverage
from tests.simulator.generator import generate
from tests.simulator.plan import plan_of
from tests.simulator.world import World
from treadle.model.event_rows import event_of, event_row


@pytest.mark.parametrize("seed", range(6))
def test_a_row_of_an_event_gives_the_event_again(seed: int) -> None:
    plan = plan_of(seed)
    world = World(plan, generate(plan), Coverage(), "memory")
    try:
        world.live()
        events = [event for run in world.runs for event in world.history(run)]
    finally:
        world.close()
    assert len(events) > 20
    for event in events:
        assert event_of(json.loads(json.dumps(event_row(event)))) == event

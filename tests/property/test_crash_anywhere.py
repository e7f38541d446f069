"""Whatever a scenario expects, it may expect under a crash at any point: nothing is lost, nothing is applied twice.

A sample of our own scenarios, those that run to their end by themselves. What a crash may change is not compared: how
often work was handed out, when, and in which order.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from treadle.testing.scenario.definitions import load_definition
from treadle.testing.scenario.documents import read_file
from treadle.testing.scenario.form import Scenario
from treadle.testing.scenario.parse import parse_scenario
from treadle.testing.scenario.performance import Performance
from treadle.testing.world.outcomes import CrashPoint

ROOT = Path(__file__).parents[1]
EVERY = 7
"""One scenario in so many is tried: two seconds instead of fifteen."""
POINTS_MAX = 40

MAY_CHANGE = ("dispatches", "elapsed_ms", "order", "events", "no_events", "event_counts")


def runs_by_itself(scenario: Scenario) -> bool:
    """Time lost in a crash may make a deadline pass, so nothing that takes time is tried."""
    timed = any(outcome.after_ms for mock in scenario.mocks for outcome in mock.outcomes)
    return scenario.runs and scenario.steps is None and scenario.expect is not None and not timed


def sample() -> list[object]:
    scenarios = [
        parse_scenario(document)
        for folder in ("scenarios", "patterns")
        for file in sorted((ROOT / folder).glob("*.scenario.yaml"))
        for document in read_file(file)
    ]
    chosen = [scenario for scenario in scenarios if runs_by_itself(scenario)][::EVERY]
    return [pytest.param(scenario, id=f"{Path(scenario.file).stem}:{scenario.line}") for scenario in chosen]


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before_commit", "after_commit", "after_dispatch"])
@pytest.mark.parametrize("scenario", sample())
def test_a_scenario_holds_under_a_crash_at_every_point(scenario: Scenario, point: CrashPoint) -> None:
    assert scenario.expect is not None
    tolerant = replace(scenario, expect=replace(scenario.expect, **dict.fromkeys(MAY_CHANGE)))
    workflows = [load_definition(definition).require() for definition in scenario.definitions]
    for count in range(1, POINTS_MAX):
        performance = Performance(tolerant, workflows)
        performance.world.crash_at(point, count)
        performance.play()
        if performance.world.crash_is_due:
            return

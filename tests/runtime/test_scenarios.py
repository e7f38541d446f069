"""Every scenario of this repository through the real engine: all hold on SQLite and on PostgreSQL, and histories are
what they are in the virtual world."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import postgres
from tests.runtime.cores import FaultyStore
from treadle.errors import ScenarioError
from treadle.model.definition import Workflow
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.store.port import Store
from treadle.testing.scenario.definitions import load_definition
from treadle.testing.scenario.documents import read_file
from treadle.testing.scenario.form import CrashStep, Scenario
from treadle.testing.scenario.parse import parse_scenario
from treadle.testing.scenario.performance import Performance
from treadle.testing.scenario.runner import run_file
from treadle.testing.world.store_names import StoreName
from treadle.testing.world.stores import MemoryPlace
from treadle.testing.world.world import World

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for room in ("tests/scenarios", "tests/patterns", "examples")
    for path in ROOT.glob(f"{room}/**/*.scenario.yaml")
)

every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".scenario.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@every_file
def test_every_scenario_holds_on(store: StoreName, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if store == "postgres":
        postgres.server()
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    results = run_file(path, store)
    assert results
    assert all(result.ok for result in results), "\n\n".join(str(result) for result in results if not result.ok)


@pytest.mark.slow
@every_file
def test_the_engine_writes_what_the_virtual_world_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    for scenario, workflows in performable(path):
        there = histories(scenario, workflows, "sqlite")
        assert without_late(there) == without_late(histories(scenario, workflows, "memory")), scenario.name


def without_late(written: dict[RunId, list[Event]]) -> dict[RunId, list[Event]]:
    """Whether work that was cancelled in the instant it was handed out has begun, and so reports late, is chance."""
    return {run: [event for event in events if event.type != "result.ignored"] for run, events in written.items()}


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["lost", "unseen"])
@pytest.mark.parametrize("name", ["crash", "waiting_timer", "pause_resume", "waiting_subworkflow", "waiting_human"])
def test_a_scenario_holds_though_the_store_fails_at_any_of_its_first_commits(
    name: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treadle.runtime.coordinate.committer.log", Silence())
    for scenario, workflows in performable(ROOT / "tests" / "scenarios" / f"{name}.scenario.yaml"):
        for number in range(4):
            place = FaultyPlace([""] * number + [fault])
            performance = Performance(scenario, workflows)
            performance.world = World({mock.address: mock.outcomes for mock in scenario.mocks}, None, place)
            performance.play()
            if place.store.faults:
                break  # it has fewer commits


class Silence:
    """A log nobody reads."""

    def warning(self, *_text: object, **_values: object) -> None:
        return


class FaultyPlace(MemoryPlace):
    """A store whose commits fail as told; it has happened, or it has not."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__()
        self.store = FaultyStore()
        self.store.faults = faults

    async def open(self) -> Store:
        return self.store


def performable(path: Path) -> list[tuple[Scenario, list[Workflow]]]:
    """Scenarios in which something runs. Not those with a crash point: an engine's own work has no outbox row, so what
    was lost between its commit and its beginning is handed out again as recovered, not as if for the first time."""
    found = []
    for document in read_file(path):
        scenario = parse_scenario(document)
        points = any(isinstance(step, CrashStep) and step.at for step in scenario.steps or ())
        if scenario.runs and not points:
            workflows = [load_definition(definition).workflow for definition in scenario.definitions]
            found.append((scenario, [workflow for workflow in workflows if workflow is not None]))
    return found


def histories(scenario: Scenario, workflows: list[Workflow], store: StoreName) -> dict[RunId, list[Event]]:
    performance = Performance(scenario, workflows, None, store)
    with performance.world as world:
        performance.perform()
        return {run: world.projection(run).events for run in world.runs}


def test_there_is_something_to_play() -> None:
    assert len(FILES) > 50


def test_a_file_that_is_not_one_is_a_result_on_every_store() -> None:
    with pytest.raises(ScenarioError):
        read_file(ROOT / "nowhere.scenario.yaml")
    assert [result.verdict for result in run_file(ROOT / "nowhere.scenario.yaml", "sqlite")] == ["invalid"]

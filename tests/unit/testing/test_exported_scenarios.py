"""Every run of the scenarios of this project is exported as a scenario that passes as written, with everything that is
expected of a recorded run (6.6): forked, edited, skipped, jumped, migrated, retried and compensated runs, runs with
children, gates, quorums, signals, callbacks, timers, loops, budgets, limits and entities."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recording import own_runs, recorded
from treadle.testing.recorded.export import export
from treadle.testing.recorded.past import RecordedRun
from treadle.testing.scenario.definitions import load_definition
from treadle.testing.scenario.documents import Document, read_file
from treadle.testing.scenario.parse import parse_scenario
from treadle.testing.scenario.performance import Performance
from treadle.testing.scenario.runner import run_text

FOLDER = Path(__file__).parents[2] / "scenarios"
EVERY = 6
"""Of files that are not about changes (6.2 to 6.8), every so many scenarios are taken: all take half a minute."""
CHANGES = (
    "budget",
    "editing",
    "flow",
    "forking",
    "migration",
    "operator_retry",
    "trying_again",
    "pause_resume",
    "callbacks",
)
BEYOND = {
    "a debounced run that may not start ends cancelled",
    "a debounced run beyond the limit fails",
    "of several starts that wait for the oldest run to end only the last is left",
    "the fork of an ended run takes nobody's place",
    "a fork of a run that is being compensated waits for its place",
    "calls that shared a batch are undone together",
    "a queued fork that is cancelled undoes nothing, though it inherits compensation",
    "the changed input of a fork gives it another priority",
    "the changed items of a batch's fork give it another priority",
    "the fork of a run whose child could not be undone goes on without it",
}
"""What became of these runs was decided by other runs, in an order that their own history does not tell. They are
exported without it."""


ALONE = {
    "cancelling the parent cancels its child",
    "a terminating parent cancels its running child",
    "retrying a run goes down into the failed child",
    "retrying a run goes down through two levels of children",
    "several failed calls of one join are retried together",
    "a call that went down with the run starts a new child when it comes back",
}
"""Scenarios whose child runs are cancelled or retried by the runs that have called them."""


def chosen(file: Path) -> list[Document]:
    documents = read_file(file)
    return documents if file.name.startswith(CHANGES) else documents[::EVERY]


def played(document: Document, *, children: bool = False) -> list[RecordedRun]:
    """The runs of a scenario, those that calls have started only if asked for; none of a scenario about what cannot be
    deployed or started."""
    scenario = parse_scenario(document)
    loaded = [load_definition(definition) for definition in scenario.definitions]
    if scenario.start is None or any(one.workflow is None for one in loaded):
        return []
    performance = Performance(scenario, [one.require() for one in loaded])
    with performance.world as world:
        performance.perform()
        return [recorded(world, run) for run in (list(world.runs) if children else own_runs(world))]


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.scenario.yaml")), ids=lambda file: file.name.partition(".")[0])
def test_every_run_of_a_file_passes_as_exported(file: Path) -> None:
    for document in chosen(file):
        for run in played(document):
            text = export(run)
            [result] = run_text(text)
            assert result.ok, f"{document.title}\n{result}"
            if document.title not in BEYOND:
                assert "Not expected" not in text, f"{document.title}, run {run.run}\n{text}"


def test_a_child_run_is_exported_alone_with_what_its_parent_has_asked_of_it() -> None:
    files = sorted(FOLDER.glob("*.scenario.yaml"))
    documents = [document for file in files for document in read_file(file) if document.title in ALONE]
    assert len(documents) == len(ALONE)
    for document in documents:
        children = [run for run in played(document, children=True) if run.started.parent is not None]
        assert children
        for run in children:
            text = export(run)
            [result] = run_text(text)
            assert result.ok, f"{document.title}\n{result}"
            assert "Not expected" not in text, f"{document.title}, run {run.run}\n{text}"

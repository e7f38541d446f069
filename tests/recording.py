"""Runs of a scenario's world as recorded runs, to be exported and replayed."""

from __future__ import annotations

from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.testing.recorded.past import RecordedRun, called_by
from treadle.testing.world.world import World


def recorded(world: World, run: RunId) -> RecordedRun:
    """A run of the world, as `read_run` would read it from a store. Its definition is the one that was played, in which
    a mocked node has a task."""
    history = list(world.projection(run).events)
    first = history[0]
    assert isinstance(first, e.Beginning)
    started = next((event for event in history if isinstance(event, e.RunStarted)), first)

    def version(number: int) -> Workflow:
        found = world.catalog.find(started.workflow, number)
        assert found is not None
        return found.graph.definition

    found = RecordedRun(run, version(started.version), history, ends=world.decisions(run))
    for event in history:
        if isinstance(event, e.RunMigrated):
            found.versions |= {event.from_: version(event.from_), event.to: version(event.to)}
        elif isinstance(event, e.ChildStarted) and event.run in world.runs:
            found.children.append(recorded(world, event.run))
    for name in called_by(found.workflow):
        called = world.catalog.find(name)
        if called is not None:
            found.called.append(called.graph.definition)
    return found


def own_runs(world: World) -> list[RunId]:
    """The runs that nobody's call has started."""
    return [run for run in world.runs if (began := world.projection(run).started) is not None and began.parent is None]

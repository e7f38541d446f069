"""A recorded run played against another definition with its recorded outcomes (6.6).

Theory of operation. The run is played twice on virtual clocks, by its own definition and by the new one, with the same
mocks and steps; so the two differ by the definitions alone, not by the timing of the real engine. Nothing is executed
in earnest: work without a recorded outcome is held, and reported as missing. Both are then read as lines (the visits in
order, how each ended, the status, the output), and the first line that differs is the answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from treadle.errors import ScenarioError
from treadle.language.document import document_of
from treadle.model.definition import Workflow
from treadle.testing.recorded.export import located, performance_of, scenario_of
from treadle.testing.recorded.outcomes import held_back
from treadle.testing.recorded.past import RecordedRun
from treadle.testing.scenario.report import ScenarioFailure
from treadle.testing.world.address import parse_address
from treadle.testing.world.world import World

Json = Any

NOTHING = "(nothing)"


class Replayed(Struct, frozen=True):
    """How a recorded run would have gone."""

    run: str
    workflow: str
    same: bool
    line: int | None = None
    """Number of the first line that differs, counted from 1."""
    recorded: str | None = None
    replayed: str | None = None
    missing: tuple[str, ...] = ()
    """Work, gates and signals for which the run has no recorded outcome; what follows them is not known."""


def replay(recorded: RecordedRun, definitions: Sequence[Workflow]) -> Replayed:
    """Play a run against new definitions. Those of other workflows stay as they were recorded."""
    old = recorded.workflows()
    names = {workflow.workflow for workflow in definitions}
    new = [*definitions, *(workflow for workflow in old if workflow.workflow not in names)]
    before, open_before = _played(recorded, old, migrates=True)
    after, open_after = _played(recorded, new, migrates=False)
    missing = tuple(place for place in open_after if place not in open_before)
    run, name = str(recorded.run), recorded.workflow.workflow
    for line in range(max(len(before), len(after))):
        left, right = (lines[line] if line < len(lines) else NOTHING for lines in (before, after))
        if left != right:
            return Replayed(run, name, False, line + 1, left, right, missing=missing)
    return Replayed(run, name, not missing, missing=missing)


def _played(recorded: RecordedRun, workflows: Sequence[Workflow], *, migrates: bool) -> tuple[list[str], list[str]]:
    """The lines of a play, and the places at which it waits for somebody. `migrates`: as it was recorded; else the run
    goes by the given definitions from its beginning to its end."""
    performance = performance_of(located(recorded, _document(recorded, workflows, migrates)))
    with performance.world as world:
        with suppress(ScenarioFailure, ScenarioError):  # an answer that nobody waits for any more: the lines show why
            performance.perform()
        return _lines(world), _waiting(world)


def _document(recorded: RecordedRun, workflows: Sequence[Workflow], migrates: bool) -> dict[str, Json]:
    """The scenario of the run with other definitions. A list of outcomes ends with a hold: the last must not repeat."""
    scenario = scenario_of(recorded)
    played = [*workflows, *(version for run in recorded.family() if migrates for version in run.versions.values())]
    refs = {ref for workflow in played for ref in workflow.nodes}
    first = recorded.started.workflow
    ordered = sorted(workflows, key=lambda workflow: workflow.workflow != first)
    undo = {ref for workflow in played for ref, node in workflow.nodes.items() if node.compensate is not None}
    mocks = {
        text: [*outcomes, {"hold": True}]
        for text, outcomes in scenario["mocks"].items()
        if (address := parse_address(text, refs)) is not None and (not address.compensation or address.node in undo)
    }
    for workflow in played:
        mocks |= held_back(workflow, mocks)
    found = {
        **scenario,
        "definitions": [document_of(workflow) for workflow in ordered],
        "mocks": mocks,
        "steps": _known(scenario["steps"], refs, migrates),
    }
    return {key: value for key, value in found.items() if value is not None}


def _known(steps: list[dict[str, Json]] | None, refs: set[str], migrates: bool) -> list[dict[str, Json]] | None:
    """The steps without those that are about a node the definitions do not have, or about other versions of them."""
    if steps is None:
        return None
    kept = []
    for step in steps:
        if not migrates:
            if "deploy" in step or "migrate" in step:
                continue
            step = _fitting(step, refs)
        if all(parse_address(address, refs) is not None for address in _addresses(step)):
            kept.append(step)
    return kept


def _fitting(step: dict[str, Json], refs: set[str]) -> dict[str, Json]:
    """A fork that keeps its version, and changes outputs only of nodes that are there."""
    changes = step["fork"].get("changes", {}) if "fork" in step else {}
    if not changes:
        return step
    outputs = {key: value for key, value in changes.get("outputs", {}).items() if parse_address(key, refs) is not None}
    kept = {key: value for key, value in changes.items() if key not in ("version", "outputs")}
    kept |= {"outputs": outputs} if outputs else {}
    fork = {key: value for key, value in step["fork"].items() if key != "changes"}
    return {**step, "fork": {**fork, **({"changes": kept} if kept else {})}}


_BARE = ("gate", "callback", "retry", "skip_compensation", "retry_compensation", "release")
_INSIDE = (("skip", "visit"), ("jump", "visit"), ("jump", "to"), ("set_input", "visit"), ("edit", "branch"))


def _addresses(step: dict[str, Json]) -> list[str]:
    """The visits and nodes that a step names."""
    found = [step[verb] for verb in _BARE if verb in step and step[verb] != "run"]
    found += [step[verb][key] for verb, key in _INSIDE if verb in step and key in step[verb]]
    if isinstance(step.get("cancel"), dict) and "node" in step["cancel"]:
        found.append(step["cancel"]["node"])
    return [str(address) for address in found]


def _lines(world: World) -> list[str]:
    """What happened, in lines that two plays can be compared by."""
    if not world.runs:
        return ["the start is refused"]
    found = []
    for run in world.runs:
        projection = world.projection(run)
        name = "" if run == world.runs[0] else f"{run}: "
        for visit in projection.begun():
            how = f" ({visit.error.kind})" if visit.error is not None else ""
            found.append(f"{name}{visit} on {visit.path} {visit.state.value}{how}")
        error = f" ({projection.error.kind}: {projection.error.message})" if projection.error is not None else ""
        found.append(f"{name}run {projection.status.value}{error}")
        if projection.output is not None:
            found.append(f"{name}output {json.dumps(projection.output, sort_keys=True, ensure_ascii=False)}")
    return found


def _waiting(world: World) -> list[str]:
    """Visits that wait for work, people or systems without an answer."""
    found = []
    for run in world.runs:
        for visit in world.projection(run).visits.values():
            if world.workers.holds(run, visit.token) and visit.live:
                found.append(f"outcome of attempt {visit.attempt} of {visit}")
            elif visit.live and visit.waiting is not None and visit.waiting.value in ("human", "signal", "external"):
                found.append(f"answer to {visit}, which waits for {visit.waiting.value}")
    return found

"""A recorded run as a scenario that passes as written (6.6).

Owns the document: definitions, start, a mock with the recorded outcome for every attempt, steps, expectations. Promises
to play it before it is given out: an expectation that does not hold on the virtual clock (two things that happened at
nearly the same time may change places) is left out, and the head of the file says so.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from treadle.errors import ScenarioError
from treadle.model import events as e
from treadle.model.states import RUN_ENDED, TokenState
from treadle.testing.recorded import waiting
from treadle.testing.recorded.changes import definition_of, entity_of
from treadle.testing.recorded.outcomes import held_back, mocks_of
from treadle.testing.recorded.past import RecordedRun
from treadle.testing.recorded.segments import Segment, segments_of
from treadle.testing.recorded.steps import steps_of
from treadle.testing.scenario.definitions import load_definition
from treadle.testing.scenario.documents import read_documents
from treadle.testing.scenario.parse import parse_scenario
from treadle.testing.scenario.performance import Performance
from treadle.testing.scenario.report import ScenarioFailure
from treadle.testing.scenario.runner import run_text
from treadle.testing.world.projection import Projection

Json = Any

AFTERWARDS_MS = 86_400_000
"""Time given to a run that has ended, after its recorded end: a backoff without its jitter may end later here."""


def export(recorded: RecordedRun) -> str:
    """The text of the scenario."""
    expected = expectations(recorded)
    scenarios = [located(recorded, scenario_of(recorded, held=held)) for held in (False, True)]
    left_out: list[str] = []
    for given_up in ((), ("order",), ("order", "visits"), ("order", "visits", "output")):
        left_out = [key for key in given_up if key in expected]
        kept = {key: value for key, value in expected.items() if key not in left_out}
        for scenario in scenarios:
            text = written(recorded, scenario, kept, left_out)
            if all(result.ok for result in run_text(text, "export")):
                return text
    return _what_passes(recorded, scenarios[0], list(expected))


def _what_passes(recorded: RecordedRun, scenario: dict[str, Json], left_out: list[str]) -> str:
    """The scenario without expectations, and without the steps that nobody can take in a play; its head says so."""
    steps = list(scenario["steps"] or ())
    refused: list[str] = []
    while True:
        text = written(recorded, {**scenario, "steps": steps or None}, {}, [*left_out, *refused])
        failed = next((result for result in run_text(text, "export") if not result.ok), None)
        found = re.match(r"step (\d+) ", failed.reason or "") if failed is not None else None
        if found is None:
            return text
        step = steps.pop(int(found[1]) - 1)
        refused.append(f"step {_json(step)}")


def scenario_of(recorded: RecordedRun, *, held: bool = False) -> dict[str, Json]:
    """The scenario as data, without expectations. `held`: outcomes are given by steps in their recorded order, because
    what happened within one millisecond has no order on a clock."""
    started = recorded.started
    start: dict[str, Json] = {"workflow": started.workflow, "input": _input(recorded)}
    if started.idempotency_key is not None:
        start["idempotency_key"] = started.idempotency_key
    if started.entity is not None and not any(isinstance(event, e.RunForked) for event in recorded.history):
        start["entity"] = entity_of(started.entity)
    workflows = {workflow.workflow: definition_of(workflow) for workflow in recorded.workflows()}
    first = workflows.pop(started.workflow)
    head = {"scenario": f"run {recorded.run} of {started.workflow}", "definitions": [first, *workflows.values()]}
    if waiting.never_began(recorded):
        before = {"workflow": start["workflow"], "input": start["input"]}
        steps = [*waiting.starts_before(recorded, start), *waiting.steps_of(recorded)]
        return {**head, "start": before, "mocks": waiting.held(recorded), "steps": steps}
    mocks = mocks_of(recorded, held=held)
    for workflow in [
        *recorded.workflows(),
        *(version for run in recorded.family() for version in run.versions.values()),
    ]:
        mocks |= held_back(workflow, mocks)
    return {**head, "start": start, "mocks": mocks, "steps": timed_steps(recorded, held=held)}


def _input(recorded: RecordedRun) -> Json:
    """The input it was started with: of a batch the first item, of a fork from the very beginning what it changed."""
    forked = next((segment.forked for segment in segments_of(recorded) if segment.plain), None)
    changed = (forked.changes or {}).get("input") if forked is not None else None
    if changed is not None:
        return changed
    first = recorded.history[0]
    if isinstance(first, e.RunQueued):
        return first.input
    value = recorded.started.input
    is_batch = recorded.workflow.batch is not None and isinstance(value, dict) and "items" in value
    return value["items"][0] if is_batch else value


def timed_steps(recorded: RecordedRun, *, held: bool = False) -> list[dict[str, Json]] | None:
    """The steps with the time that passes between them; None: the run is driven to its end."""
    projection = Projection()
    projection.apply(recorded.history)
    over = projection.status in RUN_ENDED
    taken = steps_of(recorded, held=held)
    if over and not taken:
        return None
    steps: list[dict[str, Json]] = []
    now = 0
    forks = 0
    for at, _order, step in taken:
        if at > now:
            steps.append({"advance_ms": at - now})
            now = at
        if "fork" in step:
            forks += 1
            origin = {"run": step["run"]} if "run" in step else {}
            name = f"fork {forks}" if forks > 1 else "fork"
            steps += [{"fork": {**step["fork"], "as": name}, **origin}, {"cancel": "run", **origin}]
        else:
            steps.append(step)
    segment = segments_of(recorded)[-1]
    rest = max(recorded.history[-1].at - segment.offset - now, 0) + (AFTERWARDS_MS if over else 0)
    return [*steps, {"advance_ms": rest} if rest else {"settle": True}]


def located(recorded: RecordedRun, scenario: dict[str, Json]) -> dict[str, Json]:
    """The scenario with the points of its forks. Sequence numbers of a play are not those of the record, so each fork
    is looked for where everything stands as it did."""
    steps: list[dict[str, Json]] = scenario.get("steps") or []
    places = [place for place, step in enumerate(steps) if "fork" in step]
    if not places:
        return scenario  # nor has the fork of a run that never began a past: it is played as a start
    segments = [segment for segment in segments_of(recorded) if segment.forked is not None and not segment.plain]
    for place, segment in zip(places, segments, strict=True):
        fork = dict(steps[place]["fork"])
        fork["at"] = "now"
        if not segment.is_now:
            found = _point(recorded, {**scenario, "steps": steps[:place] or [{"settle": True}]}, segment, steps[place])
            fork["at"] = found if found is not None else "now"
        steps[place] = {**steps[place], "fork": fork}
    return scenario


def _point(recorded: RecordedRun, before: dict[str, Json], segment: Segment, step: dict[str, Json]) -> int | None:
    """The sequence number, in a play of what comes before a fork, at which the run stands as it did when recorded."""
    projection = Projection()
    projection.apply(recorded.history[: segment.after - 1])
    wanted = standing(projection)
    performance = performance_of(before)
    with performance.world as world:
        with suppress(ScenarioFailure, ScenarioError):
            performance.perform()
        run = next((run for run in world.runs if str(run) == step["run"]), None) if "run" in step else world.runs[0]
        if run is None:
            return None
        history, ends = list(world.projection(run).events), world.decisions(run)
    played = Projection()
    found: int | None = None
    for event in history:
        played.apply([event])
        if event.seq in ends and standing(played) == wanted:
            found = event.seq
    return found


def standing(projection: Projection) -> Json:
    """How everything stands in a run, in words that a play and its record share."""
    visits = [
        (str(visit), visit.path, _AT_WORK.get(visit.state, visit.state), visit.waiting, visit.attempt, visit.answered)
        for visit in projection.visits.values()
    ]
    counted = (e.SignalReceived, e.SignalTaken, e.TimerFired, e.GateOpened, e.JoinArrived, e.ContextUpdated)
    counts = tuple(sum(isinstance(event, kind) for event in projection.events) for kind in counted)
    return projection.status, sorted(visits, key=str), counts


_AT_WORK = {TokenState.DISPATCHED: TokenState.EXECUTING}


def performance_of(scenario: dict[str, Json]) -> Performance:
    """A scenario that is data, ready to be played."""
    told = {key: value for key, value in scenario.items() if value is not None}
    parsed = parse_scenario(read_documents(json.dumps(told), "export")[0])
    return Performance(parsed, [load_definition(definition).require() for definition in parsed.definitions])


def expectations(recorded: RecordedRun) -> dict[str, Json]:
    """Status, output, error and the visits in order."""
    projection = Projection()
    projection.apply(recorded.history)
    found: dict[str, Json] = {"status": projection.status.value}
    if projection.error is not None and projection.status.value != "completed":
        found["error"] = {"kind": projection.error.kind}
    if isinstance(projection.output, dict):
        found["output"] = projection.output
    begun = projection.begun()
    found["order"] = [visit.name for visit in begun]
    counts: dict[str, int] = {}
    for visit in begun:
        counts[visit.name] = counts.get(visit.name, 0) + 1
    found["visits"] = counts
    return found


def written(recorded: RecordedRun, scenario: dict[str, Json], expected: dict[str, Json], left_out: list[str]) -> str:
    """The scenario as YAML: one line for each definition, mock, step and expectation."""
    lines = [f"# Run {recorded.run} as it was recorded. Values that were redacted stay redacted."]
    if left_out:
        lines.append(f"# Not expected, because the virtual clock plays it otherwise: {', '.join(left_out)}.")
    lines.append(f"scenario: {_json(scenario['scenario'])}")
    lines.append("definitions:")
    lines += [f"  - {_json(definition)}" for definition in scenario["definitions"]]
    lines.append(f"start: {_json(scenario['start'])}")
    if scenario["mocks"]:
        lines.append("mocks:")
        lines += [f"  {_json(address)}: {_json(outcomes)}" for address, outcomes in scenario["mocks"].items()]
    if scenario["steps"] is not None:
        lines.append("steps:")
        lines += [f"  - {_json(step)}" for step in scenario["steps"]]
    name = waiting.NAME if waiting.never_began(recorded) else segments_of(recorded)[-1].name
    if expected and name is not None:
        expected = {"runs": {name: expected}}
    if expected:
        lines.append("expect:")
        lines += [f"  {key}: {_json(value)}" for key, value in expected.items()]
    return "\n".join(lines) + "\n"


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)

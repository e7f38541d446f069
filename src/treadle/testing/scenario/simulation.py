"""A definition played once with scripted outcomes, for somebody who wants to see what it would do.

    python -m treadle.testing.scenario.simulation < question.json > answer.json

Owns what makes a scenario out of a question, and the answer: every event, and how the run ended. It is the production
engine on a virtual clock and a store in memory; nothing is kept. People who only read may ask: a step that would run a
function, a command or anything outside fails unless it is mocked, and no file is read. A process of its own plays it,
so that time and memory can be bounded from outside.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec
from msgspec import Struct

from treadle.errors import ScenarioError
from treadle.language import load_value
from treadle.model.definition import Task
from treadle.model.errors import Error
from treadle.model.events import Event
from treadle.testing.scenario.binding import check_names
from treadle.testing.scenario.definitions import load_definition
from treadle.testing.scenario.documents import read_documents
from treadle.testing.scenario.parse import parse_scenario
from treadle.testing.scenario.performance import Performance
from treadle.testing.scenario.report import ScenarioFailure
from treadle.testing.world.world import World

Json = Any

EVENTS_MAX = 10_000
"""Events that an answer repeats; a loop that never ends fills its limits with more."""
HARMLESS = frozenset(
    {
        *("set", "template", "assert", "mock", "emit", "send", "cancel_group", "add_siblings", "close_group"),
        *("human", "wait", "signal", "workflow_call", "webhook", "artifact_write", "artifact_read"),
    }
)
"""Kinds that only compute, or wait for the script."""
MEMORY_MAX = 2 << 30
CPU_S = 20


class SimulationQuestion(Struct):
    """What to play: the first definition, with those it calls beside it."""

    definitions: list[Json]
    input: Json = None
    entity: Json = None
    mocks: dict[str, Json] = {}
    steps: list[Json] | None = None
    expect: Json = None


class SimulationResult(Struct):
    """How the run ended."""

    status: str | None
    """Null: it was refused, and `error` says why."""
    output: Json
    error: Error | None
    elapsed_ms: int
    """Virtual time from its start to its end, or until nothing more could happen."""
    ok: bool
    """Whether every step was accepted and everything that was expected holds."""
    reason: str | None
    """What did not hold."""
    events: int
    """Number of events; `history` repeats the first ones."""


class SimulationAnswer(Struct):
    """Everything that happened, and how it ended."""

    history: list[Json]
    result: SimulationResult
    scenario: Json
    """What was played, as a document for `treadle test`: with the workflows that were called, and with failing outcomes
    for what would have reached outside."""


def simulate(question: SimulationQuestion) -> SimulationAnswer:
    """Plays a definition. Raises ScenarioError for a question that cannot be played."""
    _refuse_files(question)
    document: dict[str, Json] = {
        "scenario": "simulation",
        "definitions": question.definitions,
        "start": {"input": question.input if question.input is not None else {}},
        "mocks": {**_outside(question), **question.mocks},
    }
    if question.entity is not None:
        document["start"]["entity"] = question.entity
    for name in ("steps", "expect"):
        if (given := getattr(question, name)) is not None:
            document[name] = given
    (read,) = read_documents(msgspec.json.encode(document), "<simulation>")
    scenario = parse_scenario(read)
    workflows = []
    for definition in scenario.definitions:
        loaded = load_definition(definition)
        if loaded.workflow is None:
            raise ScenarioError("\n".join(str(problem) for problem in loaded.errors))
        workflows.append(loaded.workflow)
    check_names(scenario, workflows)
    played = Performance(scenario, workflows)
    with played.world:
        reason = None
        try:
            played.perform()
        except ScenarioFailure as failure:
            reason = failure.reason
        return _answer(played.world, reason, document)


def _answer(world: World, reason: str | None, document: Json) -> SimulationAnswer:
    if not world.runs:
        return SimulationAnswer([], SimulationResult(None, None, None, 0, ok=False, reason=reason, events=0), document)
    seen = world.projection(world.runs[0])
    events = seen.events
    result = SimulationResult(
        seen.status.value,
        seen.output,
        seen.error,
        (seen.ended_at or world.clock.now) - events[0].at,
        ok=reason is None,
        reason=reason,
        events=len(events),
    )
    return SimulationAnswer([event_object(event) for event in events[:EVENTS_MAX]], result, document)


def event_object(event: Event) -> dict[str, Json]:
    """An event as an object with named fields; the store keeps events as arrays."""
    names = [name for name in event.__struct_fields__ if name not in ("seq", "at")]
    parts = {name: msgspec.to_builtins(value) for name in names if (value := getattr(event, name)) is not None}
    return {"seq": event.seq, "at": event.at, "type": event.type, **parts}


def _refuse_files(question: SimulationQuestion) -> None:
    deployed = [step.get("deploy") for step in question.steps or () if isinstance(step, dict)]
    for one in (*question.definitions, *deployed):
        if isinstance(one, dict) and "file" in one:
            raise ScenarioError("a simulation reads no files: write the definition itself")


def _outside(question: SimulationQuestion) -> dict[str, Json]:
    """A failing outcome for every step that would reach outside and is not mocked."""
    found: dict[str, Json] = {}
    for definition in question.definitions:
        workflow = load_value(definition, "<simulation>").workflow
        for ref, node in workflow.nodes.items() if workflow is not None else ():
            undo = node.compensate.task if node.compensate is not None else None
            for address, task in ((ref, node.task), (f"compensate({ref})", undo)):
                if isinstance(task, Task) and address not in question.mocks:
                    found.update(_steps(address, task))
    return found


def _steps(address: str, task: Task) -> dict[str, Json]:
    text = "is not executed in a simulation: mock it"
    return {
        f"{address}/{step.ref}": {"error": {"message": f"an action of kind {step.action.kind!r} {text}"}}
        for step in task.steps
        if step.action.kind not in HARMLESS
    }


def main() -> None:
    """Answers the question on stdin: `{"answer": …}`, or `{"problem": text}`."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    except (ImportError, ValueError, OSError):  # a system without these limits: the asker's deadline is left
        pass
    question = msgspec.json.decode(sys.stdin.buffer.read(), type=SimulationQuestion)
    try:
        answer: dict[str, Any] = {"answer": simulate(question)}
    except ScenarioError as problem:
        answer = {"problem": str(problem)}
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()

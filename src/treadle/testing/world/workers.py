"""Scripted workers: execute tasks in a virtual world, with mocks where there are any and the real task otherwise.

Owns held work, which a crash loses. Promises that an attempt runs through the same pipeline as in an engine, schemas
and step semantics included, on virtual time; that nothing is sent to the outside; and an exact count of dispatches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from msgspec.structs import replace

from treadle.actions.failure import error_of
from treadle.actions.mock import mock_reply
from treadle.actions.protocol import AttemptFacts, Call, Done, Failed, Later, Reply
from treadle.actions.registry import Registry
from treadle.errors import TreadleError
from treadle.graph.compile import SUSPENDING
from treadle.model.definition import Task
from treadle.model.effects import RunTask
from treadle.model.ids import RunId, TokenId
from treadle.model.spending import report_in
from treadle.runtime.execute.drive import Drive, Hold, Hook
from treadle.runtime.execute.task import Invoke, run_task
from treadle.runtime.execute.task import TaskOutcome as Result
from treadle.testing.world.catalog import MockedVersion
from treadle.testing.world.mocks import ExecutionId, MockPlace, Script, ScriptReader
from treadle.testing.world.outcomes import Outcome

NOTHING = Result(output={})
"""The outcome of a node without a task and without a mock that fits."""


@dataclass(slots=True)
class _Held:
    attempt: int
    drive: Drive
    reading: ScriptReader
    model: bool = False
    """Whether the work asks a language model."""


class Workers:
    """Executes attempts. `dispatches` counts them by visit and survives crashes; the work does not."""

    def __init__(self, script: Script, registry: Registry | None = None) -> None:
        self.dispatches: Counter[tuple[RunId, TokenId]] = Counter()
        self._script = script
        self._registry = registry or Registry()
        self._held: dict[tuple[RunId, TokenId], _Held] = {}

    def begin(
        self, deployed: MockedVersion, effect: RunTask, facts: AttemptFacts, stack: tuple[int, ...]
    ) -> tuple[Result | None, int]:
        """Executes an attempt; returns its result and duration. No result while it is held."""
        self.dispatches[facts.run, facts.token] += 1
        place = MockPlace(effect.node, compensation=effect.record is not None)
        reading = self._script.reading(ExecutionId(facts.run, facts.token, facts.attempt))
        outcome = reading.take(place, stack) if self._script.covers(place) else None
        if outcome is not None:
            task, hook = _task(deployed, place, mocked=True), _whole(outcome, _asks_a_model(deployed, place))
        else:
            task, hook = _task(deployed, place, mocked=False), _stepwise(reading, place, stack)
        if task is None:
            return NOTHING, 0
        drive = Drive(run_task(task, effect.input, facts, self._registry), hook)
        result, elapsed_ms = drive.run()
        if result is None:
            model = _asks_a_model(deployed, place) if outcome is not None else _is_model(drive)
            self._held[facts.run, facts.token] = _Held(facts.attempt, drive, reading, model)
        return result, elapsed_ms

    def holds(self, run: RunId, token: TokenId) -> bool:
        """Whether an attempt of this visit waits for a release."""
        return (run, token) in self._held

    def release(self, run: RunId, token: TokenId, outcome: Outcome) -> tuple[int, Result | None, int]:
        """Gives a held attempt its outcome; returns (attempt, its result, how long the rest takes)."""
        held = self._held.pop((run, token))
        held.reading.amend(outcome)
        assert held.drive.held is not None
        result, elapsed_ms = held.drive.release(_answer(outcome, held.drive.held.call, held.model))
        if result is None:
            self._held[run, token] = held
        return held.attempt, result, elapsed_ms

    def lose_everything(self) -> None:
        """Drops all held work: the engine that executed it has crashed."""
        self._held.clear()


def _task(deployed: MockedVersion, place: MockPlace, *, mocked: bool) -> Task | None:
    """The task as mocked, or as written; None for a branch of a suspending node that no mock fits."""
    node = (deployed.graph.definition if mocked else deployed.original).nodes[place.node]
    task = node.task
    if place.compensation:
        task = node.compensate.task if node.compensate else None
    return None if task is not None and task.steps[0].action.kind in SUSPENDING else task


def _asks_a_model(deployed: MockedVersion, place: MockPlace) -> bool:
    """Whether the task as written asks a language model: what its output says is spent counts then."""
    task = deployed.original.nodes[place.node].task
    return task is not None and any(step.action.kind == "llm" for step in task.steps)


def _is_model(drive: Drive) -> bool:
    return drive.held is not None and drive.held.kind.name == "llm"


def _whole(outcome: Outcome, model: bool) -> Hook:
    return lambda invoke: _reply(outcome, invoke.call, model)


def _stepwise(reading: ScriptReader, place: MockPlace, stack: tuple[int, ...]) -> Hook:
    """Mocks single steps; every other step is executed."""

    def hook(invoke: Invoke) -> Reply | Hold | None:
        outcome = reading.take(place._replace(step=invoke.call.step), stack)
        return None if outcome is None else _reply(outcome, invoke.call, invoke.kind.name == "llm")

    return hook


def _reply(outcome: Outcome, call: Call, model: bool) -> Reply | Hold:
    return Hold() if outcome.hold else _answer(outcome, call, model)


def _answer(outcome: Outcome, call: Call, model: bool) -> Reply:
    try:
        reply = mock_reply(outcome.config(), call)
        return _with_spending(reply, model)
    except TreadleError as problem:  # a {cel} in the mock's output has no value for this input
        return Failed(error_of(problem))


def _with_spending(reply: Reply, model: bool) -> Reply:
    """A language model spends what its output says (6.8)."""
    if isinstance(reply, Later) and isinstance(reply.then, Done):
        return replace(reply, then=_with_spending(reply.then, model))
    if not model or not isinstance(reply, Done):
        return reply
    return replace(reply, spent=report_in(reply.output) or reply.spent)

"""Attempts of a recorded run and what came of each: the mocks of a scenario that plays the run again.

Owns the reading of a history into outcomes. An attempt without an answer (it timed out, was cancelled, or is still
under way) is held: nothing is guessed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from treadle.graph.compile import SUSPENDING
from treadle.model import events as e
from treadle.model.definition import Task, Workflow
from treadle.model.errors import Error
from treadle.model.ids import TokenId
from treadle.model.states import Waiting
from treadle.testing.recorded.past import RecordedRun
from treadle.testing.recorded.segments import Order, timed_family
from treadle.testing.world.projection import Projection, Visit

Json = Any

ASKING = frozenset({"emit", "send", "add_siblings", "close_group", "cancel_group", "artifact_write"})
"""Kinds that ask something of their run: a mock of the whole task would leave that out."""
INSIDE = ASKING | {"set", "template", "assert", "artifact_read"}
"""Kinds that reach nothing outside: they can be executed again."""


@dataclass(slots=True)
class RecordedAttempt:
    """One attempt of a visit."""

    address: str
    at: int
    seq: int
    outcome: dict[str, Json] | None = None
    spent: Json = None
    ended: tuple[int, int] | None = None
    """When it gave its outcome: the time, and the number of the event."""
    token: TokenId | None = None

    def end(self, at: int, seq: int, outcome: dict[str, Json]) -> None:
        """Note what came of it, once."""
        if self.outcome is None:
            self.outcome = {**outcome, **(self.spent or {})}
            self.ended = (at, seq)

    def mock(self) -> dict[str, Json]:
        """The outcome as a scenario writes it."""
        if self.outcome is None or self.ended is None:
            return {"hold": True}
        later = self.ended[0] - self.at
        return {**self.given(), "after_ms": later} if later > 0 else self.given()

    def given(self) -> dict[str, Json]:
        """The outcome without its time. What looks like a computed output there is none."""
        outcome = self.outcome or {}
        return {**outcome, "output": literally(outcome["output"])} if "output" in outcome else outcome


def literally(value: Json) -> Json:
    """An output that is given as it is: an object `{cel: …}` in it is written as the computation that gives it."""
    if isinstance(value, list):
        return [literally(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"cel"} and isinstance(value["cel"], str):
        return {"cel": json.dumps(value)}
    return {key: literally(entry) for key, entry in value.items()}


def mocks_of(recorded: RecordedRun, *, held: bool = False) -> dict[str, list[dict[str, Json]]]:
    """Address → outcomes in the order in which the attempts began, over the run and its children. `held`: the outcomes
    are given by steps."""
    found: list[tuple[int, Order, RecordedAttempt]] = []
    for member in timed_family(recorded):
        executed = executed_again([member.run.workflow, *member.run.versions.values()])
        for attempt, node in attempts_of(member.run):
            if node not in executed:
                found.append((attempt.at - member.offset(attempt.seq), member.order(attempt.seq), attempt))
    mocks: dict[str, list[dict[str, Json]]] = {}
    for _at, _order, attempt in sorted(found, key=lambda entry: entry[:2]):
        mocks.setdefault(attempt.address, []).append({"hold": True} if held else attempt.mock())
    return mocks


def held_back(workflow: Workflow, mocks: Collection[str]) -> dict[str, list[dict[str, Json]]]:
    """Mocks that hold everything which would reach outside and has no recorded outcome: nothing is executed in
    earnest."""
    named = {address.partition("[")[0] for address in mocks}
    harmless = INSIDE | SUSPENDING
    return {
        ref: [{"hold": True}]
        for ref, node in workflow.nodes.items()
        if ref not in named and node.task is not None and not _kinds(node.task) <= harmless
    }


def executed_again(versions: Iterable[Workflow]) -> set[str]:
    """Nodes whose task is executed instead of mocked: in every version it asks something of the run, and reaches
    nothing outside."""
    found: dict[str, bool] = {}
    for workflow in versions:
        for ref, node in workflow.nodes.items():
            again = node.task is not None and _kinds(node.task) <= INSIDE and bool(_kinds(node.task) & ASKING)
            found[ref] = found.get(ref, True) and again
    return {ref for ref, again in found.items() if again}


def _kinds(task: Task) -> set[str]:
    return {step.action.kind for step in task.steps}


def attempts_of(recorded: RecordedRun) -> list[tuple[RecordedAttempt, str]]:
    """Every attempt that was handed out, with the node it belongs to; also every call whose child is not known."""
    reading = _Reading(recorded.without_child())
    for event in recorded.history:
        reading.read(event)
    return reading.found


class _Reading:
    def __init__(self, calls: Collection[str]) -> None:
        self.projection = Projection()
        self.calls = calls
        self.found: list[tuple[RecordedAttempt, str]] = []
        self.open: dict[TokenId, RecordedAttempt] = {}

    def read(self, event: e.Event) -> None:
        self.projection.apply([event])
        if isinstance(event, e.ChildStarted):
            if self.projection.visits[event.token].node in self.calls:
                self._begin(event, event.token)
        elif isinstance(event, e.TokenDispatched):
            if not event.recovery:
                self._begin(event, event.token)
        elif isinstance(event, e.TokenWaiting) and event.reason is Waiting.EXTERNAL:
            attempt = self.open.pop(event.token)  # a webhook: its answer is a step
            self.found = [entry for entry in self.found if entry[0] is not attempt]
        elif isinstance(event, e.RunForked):
            self.open.clear()  # what was under way is done again, and has an outcome of its own
        else:
            self._ended(event)

    def _begin(self, event: e.Event, token: TokenId) -> None:
        visit: Visit = self.projection.visits[token]
        attempt = RecordedAttempt(str(visit), event.at, event.seq, token=token)
        self.open[token] = attempt
        self.found.append((attempt, "" if visit.compensation else visit.node))

    def _ended(self, event: e.Event) -> None:
        attempt = self.open.get(getattr(event, "token", None) or TokenId(0))
        if attempt is None:
            return
        if isinstance(event, e.TokenProgress):
            if event.spent is not None and event.spent.child is None and isinstance(event.data, dict):
                attempt.spent = {name: event.data[name] for name in ("cost", "usage") if event.data.get(name)}
        elif isinstance(event, e.TokenCompleted) or (
            isinstance(event, e.TokenWaiting) and event.reason is Waiting.SIBLINGS
        ):
            attempt.end(event.at, event.seq, {"output": event.output})
        elif isinstance(event, e.CallbackReceived):
            told = {"output": event.output} if event.error is None else {"error": _error(event.error)}
            attempt.end(event.at, event.seq, told)
        elif isinstance(event, e.TokenFailed | e.TokenRetryScheduled) and event.error is not None:
            attempt.end(event.at, event.seq, {"error": _error(event.error)})
        if isinstance(event, e.TokenTimedOut | e.TokenCancelled | e.TokenRetryScheduled | e.TokenSkipped):
            self.open.pop(event.token, None)


def _error(error: Error) -> dict[str, Json]:
    return {"kind": error.kind, "message": error.message, "retryable": error.retryable}

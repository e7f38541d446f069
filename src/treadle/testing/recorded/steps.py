"""Steps of a scenario that plays a recorded run again: the answers of people and systems, and the commands of
operators, at their times.

Owns which event of a history came from outside. What the engine does by itself (timers, deadlines, budgets, children)
happens again by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.model.spending import PARTS
from treadle.model.states import TokenState, Waiting
from treadle.testing.recorded import changes
from treadle.testing.recorded.outcomes import attempts_of, executed_again, literally
from treadle.testing.recorded.past import RecordedRun
from treadle.testing.recorded.reading import FAILED, RecordedReading, ScenarioVersions, has_failed
from treadle.testing.recorded.segments import FamilyMember, Order, segment_at, segments_of, timed_family
from treadle.testing.world.projection import Projection

Json = Any
Step = dict[str, Json]


class TimedStep(NamedTuple):
    """A step and when it was taken."""

    at: int
    """In the time of the play."""
    order: Order
    """The order of steps at one instant."""
    step: Step


def steps_of(recorded: RecordedRun, *, held: bool = False) -> list[TimedStep]:
    """Everything that came from outside, oldest first. `held`: the outcomes of attempts, too."""
    family = timed_family(recorded)
    runs = frozenset(member.run.run for member in family) | {
        event.from_ for event in recorded.history if isinstance(event, e.RunForked)
    }
    segments = segments_of(recorded)
    versions = ScenarioVersions()
    found: list[TimedStep] = []
    for place, member in enumerate(family):
        name = _run_name(member.run, family) if place else None
        reading = _Reading(member.run, runs, versions, held, place > 0)
        for event, step in reading.steps():
            named = segment_at(segments, event.seq).name if not place else name
            after = (
                event.seq + 1 if isinstance(event, e.RunForked) else event.seq
            )  # a fork has the time of its own life
            at = max(event.at - member.offset(after), 0)
            signed = {**step, "run": named} if named is not None else step
            found.append(TimedStep(at, member.order(event.seq), signed))
    return sorted(found, key=lambda timed: (timed.at, timed.order))


def _run_name(run: RecordedRun, family: list[FamilyMember]) -> str:
    """The name by which a step means a child: its workflow, or the visit that has called it if there are several."""
    alike = [member for member in family if member.run.workflow.workflow == run.workflow.workflow]
    if len(alike) == 1:
        return run.workflow.workflow
    for member in family:
        projection = Projection()
        projection.apply(member.run.history)
        for event in member.run.history:
            if isinstance(event, e.ChildStarted) and event.run == run.run:
                return str(projection.visits[event.token])
    return run.workflow.workflow


class _Reading(RecordedReading):
    def __init__(
        self, recorded: RecordedRun, family: frozenset[RunId], versions: ScenarioVersions, held: bool, called: bool
    ) -> None:
        super().__init__(recorded, versions)
        self._history = recorded.history
        self._family = family
        self._sends = _sends_to_itself(recorded.workflow)
        self._called = called
        """Its caller is played, too, and cancels and retries it. To a child that is played alone, steps do."""
        self._quorum: set[int] = set()
        self._failed_records: set[int] = set()
        self._retried_at: int | None = None
        self._reopenings = [
            event
            for child in recorded.children
            for event in child.history
            if isinstance(event, e.RunResumed) and event.reopened
        ]
        executed = executed_again([recorded.workflow, *recorded.versions.values()])
        self._ended = {
            attempt.ended[1]: attempt
            for attempt, node in (attempts_of(recorded) if held else ())
            if attempt.ended is not None and node not in executed
        }

    def steps(self) -> Iterator[tuple[e.Event, Step]]:
        for position, event in enumerate(self._history):
            before = self._history[position - 1] if position else None
            attempt = self._ended.get(event.seq)
            if attempt is not None and attempt.outcome is not None and attempt.token is not None:
                released = self.addressed("release", attempt.token, lambda visit: visit.live)
                yield event, {**released, **attempt.given()}
            read = READERS.get(type(event))
            found = read(self, event, before) if read is not None else None
            for step in found if isinstance(found, list) else [found] if found is not None else []:
                yield event, step
            self.projection.apply([event])

    def queued(self, event: e.RunQueued, _before: e.Event | None) -> Step | None:
        """A further start that has joined a batch."""
        if event.seq == 1 or event.why != "batch":
            return None
        return {"start": {"workflow": event.workflow, "input": event.input}}

    def forked(self, event: e.RunForked, _before: e.Event | None) -> list[Step] | None:
        return changes.steps(self, event)

    def gate(self, event: e.GateCompleted, _before: e.Event | None) -> Step | None:
        return None if event.token in self._quorum else self._answer(event, event.instead_of is not None)

    def quorum(self, event: e.GateAnswered, _before: e.Event | None) -> Step:
        self._quorum.add(event.token)
        return self._answer(event, False)

    def _answer(self, event: e.GateCompleted | e.GateAnswered, force: bool) -> Step:
        chosen = self.addressed("gate", event.token, lambda visit: visit.waiting is Waiting.HUMAN)
        by = {"by": event.by} if event.by is not None else {}
        return {**chosen, "data": event.data, **by, **({"force": True} if force else {})}

    def callback(self, event: e.CallbackReceived, _before: e.Event | None) -> Step | None:
        if self.projection.visits[event.token].waiting is not Waiting.EXTERNAL:
            return None  # a task's answer during a pause: its mock has it
        chosen = self.addressed("callback", event.token, lambda visit: visit.waiting is Waiting.EXTERNAL)
        error = event.error
        told = (
            {"output": event.output}
            if error is None
            else {"error": {"kind": error.kind, "message": error.message, "retryable": error.retryable}}
        )
        decision = self.recorded.decision(event)
        refused = next((one.kind for one in decision if isinstance(one, e.CallbackRefused)), None)
        return {**chosen, **told, **self._spent(event), **({"refused": refused} if refused is not None else {})}

    def _spent(self, event: e.CallbackReceived) -> Step:
        later = self._history[event.seq : event.seq + 2]
        data = next((one.data for one in later if isinstance(one, e.TokenProgress) and one.token == event.token), None)
        return {name: data[name] for name in ("cost", "usage") if data.get(name)} if isinstance(data, dict) else {}

    def signal(self, event: e.SignalReceived, _before: e.Event | None) -> Step | None:
        sender = (event.command or "").rsplit(":", 3)[0]
        if sender in self._family or (event.command is None and event.name in self._sends):
            return None
        told = {"name": event.name, "key": event.key, "data": event.data}
        return {"signal": {name: value for name, value in told.items() if value is not None}}

    def paused(self, event: e.RunPaused, _before: e.Event | None) -> Step | None:
        return (
            None if event.by in ("timeout", "budget") or event.reason == "to extend the deadline" else {"pause": True}
        )

    def resumed(self, event: e.RunResumed, before: e.Event | None) -> Step | None:
        if event.deadline is not None:
            return {"extend_timeout_ms": event.deadline - event.at}
        if event.reopened:
            return self._retry(event)
        return None if isinstance(before, e.BudgetRaised) else {"resume": True}

    def raised(self, event: e.BudgetRaised, _before: e.Event | None) -> Step:
        return {"extend": {part: getattr(event, part) for part in PARTS if getattr(event, part)}}

    def _retry(self, event: e.RunResumed) -> Step | None:
        """One visit by its address, or the whole run if several had failed or a child has. None: the parent has asked
        for it, it follows a retry inside a child, or a skip or jump has taken the failure back."""
        before, self._retried_at = self._retried_at or 0, event.at
        decision = self.recorded.decision(event)
        if any(isinstance(one, e.TokenSkipped | e.TokenJumped) for one in decision):
            return None
        inside = [one for one in self._reopenings if before < one.at <= event.at]
        if (event.levels and self._called) or any(not one.levels for one in inside):
            return None
        if inside:
            return {"retry": "run"}
        again = {one.token for one in decision if isinstance(one, e.TokenRetryScheduled) and one.by}
        chosen = [visit for visit in self.projection.visits.values() if visit.state in FAILED and visit.token in again]
        if len(chosen) != 1:
            return {"retry": "run"}
        return self.addressed("retry", chosen[0].token, has_failed)

    def retried(self, event: e.TokenRetryScheduled, _before: e.Event | None) -> Step | None:
        """A visit of a run that had not failed."""
        visit = self.projection.visits[event.token]
        reopening = (e.RunResumed, e.TokenSkipped, e.TokenJumped)
        if event.by is None or visit.compensation or visit.state is TokenState.CANCELLED:
            return None
        if any(isinstance(one, reopening) for one in self.recorded.decision(event)):
            return None
        if any(one.at == event.at for one in self._reopenings):
            return None  # its child was retried, which takes it along
        return self.addressed("retry", event.token, has_failed)

    def cancelled(self, event: e.RunCancelled, _before: e.Event | None) -> Step | None:
        if event.by.startswith("node ") or (event.by == "parent" and self._called):
            return None
        return {"abort": True} if event.reason == "aborted" else {"cancel": "run"}

    def visit_cancelled(self, event: e.TokenCancelled, _before: e.Event | None) -> Step | None:
        """What nothing else in its decision explains was asked for by somebody."""
        decision = self.recorded.decision(event)
        if decision[0] is not event or not event.token or any(isinstance(one, _REASONS) for one in decision):
            return None
        gone = [one.token for one in decision if isinstance(one, e.TokenCancelled) and one.by == event.by and one.token]
        if len(gone) > 1:
            frames = [set(self.projection.visits[token].frames) for token in gone]
            groups = set.intersection(*({group for group, _branch in stack} for stack in frames))
            if groups:
                return self._cancel_group(max(groups), decision)
        return self.addressed("cancel", event.token, lambda visit: visit.live, "node")

    def _cancel_group(self, group: int, decision: list[e.Event]) -> Step:
        opened = next(one for one in self._history if isinstance(one, e.GroupOpened) and one.group == group)
        fires = any(isinstance(one, e.JoinFired | e.JoinFailed) and one.group == group for one in decision)
        return {"cancel": {"group": _name_of(opened), "join": "fire" if fires else "drop"}}

    def late(self, event: e.ResultIgnored, _before: e.Event | None) -> Step | None:
        """A success that came too late, and is undone all the same."""
        decision = self.recorded.decision(event)
        kept = next((one for one in decision if isinstance(one, e.CompensationRecorded)), None)
        if kept is None or kept.token != event.token:
            return None
        return {**self.addressed("release", event.token, lambda _visit: False), "output": literally(kept.output)}

    def grew(self, event: e.GroupGrew, _before: e.Event | None) -> Step | None:
        if event.command is None:
            return None
        opened = next(one for one in self._history if isinstance(one, e.GroupOpened) and one.group == event.group)
        before = [
            one.total
            for one in self._history
            if isinstance(one, e.GroupGrew | e.GroupOpened) and one.group == event.group and one.seq < event.seq
        ][-1]
        more = {"items": event.items} if event.items is not None else {"count": event.total - before}
        return {"add_siblings": {"group": _name_of(opened), **more}}

    def closed(self, event: e.GroupClosed, _before: e.Event | None) -> Step | None:
        decision = self.recorded.decision(event)
        if not isinstance(decision[0], e.GroupClosed | e.TokenCancelled) or event.by is None:
            return None
        if any(isinstance(one, _REASONS) and not isinstance(one, e.GroupClosed) for one in decision):
            return None
        opened = next(one for one in self._history if isinstance(one, e.GroupOpened) and one.group == event.group)
        return self._cancel_group(event.group, decision) if event.withdrawn else {"close_group": _name_of(opened)}

    def skipped(self, event: e.CompensationSkipped, _before: e.Event | None) -> Step:
        return {"skip_compensation": self._undone(event.record)}

    def undoing_failed(self, event: e.CompensationFailed, _before: e.Event | None) -> None:
        self._failed_records.add(event.record)

    def undoing(self, event: e.CompensationStarted, _before: e.Event | None) -> Step | None:
        return {"retry_compensation": self._undone(event.record)} if event.record in self._failed_records else None

    def _undone(self, record: int) -> str:
        visit = self.projection.records[record].visit  # type: ignore[index]
        return str(visit)


_REASONS = (
    e.RunCancelled,
    e.TokenJumped,
    e.GroupClosed,
    e.RunTimedOut,
    e.RunForked,
    e.GateCompleted,
    e.GateAnswered,
    e.CallbackReceived,
    e.TimerFired,
    e.SignalReceived,
    e.ChildEnded,
)
"""What a decision has in it whose cancelled visits nobody has asked for, or which another step asks for."""


def _name_of(opened: e.GroupOpened) -> str:
    return opened.names[0].partition(":")[2]


def _sends_to_itself(workflow: Workflow) -> set[str]:
    """Names of signals that a node of the workflow sends to its own run."""
    steps = [step for node in workflow.nodes.values() if node.task is not None for step in node.task.steps]
    sends = [step.action.config for step in steps if step.action.kind == "send" and "run" not in step.action.config]
    return {str(config.get("signal")) for config in sends}


READERS: dict[type[e.Event], Callable[[_Reading, Any, e.Event | None], list[Step] | Step | None]] = {
    e.RunQueued: _Reading.queued,
    e.RunForked: _Reading.forked,
    e.ResultIgnored: _Reading.late,
    e.GateCompleted: _Reading.gate,
    e.GateAnswered: _Reading.quorum,
    e.CallbackReceived: _Reading.callback,
    e.SignalReceived: _Reading.signal,
    e.RunPaused: _Reading.paused,
    e.RunResumed: _Reading.resumed,
    e.BudgetRaised: _Reading.raised,
    e.TokenRetryScheduled: _Reading.retried,
    e.RunCancelled: _Reading.cancelled,
    e.TokenCancelled: _Reading.visit_cancelled,
    e.GroupGrew: _Reading.grew,
    e.GroupClosed: _Reading.closed,
    e.CompensationSkipped: _Reading.skipped,
    e.CompensationFailed: _Reading.undoing_failed,
    e.CompensationStarted: _Reading.undoing,
    e.ContextUpdated: lambda reading, event, _before: changes.edit(reading, event),
    e.TokenSkipped: lambda reading, event, _before: changes.skip(reading, event),
    e.TokenJumped: lambda reading, event, _before: changes.jump(reading, event),
    e.TokenInputSet: lambda reading, event, _before: changes.set_input(reading, event),
    e.RunMigrated: lambda reading, event, _before: changes.migrate(reading, event),
}

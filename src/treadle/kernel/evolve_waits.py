"""Folding events outside the run on behalf of a waiting visit: gates, callbacks, child runs, and answers that a pause
defers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from treadle.kernel import evolve_budget
from treadle.kernel.gate_state import GateQuestion, GivenAnswer, PersonAnswer
from treadle.kernel.invited import verdict
from treadle.kernel.lifecycle import move_external, move_gate
from treadle.kernel.state import Deferred, RunState
from treadle.model import events as e
from treadle.model.states import GateState, RunStatus, Waiting


def gate_opened(state: RunState, event: e.GateOpened) -> None:
    token = state.tokens[event.token]
    before = token.asked if token.gate is GateState.OPEN else None  # of the run that this one was forked from
    token.gate = GateState.OPEN
    token.asked = GateQuestion(event)
    if before is not None:
        token.asked.answers = list(before.answers)
        token.asked.escalated = before.escalated
        token.asked.reminded = before.reminded
        token.asked.commented = before.commented


def gate_claimed(state: RunState, event: e.GateClaimed) -> None:
    state.tokens[event.token].detail = {"claimed_by": event.by}


def gate_released(state: RunState, event: e.GateReleased) -> None:
    state.tokens[event.token].detail = None


def gate_delegated(state: RunState, event: e.GateDelegated) -> None:
    state.tokens[event.token].detail = {"claimed_by": event.to, "delegated_by": event.by}


def gate_completed(state: RunState, event: e.GateCompleted) -> None:
    token = state.tokens[event.token]
    assert token.gate is not None
    token.gate = move_gate(token.gate, "gate.completed")
    each = tuple(token.asked.answers) if token.asked is not None else ()
    state.answers[token.id] = GivenAnswer(token.attempt, event.data, event.by, event.at, each)
    if state.status is RunStatus.PAUSED:
        state.deferred[token.id] = Deferred("gate", token.id, event.data, seq=event.seq)


def gate_answered(state: RunState, event: e.GateAnswered) -> None:
    token = state.tokens[event.token]
    asked = token.asked
    assert asked is not None
    asked.answers.append(PersonAnswer(event.by, event.data, event.at))
    if state.status is RunStatus.PAUSED and verdict(asked) == "failed":
        state.deferred[token.id] = Deferred("quorum", token.id, seq=event.seq)


def gate_commented(state: RunState, event: e.GateCommented) -> None:
    asked = state.tokens[event.token].asked
    assert asked is not None
    asked.commented += 1
    if event.command is not None:
        state.seen.add(event.command)


def gate_reminded(state: RunState, event: e.GateReminded) -> None:
    asked = state.tokens[event.token].asked
    assert asked is not None
    asked.reminded = event.number


def gate_escalated(state: RunState, event: e.GateEscalated) -> None:
    asked = state.tokens[event.token].asked
    assert asked is not None
    asked.escalated = event.to


def gate_expired(state: RunState, event: e.GateExpired) -> None:
    token = state.tokens[event.token]
    assert token.gate is not None
    token.gate = move_gate(token.gate, "gate.expired")


def callback_received(state: RunState, event: e.CallbackReceived) -> None:
    token = state.tokens[event.token]
    external = token.waiting is Waiting.EXTERNAL
    if external:
        assert token.external is not None
        token.external = move_external(token.external, "callback.received")
        if (before := state.answers.get(token.id)) is not None:
            state.earlier_answers[token.id, before.attempt] = before
        answer = [event.output, event.error.as_json() if event.error else None]
        state.answers[token.id] = GivenAnswer(token.attempt, answer)
    if state.status is RunStatus.PAUSED:
        kind: Literal["callback", "result"] = "callback" if external else "result"
        state.deferred[token.id] = Deferred(
            kind, token.id, event.output, event.error, event.tries, event.requests, seq=event.seq
        )


def child_started(state: RunState, event: e.ChildStarted) -> None:
    token = state.tokens[event.token]
    token.child = token.called = event.run
    token.workflow = event.workflow


def child_ended(state: RunState, event: e.ChildEnded) -> None:
    token = state.tokens.get(event.token)
    if token is not None and token.child == event.run:
        token.child = None
        token.life = max(token.life, event.life)
        evolve_budget.forget_child(state, event.run)
        if state.status is RunStatus.PAUSED:
            state.deferred[token.id] = Deferred(
                "child",
                token.id,
                event.output,
                event.error,
                status=event.status,
                child=event.run,
                compensable=event.compensable,
                seq=event.seq,
            )


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    e.GateOpened: gate_opened,
    e.GateClaimed: gate_claimed,
    e.GateReleased: gate_released,
    e.GateDelegated: gate_delegated,
    e.GateCompleted: gate_completed,
    e.GateAnswered: gate_answered,
    e.GateCommented: gate_commented,
    e.GateReminded: gate_reminded,
    e.GateEscalated: gate_escalated,
    e.GateExpired: gate_expired,
    e.CallbackReceived: callback_received,
    e.ChildStarted: child_started,
    e.ChildEnded: child_ended,
}

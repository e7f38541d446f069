"""Folding events outside the run on behalf of a waiting visit: gates, callbacks, child runs, and answers that a pause
defers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from treadle.kernel.lifecycle import move_external, move_gate
from treadle.kernel.state import Deferred, RunState
from treadle.model import events as e
from treadle.model.states import GateState, RunStatus, Waiting


def gate_opened(state: RunState, event: e.GateOpened) -> None:
    token = state.tokens[event.token]
    token.gate = GateState.OPEN
    token.asked = event


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
    state.answers[token.id] = (token.attempt, event.data)
    if state.status is RunStatus.PAUSED:
        state.deferred[token.id] = Deferred("gate", token.id, event.data, seq=event.seq)


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
        state.answers[token.id] = (token.attempt, [event.output, event.error.as_json() if event.error else None])
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
    e.GateExpired: gate_expired,
    e.CallbackReceived: callback_received,
    e.ChildStarted: child_started,
    e.ChildEnded: child_ended,
}

"""Folding a fork (6.3): the past is inherited, and work that was under way is to be done again.

A visit whose work is under way somewhere else (an executor, a queue, a webhook worker, a child run) is pending again
and has not begun its latest attempt: beginning it gives that attempt the same number. Its clocks stay, with the time
that was left. A visit that waits for a clock, a person, a signal or a join stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from treadle.kernel import evolve_budget
from treadle.kernel.evolve_endings import drop_lease
from treadle.kernel.lifecycle import move_run, move_token
from treadle.kernel.position import Position
from treadle.kernel.state import RunState, Token
from treadle.model import events as e
from treadle.model.states import Mode, RunStatus, TokenState, Waiting

_ELSEWHERE = (None, Waiting.QUEUE, Waiting.EXTERNAL, Waiting.SUBWORKFLOW)


def is_under_way(state: RunState, token: Token) -> bool:
    """Whether the visit's work is done outside this run now, and its result has not come."""
    if token.held or token.id in state.deferred or token.waiting not in _ELSEWHERE:
        return False
    return token.state in (TokenState.DISPATCHED, TokenState.EXECUTING, TokenState.WAITING)


_UNDONE_LATER = ("recorded", "running", "failed")


def forked(state: RunState, event: e.RunForked) -> None:
    state.forked = event.seq
    changes = event.changes or {}
    if changes.get("input") is not None:
        _change_input(state, changes["input"])
    if event.priority is not None:
        state.priority = event.priority
    state.stopping.clear()
    for token in state.tokens.values():
        if is_under_way(state, token):
            _take_up(state, token)
            continue
        if token.waiting is Waiting.HUMAN:
            token.detail = None  # a claim of the other run
        if token.mode is Mode.FORWARD:
            _forget_child(token)  # one that has ended is the other run's, and is not retried from here
    for timer in state.timers.values():
        timer.due += event.shift_ms
    if state.entity is None:
        state.position = None
    elif state.position is None:
        state.position = Position(section=state.entity.section, type=state.entity.type)
    given = dict(event.outputs)
    for record in state.records.values():
        if record.status in _UNDONE_LATER and (record.child is not None or not event.inherit_compensation):
            record.status = "inherited"
            if state.compensating == record.id:
                state.compensating = None
        record.output = given.get(record.token, record.output)
    for item in state.deferred.values():
        item.inherited = not event.inherit_compensation
        item.compensable = False  # the child is the other run's
    for arrival, value in event.arrivals:
        state.arrivals[arrival].value = value
    _count_anew(state, event.at)


def _change_input(state: RunState, value: Any) -> None:
    """Replace the whole input. A run that waits for its start will start with it."""
    state.input = value
    if state.queued is not None and state.graph.definition.batch is not None:
        state.items = list(value["items"])
    elif state.queued is not None:
        state.queued = replace(state.queued, input=value)


def _count_anew(state: RunState, at: int) -> None:
    """A fork spends from zero (6.8)."""
    evolve_budget.begin(state, at)
    if state.status is not RunStatus.RUNNING:
        evolve_budget.stood_still(state, at)


def _take_up(state: RunState, token: Token) -> None:
    drop_lease(state, token)
    token.state = move_token(token.state, "run.forked")
    token.version += 1
    token.attempt -= 1
    token.attempts -= 1
    token.recoveries = token.forgiven = 0
    token.progress = (0, 0, 0)
    token.waiting = None
    token.detail = None
    token.worker = None
    token.lost = None
    token.under = None  # it begins anew, under the run's version
    token.external = None
    token.child = None
    if token.mode is Mode.FORWARD:
        _forget_child(token)


def _forget_child(token: Token) -> None:
    token.called = None
    token.life = 0


def queued(state: RunState, event: e.RunQueued) -> None:
    """A fork waits for its start with its past: its clocks stand still until then."""
    state.stands, state.status = state.status, move_run(state.status, "run.queued")
    state.queued = event
    evolve_budget.stood_still(state, event.at)
    if state.paused_at is None:
        state.paused_at = event.at


def started(state: RunState, event: e.RunStarted, stands: RunStatus) -> None:
    """It goes on as it stands at its point, with the time that its clocks had left."""
    move_run(state.status, "run.started")
    state.status, state.stands, state.queued = stands, None, None
    evolve_budget.begin(state, event.at)
    if stands is not RunStatus.RUNNING:
        evolve_budget.stood_still(state, event.at)
    if stands is not RunStatus.PAUSED and state.paused_at is not None:
        for timer in state.timers.values():
            timer.due += event.at - state.paused_at
        state.paused_at = None


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {e.RunForked: forked}

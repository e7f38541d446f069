"""Folding an operator's changes to a run: data that was edited, visits that were skipped, that jump, or that have an
input of their own (6.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.kernel import evolve_groups
from treadle.kernel.evolve_endings import stop_waiting
from treadle.kernel.evolve_failures import revive, stand
from treadle.kernel.evolve_tokens import carried_on, close_outside, remember_stopping
from treadle.kernel.lifecycle import LIVE, move_token
from treadle.kernel.members import PENDING
from treadle.kernel.scope import unpacked
from treadle.kernel.state import RunState, Token
from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus


def edited(state: RunState, event: e.ContextUpdated) -> None:
    """Fold a write, and note the places of one by hand. `recording_groups` folds the run's own writes directly."""
    evolve_groups.updated(state, event)
    if event.by is not None and state.status is RunStatus.PAUSED:
        for path, _ in event.writes:
            state.edited[event.scope, tuple(path)] = None


def skipped(state: RunState, event: e.TokenSkipped) -> None:
    token = _live_again(state, event.token, "token.skipped")
    if token is not None:
        return
    token = state.tokens[event.token]
    answered = token.id in state.deferred or token.state is PENDING
    close_outside(token, "token.skipped")
    if not answered:
        remember_stopping(state, token)
    token.state = move_token(token.state, "token.skipped")
    token.version += 1
    carried_on(state, token.id)
    if token.waiting is not None:
        stop_waiting(state, token)
    token.detail = None
    token.child = None


def jumped(state: RunState, event: e.TokenJumped) -> None:
    _live_again(state, event.token, "token.jumped")
    for frame in state.tokens[event.token].frames:
        spent = state.spent_scopes.pop(frame, None)
        if spent is not None:
            state.scopes[frame] = unpacked(spent)


def _live_again(state: RunState, identity: TokenId, cause: str) -> Token | None:
    """Make a failed visit live, and take its failure back. None: it is live."""
    token = state.tokens[identity]
    if token.state in LIVE:
        return None
    token, _ = revive(state, identity)
    stand(state, token)
    token.state = move_token(token.state, cause)
    token.version += 1
    token.waiting = None
    token.error = None
    return token


def input_set(state: RunState, event: e.TokenInputSet) -> None:
    kept = state.fallen.get(event.token)
    token = kept.token if kept is not None else state.tokens[event.token]
    token.given = (event.input,)


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    e.ContextUpdated: edited,
    e.TokenSkipped: skipped,
    e.TokenJumped: jumped,
    e.TokenInputSet: input_set,
}

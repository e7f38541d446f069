"""Folding failures of fan-ins, and an operator's retry of failures: attempts that begin anew, fan-ins and visits that
wait again (6.2). `fallen` keeps what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.kernel import fallen, standing, units
from treadle.kernel.evolve_endings import consume_arrivals, drop_sync_timer, drop_timers
from treadle.kernel.evolve_tokens import arm, carried_on, close_outside, note_failure, take_mutex, waiting
from treadle.kernel.group_state import Arrival, Failure
from treadle.kernel.lifecycle import move_token
from treadle.kernel.members import FORWARD, SIBLINGS
from treadle.kernel.signal_lines import leave_line
from treadle.kernel.state import RunState, Token
from treadle.model import events as e
from treadle.model.ids import ArrivalId, TokenId
from treadle.model.states import Waiting


def waits(state: RunState, event: e.TokenWaiting) -> None:
    """Fold a wait. Most tokens that begin to wait are live; one that is not comes back by an operator's retry."""
    if event.arrival is not None:
        fallen.hold_arrival_again(state, ArrivalId(event.arrival))
    elif state.ended[event.token - 1]:
        _wait_again(state, event)
    else:
        waiting(state, event)


def _wait_again(state: RunState, event: e.TokenWaiting) -> None:
    """Fold the wait of a visit that an operator's retry brings back: at its joins, or for the child that was reopened
    with it."""
    token, arrivals = revive(state, event.token)
    token.state = move_token(token.state, "token.waiting")
    token.version += 1
    token.waiting = event.reason
    token.error = None
    if event.reason is SIBLINGS:
        fallen.hold_again(state, token, arrivals)
        return
    stand(state, token)
    token.detail = event.detail
    token.child = event.detail["child"]
    token.life = event.detail["life"]
    take_mutex(state, token)


def revive(state: RunState, identity: TokenId) -> tuple[Token, tuple[Arrival, ...]]:
    """Make a visit live again that has failed or went down with a failure, and take its failure back. The caller says
    where it stands."""
    arrivals: tuple[Arrival, ...] = ()
    token = state.tokens.get(identity)
    if token is not None:
        fallen.let_go(state, token.frames)
        fallen.take_back(state, token.failure)
        token.failure = 0
    else:
        kept = fallen.take_token(state, identity)
        token, arrivals = kept.token, kept.arrivals
    state.ended[identity - 1] = 0
    state.live += 1
    return token, arrivals


def stand(state: RunState, token: Token) -> None:
    """Put a visit that has come back at its node again."""
    token.held = False
    token.arrivals = ()
    state.working += 1
    if token.mode is not FORWARD:
        return
    state.at_node[token.node] = state.at_node.get(token.node, 0) + 1
    if token.frames:
        units.add_token(state, token)
    if state.graph.nodes[token.node].triggers:
        arm(state, token)


def retry_scheduled(state: RunState, event: e.TokenRetryScheduled) -> None:
    if event.by is not None:
        token, _ = revive(state, event.token)
        token.retries += 1
        stand(state, token)
    else:
        token = state.tokens[event.token]
        close_outside(token, "token.retry_scheduled")
        if token.waiting is Waiting.SIGNAL:
            leave_line(state.lines, token.detail["signal"], token.id)
    token.state = move_token(token.state, "token.retry_scheduled")
    token.version += 1
    if state.deferred:
        carried_on(state, token.id)
    token.attempts += event.tries
    token.waiting = None if event.by is not None else Waiting.TIMER
    token.error = event.error.briefly() if event.error is not None else None
    _forget_attempt(token)
    drop_timers(state, token, triggers=False)


def _forget_attempt(token: Token) -> None:
    """Forget everything about the attempt: the next one begins without it."""
    token.external = None
    token.child = None
    token.called = None
    token.life = 0
    token.gate = None
    token.detail = None
    token.worker = None
    token.under = None


def join_reopened(state: RunState, event: e.JoinReopened) -> None:
    if event.failure:
        state.failed_joins -= 1
        fallen.take_back(state, event.failure)
    if event.group is None:
        return
    group = state.groups[event.group]
    site = standing.site_of(group, event.target)
    site.status = "open"
    site.failure = 0
    if not group.total:
        state.empty[group.id] = None
    units.update_cursor(state, group)


def join_failed(state: RunState, event: e.JoinFailed) -> None:
    state.failed_joins += 1
    failure = Failure(TokenId(0), event.group, event.target, event.item, event.fails, event.unhandled)
    lasting = event.fails is not None or event.unhandled
    if lasting:
        note_failure(state, event.seq, failure, event.error)
    if event.group is None:
        return
    group = state.groups[event.group]
    site = standing.site_of(group, event.target)
    site.status = "failed"
    if lasting and event.remembers:
        site.failure = event.seq
        fallen.pin(state, failure, group)
    elif not lasting:
        fallen.settle(state, group, used=False)
    state.empty.pop(event.group, None)
    units.update_cursor(state, group)
    drop_sync_timer(state, site)


def join_dead(state: RunState, event: e.JoinDead) -> None:
    if event.group is None:
        return
    group = state.groups[event.group]
    site = standing.site_of(group, event.target)
    site.status = "dead"
    site.failure = event.because
    if event.because:
        fallen.keep_dead(state, group, event.target, event.because)
    else:
        fallen.settle(state, group, used=True)
    state.empty.pop(event.group, None)
    drop_sync_timer(state, site)
    consume_arrivals(state, group, site)


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    e.TokenWaiting: waits,
    e.TokenRetryScheduled: retry_scheduled,
    e.JoinFailed: join_failed,
    e.JoinDead: join_dead,
    e.JoinReopened: join_reopened,
}

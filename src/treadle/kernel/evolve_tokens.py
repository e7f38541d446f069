"""Folding what happened to a token: its moves, waits, gates, callbacks, children and mutexes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.kernel import standing, units
from treadle.kernel.evolve_endings import drop_lease, drop_timers, end, forget_waiter, is_passive, withdraw_arrival
from treadle.kernel.group_state import Arrival
from treadle.kernel.lifecycle import move_external, move_gate, move_token
from treadle.kernel.members import CLAIMED, FORWARD, MUTEX, PENDING, SIBLINGS, SIGNAL, TOKEN_CREATED
from treadle.kernel.scope import Scope
from treadle.kernel.state import MutexState, RunState, Stopped, Token
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import ArrivalId, Frame, Frames, TokenId
from treadle.model.states import ExternalState, GateState, Mode, Waiting


def scope_frame(state: RunState, frames: Frames) -> Frame | None:
    """The branch whose overlay a token with these frames writes; None is the run's own scope."""
    for frame in reversed(frames):
        if state.groups[frame[0]].isolating:
            return frame
    return None


def scope_at(state: RunState, frame: Frame | None) -> Scope:
    """That scope, made on first use."""
    scope = state.scopes.get(frame)
    if scope is None:
        scope = state.scopes[frame] = Scope(overlay=frame is not None)
    return scope


def created(state: RunState, event: e.TokenCreated) -> None:
    identity, ref, frames = event.token, event.node, event.frames
    token = Token(
        identity,
        ref,
        event.path,
        frames,
        move_token(TOKEN_CREATED, "token.created"),
        event.via,
        event.origin,
        event.mode,
        event.record,
        event.output,
        event.last_error,
        event.loops,
        event.merged,
    )
    state.tokens[identity] = token
    state.last_token = identity
    state.ended.append(0)
    state.live += 1
    state.working += 1
    if event.mode is not FORWARD:
        return
    state.visits += 1
    state.at_node[ref] = state.at_node.get(ref, 0) + 1
    node = state.graph.nodes[ref]
    if frames:
        units.add_token(state, token)
        if state.cursors:
            spawn_progress(state, frames)
    if event.holds is not None:
        token.mutex = event.holds
        state.mutexes[event.holds].holders[identity] = None
    if node.triggers:
        _arm(state, token)


def spawn_progress(state: RunState, frames: Frames) -> None:
    """A branch has begun to exist: its group may have been the last to wait for that."""
    for identity, _ in frames:
        if identity in state.cursors:
            group = state.groups[identity]
            if group.spawned >= group.total:
                units.update_cursor(state, group)


def _arm(state: RunState, token: Token) -> None:
    for t in state.graph.nodes[token.node].triggers:
        trigger = t.definition.trigger
        assert trigger is not None
        if trigger.signal is not None:
            state.waiters.setdefault(trigger.signal, []).append((token.id, t.id))
        elif trigger.when is not None:
            token.when = {**(token.when or {}), t.id: False}
            state.watching[token.id] = None


def dispatched(state: RunState, event: e.TokenDispatched) -> None:
    token = _moved(state, event.token, "token.dispatched")
    if event.recovery:
        token.recoveries = event.recovery
        token.forgiven += event.forgiven
        token.worker = None
        drop_lease(state, token)
    else:
        token.attempts += 1
        token.recoveries = token.forgiven = 0
    token.attempt = event.attempt
    token.input = event.input
    token.error = None
    if token.external is CLAIMED:
        token.external = move_external(token.external, "token.dispatched")
    elif event.queue is not None:
        token.external = ExternalState.OFFERED
    if event.queue is not None:
        token.waiting = Waiting.QUEUE
    if token.mutex is None and state.graph.has_mutex:
        _take_mutex(state, token)


def started(state: RunState, event: e.TokenStarted) -> None:
    token = state.tokens[event.token]
    if token.state is PENDING:
        token.input = event.input
        token.attempts += 1
        token.attempt = event.attempt
        if token.mutex is None and state.graph.has_mutex:
            _take_mutex(state, token)
    elif token.external is not None:
        token.external = move_external(token.external, "token.started")
    token.state = move_token(token.state, "token.started")
    token.version += 1
    token.worker = event.worker
    token.waiting = None


def waiting(state: RunState, event: e.TokenWaiting) -> None:
    token = _moved(state, event.token, "token.waiting")
    reason = event.reason
    token.waiting = reason
    if reason is SIBLINGS:
        token.input = None  # its work is done and recorded: only its presence is still needed
        token.attempts += event.tries
        for arrival in token.arrivals:
            _drop_spent_scope(state, state.arrivals[arrival])
        return
    if is_passive(state, token, reason):
        state.passive += 1
    token.detail = event.detail
    if reason is MUTEX:
        state.mutexes.setdefault(event.detail["mutex"], MutexState()).queue.append(event.token)
    elif reason is SIGNAL:
        state.waiters.setdefault(event.detail["signal"], []).append((event.token, None))
    elif reason is Waiting.EXTERNAL and token.external is None:
        token.external = ExternalState.OFFERED


def _drop_spent_scope(state: RunState, arrival: Arrival) -> None:
    """The branch's only unit has arrived and its contribution is taken: nothing reads its overlay any more."""
    if arrival.group is None or arrival.frames[-1][0] != arrival.group:
        return
    frame = arrival.frames[-1]
    scope = state.scopes.get(frame)
    if scope is None or "nodes" in scope.tree:
        return
    group = state.groups[arrival.group]
    site = state.graph.sites[standing.site_of(group, arrival.target).index]
    if site.merge_source is not None and isinstance(group.members.get(frame[1]), int):
        del state.scopes[frame]


def resumed(state: RunState, event: e.TokenResumed) -> None:
    token = state.tokens[event.token]
    variant = f"/{event.by}" if event.by in ("mutex", "retry") else ""
    token.state = move_token(token.state, "token.resumed" + variant)
    token.version += 1
    if state.deferred:
        _carried_on(state, token.id)
    if is_passive(state, token, token.waiting):
        state.passive -= 1
    if token.waiting is Waiting.MUTEX:
        mutex = state.mutexes[token.detail["mutex"]]
        mutex.queue.remove(token.id)
        mutex.holders[token.id] = None
        token.mutex = token.detail["mutex"]
    elif token.waiting is Waiting.SIGNAL:
        forget_waiter(state, token.detail["signal"], token.id)
    token.waiting = None
    token.detail = None


def completed(state: RunState, event: e.TokenCompleted) -> None:
    token = _moved(state, event.token, "token.completed")
    if event.tries:
        token.attempts += event.tries
    token.output = event.output
    if token.external is CLAIMED:
        token.external = move_external(token.external, "token.completed")
    end(state, token)


def failed(state: RunState, event: e.TokenFailed) -> None:
    token = _moved(state, event.token, "token.failed")
    if token.external is ExternalState.CLAIMED:
        token.external = move_external(token.external, "token.failed")
    _fail(state, token, event.error, retained=event.fails is not None or event.unhandled)
    fail_branch(state, event.fails, event.error)
    note_unhandled(state, event.unhandled, event.token, event.error)


def timed_out(state: RunState, event: e.TokenTimedOut) -> None:
    answered = event.token in state.deferred
    token = _moved(state, event.token, "token.timed_out")
    _close_outside(token, "token.timed_out")
    if not answered:
        _remember_stopping(state, token)
    if event.error.kind == "SYNC_TIMEOUT":  # a straggler of a join that went on: nothing follows from it
        token.error = event.error
        end(state, token)
        return
    _fail(state, token, event.error, retained=event.fails is not None or event.unhandled)
    fail_branch(state, event.fails, event.error)
    note_unhandled(state, event.unhandled, event.token, event.error)


def note_unhandled(state: RunState, unhandled: bool, key: int, error: Error) -> None:
    """The first unhandled failure that is left is the run's error, whether it fails now or later."""
    if unhandled:
        state.unhandled[key] = error


def fail_branch(state: RunState, frame: Frame | None, error: Error) -> None:
    """A branch has failed for every join of its group."""
    if frame is not None:
        state.groups[frame[0]].failed[frame[1]] = error


def _fail(state: RunState, token: Token, error: Error, *, retained: bool) -> None:
    token.error = error
    token.last_error = error
    token.attempts = max(token.attempts, error.attempts)
    end(state, token)
    if retained or token.mode is Mode.COMPENSATION:
        _retain(state, token)


def _retain(state: RunState, token: Token) -> None:
    """An operator may still retry it: keep it, and the groups it is in."""
    state.tokens[token.id] = token
    for group, _ in token.frames:
        state.groups[group].retained += 1


def cancelled(state: RunState, event: e.TokenCancelled) -> None:
    if event.arrival is not None:
        withdraw_arrival(state, ArrivalId(event.arrival))
        return
    answered = event.token in state.deferred
    token = _moved(state, event.token, "token.cancelled")
    _close_outside(token, "token.cancelled")
    if not answered:
        _remember_stopping(state, token)
    end(state, token)


def _close_outside(token: Token, cause: str) -> None:
    if token.gate is GateState.OPEN:
        token.gate = move_gate(token.gate, cause)
    if token.external in (ExternalState.OFFERED, ExternalState.CLAIMED):
        token.external = move_external(token.external, cause)


def _remember_stopping(state: RunState, token: Token) -> None:
    works = token.mode is Mode.COMPENSATION or state.graph.nodes[token.node].task is not None
    if token.attempt and (token.child is not None or (token.waiting is None and works)):
        state.stopping[token.id] = Stopped(token.attempt, token.node, token.path, token.frames, token.input, token.mode)


def retry_scheduled(state: RunState, event: e.TokenRetryScheduled) -> None:
    token = state.tokens[event.token]
    if event.by is not None:
        token.retries += 1
        _reopen(state, token)
    else:
        _close_outside(token, "token.retry_scheduled")
        if token.waiting is Waiting.SIGNAL:
            forget_waiter(state, token.detail["signal"], token.id)
    token.state = move_token(token.state, "token.retry_scheduled")
    token.version += 1
    if state.deferred:
        _carried_on(state, token.id)
    token.attempts += event.tries
    token.external = None
    token.child = None
    token.gate = None
    token.waiting = None if event.by is not None else Waiting.TIMER
    token.detail = None
    token.error = event.error
    token.output = None
    token.worker = None
    drop_timers(state, token, triggers=False)


def _reopen(state: RunState, token: Token) -> None:
    for group, _ in token.frames:
        state.groups[group].retained -= 1
    for group, branch in token.frames:
        state.groups[group].failed.pop(branch, None)
    state.ended[token.id - 1] = 0
    state.unhandled.pop(token.id, None)
    state.live += 1
    state.working += 1
    token.last_error = None
    if token.mode is not Mode.FORWARD:
        return
    state.at_node[token.node] = state.at_node.get(token.node, 0) + 1
    units.add_token(state, token)
    if state.graph.nodes[token.node].triggers:
        _arm(state, token)


def _take_mutex(state: RunState, token: Token) -> None:
    if token.mode is not FORWARD:
        return
    mutex = state.graph.nodes[token.node].definition.mutex
    if mutex is not None:
        state.mutexes.setdefault(mutex.name, MutexState()).holders[token.id] = None
        token.mutex = mutex.name


def _moved(state: RunState, identity: TokenId, cause: str) -> Token:
    token = state.tokens[identity]
    token.state = move_token(token.state, cause)
    token.version += 1
    if state.deferred:
        _carried_on(state, identity)
    return token


def _carried_on(state: RunState, token: TokenId) -> None:
    """What was deferred for a visit has been carried on as soon as the visit moves."""
    state.deferred.pop(token, None)


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    e.TokenCreated: created,
    e.TokenDispatched: dispatched,
    e.TokenStarted: started,
    e.TokenWaiting: waiting,
    e.TokenResumed: resumed,
    e.TokenCompleted: completed,
    e.TokenFailed: failed,
    e.TokenTimedOut: timed_out,
    e.TokenCancelled: cancelled,
    e.TokenRetryScheduled: retry_scheduled,
}

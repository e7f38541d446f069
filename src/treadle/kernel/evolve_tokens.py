"""Folding events of tokens: their moves, waits, gates, callbacks, children and mutexes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.kernel import evolve_budget, fallen, standing, units
from treadle.kernel.defined import defining
from treadle.kernel.evolve_endings import drop_lease, end, is_passive, wait_for_signal, withdraw_arrival
from treadle.kernel.group_state import Arrival, Failure
from treadle.kernel.lifecycle import move_external, move_gate, move_token
from treadle.kernel.members import CLAIMED, FORWARD, MUTEX, PENDING, SIBLINGS, SIGNAL, TOKEN_CREATED
from treadle.kernel.scope import Scope
from treadle.kernel.short_ways import counting
from treadle.kernel.signal_lines import join_line, leave_line
from treadle.kernel.state import USED, MutexState, RunState, Stopped, Token
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
    """The scope of a frame, made on first use."""
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
        counting.add_token(state, token)
        if state.cursors:
            spawn_progress(state, frames)
    if event.holds is not None:
        token.mutex = event.holds
        state.mutexes[event.holds].holders[identity] = None
    if node.triggers:
        arm(state, token)


def spawn_progress(state: RunState, frames: Frames) -> None:
    """Update the groups around a branch that has begun: one of them may have no branch left to begin."""
    for identity, _ in frames:
        if identity in state.cursors:
            group = state.groups[identity]
            if group.spawned >= group.total:
                units.update_cursor(state, group)


def arm(state: RunState, token: Token) -> None:
    """Let the node's triggers watch for their signals and conditions."""
    for t in state.graph.nodes[token.node].triggers:
        trigger = t.definition.trigger
        assert trigger is not None
        if trigger.signal is not None:
            join_line(state.lines, trigger.signal, token.id, t.id)
        elif trigger.when is not None:
            token.when = {**(token.when or {}), t.id: False}
            state.watching[token.id] = None


def dispatched(state: RunState, event: e.TokenDispatched) -> None:
    token = _moved(state, event.token, "token.dispatched")
    if event.recovery:
        token.recoveries = event.recovery
        token.forgiven += event.forgiven
        token.lost = token.worker or token.lost
        token.worker = None
        drop_lease(state, token)
    else:
        token.attempts += 1
        token.recoveries = token.forgiven = 0
        token.lost = None
    token.attempt = event.attempt
    token.input = event.input
    token.error = None
    if state.budget is not None and not event.recovery:
        evolve_budget.began(state, token, event.attempt)
    if token.external is CLAIMED:
        token.external = move_external(token.external, "token.dispatched")
    elif event.queue is not None:
        token.external = ExternalState.OFFERED
    if event.queue is not None:
        token.waiting = Waiting.QUEUE
    if token.mutex is None and state.graph.has_mutex:
        take_mutex(state, token)


def started(state: RunState, event: e.TokenStarted) -> None:
    token = state.tokens[event.token]
    if token.state is PENDING:
        token.input = event.input
        token.attempts += 1
        token.attempt = event.attempt
        if state.budget is not None:
            evolve_budget.began(state, token, event.attempt)
        if token.mutex is None and state.graph.has_mutex:
            take_mutex(state, token)
    elif token.external is not None:
        token.external = move_external(token.external, "token.started")
    token.state = move_token(token.state, "token.started")
    token.version += 1
    token.worker = event.worker
    token.waiting = None


def waiting(state: RunState, event: e.TokenWaiting) -> None:
    """Fold the wait of a live token. `evolve_failures` folds those of tokens that an operator brings back."""
    token = _moved(state, event.token, "token.waiting")
    reason = event.reason
    token.waiting = reason
    if reason is SIBLINGS:
        token.input = None  # its work is done and recorded: only its presence is still needed
        token.attempts += event.tries
        for arrival in token.arrivals:
            _pack_spent_scope(state, state.arrivals[arrival])
        return
    if is_passive(state, token, reason):
        state.passive += 1
    token.detail = event.detail
    if reason is MUTEX:
        state.mutexes.setdefault(event.detail["mutex"], MutexState()).queue.append(event.token)
    elif reason is SIGNAL:
        wait_for_signal(state, event.token, event.detail)
    elif reason is Waiting.EXTERNAL and token.external is None:
        token.external = ExternalState.OFFERED
    elif reason is Waiting.SUBWORKFLOW and "life" in event.detail:
        token.child, token.life = event.detail["child"], event.detail["life"]  # reopened while this run is paused


def _pack_spent_scope(state: RunState, arrival: Arrival) -> None:
    """Pack the overlay of a branch whose only unit has arrived: its contribution is taken, and nothing reads the
    overlay any more, unless an operator lets the visit jump."""
    if arrival.group is None or arrival.frames[-1][0] != arrival.group:
        return
    frame = arrival.frames[-1]
    scope = state.scopes.get(frame)
    if scope is None or "nodes" in scope.tree:
        return
    group = state.groups[arrival.group]
    site = state.graph.sites[standing.site_of(group, arrival.target).index]
    if site.merge_source is not None and isinstance(group.members.get(frame[1]), int):
        state.spent_scopes[frame] = state.scopes.pop(frame).packed()


def resumed(state: RunState, event: e.TokenResumed) -> None:
    token = state.tokens[event.token]
    variant = f"/{event.by}" if event.by in ("mutex", "retry") else ""
    token.state = move_token(token.state, "token.resumed" + variant)
    token.version += 1
    if state.deferred:
        carried_on(state, token.id)
    if is_passive(state, token, token.waiting):
        state.passive -= 1
    if token.waiting is Waiting.MUTEX:
        mutex = state.mutexes[token.detail["mutex"]]
        mutex.queue.remove(token.id)
        mutex.holders[token.id] = None
        token.mutex = token.detail["mutex"]
    elif token.waiting is Waiting.SIGNAL:
        leave_line(state.lines, token.detail["signal"], token.id)
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
    if token.gate is GateState.OPEN:
        token.gate = move_gate(token.gate, "token.failed")
    _fail(state, token, event)


def timed_out(state: RunState, event: e.TokenTimedOut) -> None:
    answered = event.token in state.deferred
    token = _moved(state, event.token, "token.timed_out")
    close_outside(token, "token.timed_out")
    if not answered:
        remember_stopping(state, token)
    if event.error.kind == "SYNC_TIMEOUT":  # it waited at a join that failed, or the join went on without it
        token.error = event.error
        _end_because(state, token, event.because)
        return
    _fail(state, token, event)


def note_failure(state: RunState, seq: int, failure: Failure, error: Error) -> None:
    """Note a failure that nothing has handled. A branch has failed with it for every join of its group, or the run will
    fail, now or later; then the first one that is left is the run's error."""
    state.failures[seq] = failure
    if failure.unhandled:
        state.unhandled[seq] = error
    if failure.fails is not None:
        group = state.groups[failure.fails[0]]
        group.failed[failure.fails[1]] = error
        group.failures[failure.fails[1]] = seq


def _fail(state: RunState, token: Token, event: e.TokenFailed | e.TokenTimedOut) -> None:
    token.error = error = event.error.briefly()
    token.attempts = max(token.attempts, error.attempts)
    end(state, token)
    if event.fails is not None or event.unhandled:
        token.failure = event.seq
        note_failure(state, event.seq, Failure(token.id, fails=event.fails, unhandled=event.unhandled), error)
    elif token.mode is not Mode.COMPENSATION:
        if _is_unwanted(state, token.frames):
            state.ended[token.id - 1] += USED
        return
    state.tokens[token.id] = token  # kept, because an operator may still retry it
    fallen.retain(state, token.frames)


def _is_unwanted(state: RunState, frames: Frames) -> bool:
    """Whether a join around these frames has gone on without their branch."""
    return any(g not in state.groups or branch in state.groups[g].abandoned for g, branch in frames)


def cancelled(state: RunState, event: e.TokenCancelled) -> None:
    if event.arrival is not None:
        arrival = state.arrivals[ArrivalId(event.arrival)]
        withdraw_arrival(state, arrival.id)
        if event.because:
            fallen.keep_arrival(state, arrival, event.because)
        return
    answered = event.token in state.deferred or state.tokens[event.token].state is PENDING  # a retry has not begun yet
    token = _moved(state, event.token, "token.cancelled")
    close_outside(token, "token.cancelled")
    if not answered:
        remember_stopping(state, token)
    _end_because(state, token, event.because)


def _end_because(state: RunState, token: Token, because: int) -> None:
    """End the visit. If a failure has taken it down, an operator's retry of that failure brings it back."""
    arrivals = tuple(state.arrivals[identity] for identity in token.arrivals) if because else ()
    end(state, token)
    if because:
        fallen.keep_token(state, token, because, arrivals)


def close_outside(token: Token, cause: str) -> None:
    """Close the visit's gate and external task, which end with the visit or with its attempt."""
    if token.gate is GateState.OPEN:
        token.gate = move_gate(token.gate, cause)
    if token.external in (ExternalState.OFFERED, ExternalState.CLAIMED):
        token.external = move_external(token.external, cause)


def remember_stopping(state: RunState, token: Token) -> None:
    """Note an attempt that is told to stop: its result may still arrive."""
    works = token.mode is Mode.COMPENSATION or defining(state, token).task is not None
    if token.attempt and (token.child is not None or (token.waiting is None and works)):
        state.stopping[token.id] = Stopped(
            token.attempt, token.node, token.path, token.frames, token.input, token.mode, child=token.child
        )


def take_mutex(state: RunState, token: Token) -> None:
    """Let the visit hold its node's mutex from now on."""
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
        carried_on(state, identity)
    return token


def carried_on(state: RunState, token: TokenId) -> None:
    """Forget what was deferred for a visit: it has been carried on as soon as the visit moves."""
    state.deferred.pop(token, None)


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    e.TokenCreated: created,
    e.TokenDispatched: dispatched,
    e.TokenStarted: started,
    e.TokenResumed: resumed,
    e.TokenCompleted: completed,
    e.TokenFailed: failed,
    e.TokenTimedOut: timed_out,
    e.TokenCancelled: cancelled,
}

"""Triggered transitions (A2): armed when a token arrives at the node, withdrawn when its visit ends in any way.

An interrupting trigger ends the visit and withdraws every other course: exactly one is taken. A node that only waited
for triggers completes; one whose work was under way is cancelled. A trigger that does not interrupt starts a token
beside the visit.
"""

from __future__ import annotations

from treadle.expression.conditions import Unevaluable
from treadle.graph.execution_graph import GraphTransition
from treadle.kernel import cancel, complete, failure, fan_out, suspend
from treadle.kernel.deciding import Deciding
from treadle.kernel.defined import defining
from treadle.kernel.route import Origin, RoutingFailed, matches
from treadle.kernel.signal_match import oldest_kept
from treadle.kernel.state import Signal, Token
from treadle.kernel.writing import BadOutput, apply_output
from treadle.model.errors import Error
from treadle.model.states import TokenState, Waiting


def on_arrival(d: Deciding, token: Token) -> bool:
    """Follow triggers whose cause was there before the token: kept signals, conditions that hold. Returns whether that
    has ended the visit."""
    for t in d.node(token).triggers:
        trigger = t.definition.trigger
        if trigger is not None and trigger.signal is not None:
            while (signal := oldest_kept(d, token, t, trigger.signal)) is not None and occur(d, token, t, signal):
                if not is_live(d, token):
                    return True
    if token.when:
        check_when_of(d, token)
    return not is_live(d, token)


def is_live(d: Deciding, token: Token) -> bool:
    """Whether the visit has not ended."""
    return token.id in d.state.tokens and token.state not in (TokenState.FAILED, TokenState.TIMED_OUT)


def check_when(d: Deciding) -> bool:
    """Follow each armed `when` that has become true; asked after every command. Returns whether one was followed."""
    followed = False
    for token in [d.state.tokens[identity] for identity in d.state.watching]:
        followed = check_when_of(d, token) or followed
    return followed


def check_when_of(d: Deciding, token: Token) -> bool:
    """Follow the armed `when` triggers of one visit, on its arrival too."""
    followed = False
    for name, held in list((token.when or {}).items()):
        if not is_live(d, token) or not token.when or not d.running:
            break
        t = d.graph.transitions[name]
        assert t.trigger_when is not None
        holds = t.trigger_when(d.view(token))
        if isinstance(holds, Unevaluable):
            if holds.limit:
                failure.fail_token(d, token, Error("LIMIT_EXCEEDED", f"when of transition {name!r}: {holds.reason}"))
                return True
            if held is not None:
                d.condition_unevaluable(name, holds.reason, token=token.id, part="when")
            continue
        if holds != bool(held) and not t.definition.interrupting:
            d.context_updated([], None, token.id, armed={name: holds})
        if holds and not held:
            followed = occur(d, token, t, None) or followed
    return followed


def occur(d: Deciding, token: Token, t: GraphTransition, signal: Signal | None) -> bool:
    """Follow a trigger that has occurred. Returns False, and nothing happens, if its condition does not hold or its
    loop is spent."""
    node = d.node(token)
    mutex = node.definition.mutex
    holds = token.mutex if mutex is not None and mutex.keep and t.definition.interrupting else None
    origin = Origin(token.id, node, token.path, token.frames, token.loops, holds=holds)
    try:
        if not matches(d, d.view(token), t, origin):
            return False
    except RoutingFailed as problem:
        failure.fail_token(d, token, problem.error)
        return True
    if signal is not None:
        d.signal_taken(signal.id, token.id)
    by = f"trigger {t.id}"
    if t.definition.interrupting:
        suspend.started_by(d, token, by)
    chooses = t.definition.interrupting and defining(d.state, token).task is None and token.waiting is not Waiting.MUTEX
    try:
        if chooses:
            _begin_choice(d, token, signal)
        firings = fan_out.plan(d, d.view(token), origin, [t])
    except (RoutingFailed, BadOutput) as problem:
        failure.fail_token(d, token, problem.error)
        return True
    if chooses:
        _complete_choice(d, token, signal, by)
    elif t.definition.interrupting:
        _interrupt(d, token, by)
    fan_out.carry_out(d, origin, firings)
    if token.frames:
        d.touch(token.frames)
    return True


def _begin_choice(d: Deciding, token: Token, signal: Signal | None) -> None:
    """Apply the output of a node that only waits for triggers: the signal's data, which transitions may read."""
    if token.state is TokenState.PENDING:  # the signal was there before the token
        d.token_started(token.id, token.attempt + 1)
    if defining(d.state, token).outputs or d.node(token).read:
        apply_output(d, token, signal.data if signal is not None else {})


def _complete_choice(d: Deciding, token: Token, signal: Signal | None, by: str) -> None:
    output = signal.data if signal is not None else {}
    cancel.stop_outside(d, token)
    complete.leave_behind(d, token, output)
    if token.state is TokenState.WAITING:
        d.token_resumed(token.id, by)
    d.token_completed(token.id, output)


def _interrupt(d: Deciding, token: Token, by: str) -> None:
    """Cancel the visit's own work, whether it is under way or queued."""
    cancel.stop_outside(d, token)
    if token.state is TokenState.PENDING:
        d.token_started(token.id, token.attempt + 1)
    d.token_cancelled(token.id, by, "interrupted")

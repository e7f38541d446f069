"""Triggered transitions (A2): armed when a token arrives at the node, withdrawn when its visit ends in any way.

An interrupting trigger ends the visit and withdraws every other course: exactly one is taken. A node that only waited
for triggers completes; one whose work was under way is cancelled. A trigger that does not interrupt starts a token
beside the visit.
"""

from __future__ import annotations

from treadle.expression.conditions import Unevaluable
from treadle.graph.execution_graph import GraphTransition
from treadle.kernel import cancel, failure, fan_out, signals, suspend, timers
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.route import Origin, RoutingFailed, condition_holds
from treadle.kernel.state import Signal, Token
from treadle.kernel.writing import BadOutput, apply_output
from treadle.model import events as e
from treadle.model.states import TokenState, Waiting


def on_arrival(d: Deciding, token: Token) -> bool:
    """Start the clocks and look at kept signals and conditions. True when a trigger has already ended the visit."""
    for t in d.node(token).triggers:
        trigger = t.definition.trigger
        assert trigger is not None
        if trigger.after_ms is not None:
            timers.start(d, d.now + trigger.after_ms, "trigger", token, t.id)
        elif trigger.signal is not None:
            while signals.take_buffered(d, token, t, trigger.signal):
                if not is_live(d, token):
                    return True
    return False


def is_live(d: Deciding, token: Token) -> bool:
    """The visit has not ended."""
    return token.id in d.state.tokens and token.state not in (TokenState.FAILED, TokenState.TIMED_OUT)


def check_when(d: Deciding) -> bool:
    """After every commit of the run: each armed `when` that has become true. True when one was followed."""
    followed = False
    for token in [token for token in d.state.tokens.values() if token.when]:
        for name, held in list((token.when or {}).items()):
            if not is_live(d, token) or not token.when or not d.running:
                break
            t = d.graph.transitions[name]
            assert t.trigger_when is not None
            verdict = t.trigger_when(d.view(token))
            holds = not isinstance(verdict, Unevaluable) and verdict
            if holds != held and not t.definition.interrupting:
                d.emit(e.ContextUpdated(d.seq, d.now, [], None, token.id, armed={name: holds}))
            if holds and not held:
                followed = occur(d, token, t, None) or followed
    return followed


def occur(d: Deciding, token: Token, t: GraphTransition, signal: Signal | None) -> bool:
    """A trigger has occurred. False: its condition does not hold and nothing happens."""
    if not condition_holds(d, d.view(token), t, token.id):
        return False
    if signal is not None:
        signals.taken(d, signal, token.id)
    by = f"trigger {t.id}"
    if t.definition.interrupting:
        suspend.started_by(d, token, by)
        _interrupt(d, token, t, signal, by)
    else:
        origin = Origin(token.id, d.node(token), token.path, token.frames, token.loops)
        _follow(d, token, origin, t)
    return True


def _interrupt(d: Deciding, token: Token, t: GraphTransition, signal: Signal | None, by: str) -> None:
    """The visit ends: completed if it only waited for triggers, cancelled if its own work was under way or queued."""
    node = d.node(token)
    mutex = node.definition.mutex
    holds = token.mutex if mutex is not None and mutex.keep else None
    origin = Origin(token.id, node, token.path, token.frames, token.loops, None, holds)
    cancel.stop_outside(d, token)
    if token.state is TokenState.PENDING:  # the trigger was there before the token: it begins all the same
        d.emit(e.TokenStarted(d.seq, d.now, token.id, token.attempt + 1))
    if node.task is None and token.waiting is not Waiting.MUTEX:
        output = signal.data if signal is not None else {}
        try:
            if node.outputs or node.read:
                apply_output(d, token, output)
        except BadOutput as bad:
            failure.fail_token(d, token, bad.error)
            return
        if token.state is TokenState.WAITING:
            d.emit(e.TokenResumed(d.seq, d.now, token.id, by))
        d.emit(e.TokenCompleted(d.seq, d.now, token.id, output))
    else:
        d.emit(e.TokenCancelled(d.seq, d.now, token.id, by, "interrupted"))
    _follow(d, token, origin, t)


def _follow(d: Deciding, token: Token, origin: Origin, t: GraphTransition) -> None:
    frames = token.frames
    try:
        firings = fan_out.plan(d, d.view(token), origin, [t])
    except RoutingFailed as problem:
        raise RunFails(problem.error) from None
    fan_out.carry_out(d, origin, firings)
    if frames:
        d.touch(frames)

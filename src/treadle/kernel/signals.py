"""Signals: each is taken by exactly one waiter, the one that has waited longest for its name and key, once (A9).

A waiter is a visit of a `signal` action or an armed trigger. A waiter for which no key is written takes any signal of
its name; one with a key takes only a signal with the same key, and a key that turns out null fits a signal without.
"""

from __future__ import annotations

from typing import Any

from treadle.errors import EvaluationError
from treadle.expression.values import json_equal
from treadle.graph.execution_graph import GraphTransition
from treadle.kernel import suspend, triggers
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.signal_lines import has_waiters, kept_signals, kept_signals_by_key, waiters
from treadle.kernel.state import Signal, Token
from treadle.model import events as e
from treadle.model.ids import TokenId

Json = Any

BUFFER_MAX = 10_000
"""Signals kept for later per run. Arbitrary but finite: a sender in a loop must not fill the store unnoticed."""


def receive(d: Deciding, name: str, key: Json, data: Json, command: str | None) -> None:
    """A signal arrives: hand it to the longest waiter, or keep it."""
    if len(d.state.signals) >= BUFFER_MAX and not has_waiters(d.state.lines, name):
        raise Refused("LIMIT_EXCEEDED", f"{BUFFER_MAX} signals are waiting to be taken in this run already")
    identity = d.state.last_signal + 1
    d.emit(e.SignalReceived(d.seq, d.now, identity, name, key, data, command))
    if d.running:
        offer(d, d.state.signals[identity])


def offer(d: Deciding, signal: Signal) -> bool:
    """Give a signal to the first waiter that accepts it."""
    for token_id, transition_id in waiters(d.state.lines, signal.name, signal.key):
        token = d.state.tokens[token_id]
        transition = d.graph.transitions[transition_id] if transition_id is not None else None
        if _fits(_wish(d, token, transition), signal) and _give(d, token, transition, signal):
            return True
    return False


def take_buffered(d: Deciding, token: Token, transition: GraphTransition | None, name: str) -> bool:
    """A waiter has just come: take the oldest kept signal it accepts."""
    kept = kept_signals(d.state.lines, name)
    wish = _wish(d, token, transition) if kept else None
    if wish is None:
        return False
    for identity in kept_signals_by_key(d.state.lines, name, wish[1]) if wish[0] else kept:
        signal = d.state.signals[identity]
        if _fits(wish, signal) and _fresh(d, token, transition, signal):
            return _give(d, token, transition, signal)
    return False


def _wish(d: Deciding, token: Token, transition: GraphTransition | None) -> tuple[bool, Json] | None:
    """(whether only one key will do, the key); None: a key without a value fits no signal, and history says why."""
    if transition is None:
        return token.detail["keyed"], token.detail["key"]
    if transition.trigger_key is None:
        return False, None
    try:
        return True, transition.trigger_key.evaluate(d.view(token))
    except EvaluationError as problem:
        d.emit(e.ConditionUnevaluable(d.seq, d.now, transition.id, str(problem), token.id, "key"))
        return None


def _fits(wish: tuple[bool, Json] | None, signal: Signal) -> bool:
    return wish is not None and (not wish[0] or json_equal(wish[1], signal.key))


def _fresh(d: Deciding, token: Token, transition: GraphTransition | None, signal: Signal) -> bool:
    """`buffer`: how old a signal the waiter accepts; omitted any age, `none` only one that comes while it waits."""
    if transition is None:
        buffer = token.detail["buffer"]
    else:
        assert transition.definition.trigger is not None
        buffer = transition.definition.trigger.buffer
    if buffer is None:
        return True
    return buffer != "none" and bool(d.now - signal.at <= buffer)


def _give(d: Deciding, token: Token, transition: GraphTransition | None, signal: Signal) -> bool:
    if transition is not None:
        return triggers.occur(d, token, transition, signal)
    d.emit(e.SignalTaken(d.seq, d.now, signal.id, token.id))
    suspend.started_by(d, token, f"signal {signal.name}")
    suspend.resume_with(d, token, signal.data, f"signal {signal.name}")
    return True


def taken(d: Deciding, signal: Signal, token: TokenId) -> None:
    """Record that a trigger has used a signal up."""
    d.emit(e.SignalTaken(d.seq, d.now, signal.id, token))

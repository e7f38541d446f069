"""Signals: each is taken by exactly one waiter, the one that has waited longest for its name and key, once (A9).

A waiter is a visit of a `signal` action or an armed trigger. A waiter for which no key is written takes any signal of
its name; one with a key takes only a signal with the same key, and a key that turns out null fits a signal without.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import GraphTransition
from treadle.kernel import suspend, triggers
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.signal_lines import has_waiters, waiters
from treadle.kernel.signal_match import fits, wish_of
from treadle.kernel.state import Signal, Token

Json = Any

BUFFER_MAX = 10_000
"""Signals kept for later per run. Arbitrary but finite: a sender in a loop must not fill the store unnoticed."""


def receive(d: Deciding, name: str, key: Json, data: Json, command: str | None) -> None:
    """Handle a signal: hand it to the waiter that has waited longest, or keep it."""
    if len(d.state.signals) >= BUFFER_MAX and not has_waiters(d.state.lines, name):
        raise Refused("LIMIT_EXCEEDED", f"{BUFFER_MAX} signals are waiting to be taken in this run already")
    identity = d.signal_received(name, key, data, command)
    if d.running:
        offer(d, d.state.signals[identity])


def is_awaited(d: Deciding, name: str, key: Json) -> bool:
    """Whether a visit waits for such a signal now."""
    signal = Signal(0, name, key, None, d.now, 0)
    for token_id, transition_id in waiters(d.state.lines, name, key):
        transition = d.graph.transitions[transition_id] if transition_id is not None else None
        if fits(wish_of(d, d.state.tokens[token_id], transition), signal):
            return True
    return False


def offer(d: Deciding, signal: Signal) -> bool:
    """Give a signal to the first waiter that accepts it."""
    for token_id, transition_id in waiters(d.state.lines, signal.name, signal.key):
        token = d.state.tokens[token_id]
        transition = d.graph.transitions[transition_id] if transition_id is not None else None
        if fits(wish_of(d, token, transition), signal) and _give(d, token, transition, signal):
            return True
    return False


def _give(d: Deciding, token: Token, transition: GraphTransition | None, signal: Signal) -> bool:
    if transition is not None:
        return triggers.occur(d, token, transition, signal)
    suspend.take_signal(d, token, signal)
    return True

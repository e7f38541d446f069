"""Matching signals and waiters: by key, and by how old the signal may be (A9). Hands nothing out; `signals`, `suspend`
and `triggers` do.
"""

from __future__ import annotations

from typing import Any

from treadle.errors import EvaluationError
from treadle.expression.values import json_equal
from treadle.graph.execution_graph import GraphTransition
from treadle.kernel.deciding import Deciding
from treadle.kernel.signal_lines import kept_signals, kept_signals_by_key
from treadle.kernel.state import Signal, Token

Json = Any


def oldest_kept(d: Deciding, token: Token, transition: GraphTransition | None, name: str) -> Signal | None:
    """The oldest kept signal that a waiter which has just come accepts."""
    kept = kept_signals(d.state.lines, name)
    wish = wish_of(d, token, transition) if kept else None
    if wish is None:
        return None
    for identity in kept_signals_by_key(d.state.lines, name, wish[1]) if wish[0] else kept:
        signal = d.state.signals[identity]
        if fits(wish, signal) and _fresh(d, token, transition, signal):
            return signal
    return None


def wish_of(d: Deciding, token: Token, transition: GraphTransition | None) -> tuple[bool, Json] | None:
    """(whether only one key will do, the key). None: the key has no value, so no signal fits, and an event says why."""
    if transition is None:
        return token.detail["keyed"], token.detail["key"]
    if transition.trigger_key is None:
        return False, None
    try:
        return True, transition.trigger_key.evaluate(d.view(token))
    except EvaluationError as problem:
        d.condition_unevaluable(transition.id, str(problem), token=token.id, part="key")
        return None


def fits(wish: tuple[bool, Json] | None, signal: Signal) -> bool:
    return wish is not None and (not wish[0] or json_equal(wish[1], signal.key))


def _fresh(d: Deciding, token: Token, transition: GraphTransition | None, signal: Signal) -> bool:
    """Whether the signal is new enough. `buffer` says how old it may be: any age if omitted; `none` accepts only one
    that comes while the waiter waits."""
    if transition is None:
        buffer = token.detail["buffer"]
    else:
        assert transition.definition.trigger is not None
        buffer = transition.definition.trigger.buffer
    if buffer is None:
        return True
    return buffer != "none" and bool(d.now - signal.at <= buffer)

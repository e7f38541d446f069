"""One event folded into a state, in place; `replay` does it for a whole history. A decision calls the same folds when
it records an event. Nothing else changes a run's state.

Promises: no decision is taken here (a handler reads nothing but the event, the state and the static graph), every
handler costs O(what the event names), and an event that does not fit the state raises `InvalidTransition` instead of
bending it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel import (
    evolve_budget,
    evolve_changes,
    evolve_failures,
    evolve_fork,
    evolve_groups,
    evolve_migration,
    evolve_runs,
    evolve_tokens,
    evolve_waits,
)
from treadle.kernel.state import RunState
from treadle.model import events as e

FOLDS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    **evolve_runs.HANDLERS,
    **evolve_tokens.HANDLERS,
    **evolve_groups.HANDLERS,
    **evolve_waits.HANDLERS,
    **evolve_failures.HANDLERS,
    **evolve_budget.HANDLERS,
    **evolve_changes.HANDLERS,
    **evolve_fork.HANDLERS,
    **evolve_migration.HANDLERS,
}


def evolve(state: RunState, event: e.Event) -> None:
    """Fold one event into the state."""
    seq = event.seq
    assert seq == state.seq + 1, f"history has a gap: {seq} after {state.seq}"
    FOLDS[type(event)](state, event)
    state.seq = seq


def replay(graph: ExecutionGraph, history: Iterable[e.Event]) -> RunState:
    """The state a history leads to."""
    state = RunState(graph)
    for event in history:
        evolve(state, event)
    return state

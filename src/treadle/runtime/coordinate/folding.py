"""Folds a run's state from its stored history, which may be whole or shortened to its first and last event.

Owns the meaning of a shortened history: the run has ended and has no visits, so the kernel refuses commands for it like
those for any finished run.
"""

from __future__ import annotations

from collections.abc import Sequence

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.evolve import evolve, replay
from treadle.kernel.state import RunState
from treadle.model.events import Event


def is_shortened(history: Sequence[Event]) -> bool:
    """Whether only the first and the last event are left (`Store.forget` with `history=False`)."""
    return len(history) == 2 and history[1].seq > 2


def fold(graph: ExecutionGraph, history: Sequence[Event]) -> RunState:
    """The state a history leads to."""
    if not is_shortened(history):
        return replay(graph, history)
    state = replay(graph, history[:1])
    state.seq = history[1].seq - 1
    evolve(state, history[1])
    return state

"""The spending of a run, counted from its history, whether a budget counts it or not. For people and for expectations
of scenarios; never called while deciding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.budget_state import BudgetState
from treadle.kernel.evolve import evolve
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.spending import Spending

Past = Callable[[RunId], tuple[ExecutionGraph, Sequence[e.Event]] | None]
"""A run's graph and history; None: there is no such run."""


def spent_by(run: RunId, past: Past, now: int) -> dict[str, float]:
    """Everything a run and its children have spent together, by part of a budget. Time is the run's own."""
    found = past(run)
    if found is None:
        return {}
    graph, history = found
    budget = tally(graph, history)
    total = own(budget)
    for child in _children(history):
        inner = spent_by(child, past, now)
        total = total.plus(Spending(inner.get("cost", 0), int(inner.get("tokens", 0)), int(inner.get("visits", 0))))
    elapsed = budget.elapsed_ms(now)
    return {"cost": total.cost, "tokens": total.tokens, "visits": total.visits, "elapsed_ms": elapsed}


def _children(history: Sequence[e.Event]) -> list[RunId]:
    """The children a run has started since it exists: those that a fork inherits are not its own."""
    begun = next((index for index in range(len(history) - 1, -1, -1) if history[index].type == "run.forked"), 0)
    return list(dict.fromkeys(event.run for event in history[begun:] if isinstance(event, e.ChildStarted)))


def own(budget: BudgetState) -> Spending:
    """What the run itself has spent, without its children."""
    total = budget.spent
    for amount in budget.children.values():
        total = total.plus(Spending(-amount.cost, -amount.tokens, -amount.visits))
    return total


def tally(graph: ExecutionGraph, history: Iterable[e.Event]) -> BudgetState:
    """The amounts in a history, folded as a budget does."""
    state = RunState(graph)
    for event in history:
        evolve(state, event)
        if state.budget is None:
            state.budget = BudgetState(event.at)
    return state.budget if state.budget is not None else BudgetState(0)

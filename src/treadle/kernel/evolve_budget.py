"""Folding what a run spends into its budget (6.8). Every function here does nothing for a run that no budget counts:
its caller asks first, so that other runs do not pay for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.kernel.budget_state import BudgetState
from treadle.kernel.state import RunState, Token
from treadle.model import events as e
from treadle.model.definition import Budget
from treadle.model.spending import PARTS, Spending
from treadle.model.states import Mode


def begin(state: RunState, at: int) -> None:
    """Count from now on, from zero, if a budget of this run or of one above it wants that. A run starts with it, and so
    does a fork behind its inherited past."""
    counted = state.graph.definition.budget is not None or (state.parent is not None and state.parent.budgeted)
    state.budget = BudgetState(at) if counted else None


def began(state: RunState, token: Token, attempt: int) -> None:
    """Count a visit when its first attempt begins. Nodes without a task pass through and are no visits; compensation is
    exempt."""
    budget = state.budget
    assert budget is not None
    if attempt == 1 and token.mode is Mode.FORWARD and state.graph.nodes[token.node].task is not None:
        budget.spent = budget.spent.plus(Spending(visits=1))


def spent(state: RunState, token: Token | None, amount: Spending) -> None:
    """Count an amount that an attempt or a child has spent."""
    budget = state.budget
    if budget is None or (token is not None and token.mode is Mode.COMPENSATION):
        return
    budget.spent = budget.spent.plus(amount)
    if amount.child is not None:
        budget.children[amount.child] = budget.children.get(amount.child, Spending()).plus(amount)
        if amount.ask is not None:
            budget.allowed[amount.ask] = None


def stood_still(state: RunState, at: int) -> None:
    """The run is paused or over: its time stands still."""
    budget = state.budget
    if budget is not None and budget.stopped_at is None:
        budget.stopped_at = at


def went_on(state: RunState, at: int) -> None:
    """The run goes on after a pause or a failure."""
    budget = state.budget
    if budget is not None:
        if budget.stopped_at is not None:
            budget.still_ms += at - budget.stopped_at
        budget.stopped_at = None
        budget.exceeded = None


def forget_child(state: RunState, child: str) -> None:
    """Forget the questions of a child that has ended: it asks no more."""
    budget = state.budget
    if budget is not None and budget.allowed:
        asked = [key for key in budget.allowed if key.startswith((f"{child}:", f"{child}."))]
        for key in asked:
            del budget.allowed[key]


def _warned(state: RunState, event: e.BudgetWarned) -> None:
    assert state.budget is not None
    state.budget.warned[event.part] = None


def _exceeded(state: RunState, event: e.BudgetExceeded) -> None:
    assert state.budget is not None
    state.budget.exceeded = event.part


def _raised(state: RunState, event: e.BudgetRaised) -> None:
    """Fold an addition. A part that is far from its new limit is warned of again when it comes near."""
    budget, limits = state.budget, state.graph.definition.budget
    assert budget is not None
    for part in PARTS:
        more = getattr(event, part)
        if more:
            budget.raised[part] = budget.raised.get(part, 0) + more
            if not is_near(budget, limits, part, event.at):
                budget.warned.pop(part, None)
    if event.command is not None:
        state.seen.add(event.command)


def is_near(budget: BudgetState, limits: Budget | None, part: str, now: int, more: int = 0) -> bool:
    """Whether so much of a part is spent that the history warns."""
    limit = budget.limit_of(part, limits)
    return limit is not None and limits is not None and budget.spent_of(part, now) + more >= limit * limits.warn_at


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    e.BudgetWarned: _warned,
    e.BudgetExceeded: _exceeded,
    e.BudgetRaised: _raised,
}

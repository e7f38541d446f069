"""Events of a run's budget (6.8). Part of the closed set of `events`, which re-exports them."""

from __future__ import annotations

from treadle.model.event import Event


class BudgetWarned(Event, tag="budget.warned"):
    """Most of a part of the budget is spent: the share that `warn_at` says."""

    part: str
    """cost | tokens | visits | elapsed_ms"""
    spent: float
    limit: float


class BudgetExceeded(Event, tag="budget.exceeded"):
    """A part of the budget is spent, and another attempt was about to begin: it does not."""

    part: str
    spent: float
    limit: float


class BudgetRaised(Event, tag="budget.raised"):
    """An operator adds to the limits."""

    by: str
    cost: float = 0
    tokens: int = 0
    visits: int = 0
    elapsed_ms: int = 0
    command: str | None = None
    """The id of the command: a repeated delivery is recognised by it."""

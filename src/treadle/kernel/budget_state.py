"""The budget of a run in its state: what was spent so far, what an operator added, and for how long the run stood
still (6.8). `evolve_budget` changes it, `budget` decides on it. A run that no budget counts has none."""

from __future__ import annotations

from msgspec import Struct

from treadle.model.definition import Budget
from treadle.model.ids import RunId
from treadle.model.spending import Spending


class BudgetState(Struct):
    """See the module's docstring."""

    since: int
    """When the run's time began to count."""
    spent: Spending = Spending()
    """By the run and its children together."""
    children: dict[RunId, Spending] = {}
    """The part of it that each child has spent, its own children included."""
    allowed: dict[str, None] = {}
    """Questions of children that were counted as a visit."""
    raised: dict[str, float] = {}
    """Part of the budget → what was added to its limit."""
    warned: dict[str, None] = {}
    """Parts that the history has warned of."""
    exceeded: str | None = None
    """The part for which the run stands still now."""
    still_ms: int = 0
    """How long the run was paused or failed."""
    stopped_at: int | None = None
    """Since when it is paused or over."""

    def elapsed_ms(self, now: int) -> int:
        """The time that counts. Paused time does not."""
        until = self.stopped_at if self.stopped_at is not None else now
        return max(until - self.since - self.still_ms, 0)

    def spent_of(self, part: str, now: int) -> float:
        """How much of a part is spent."""
        if part == "cost":
            return self.spent.cost
        if part == "tokens":
            return self.spent.tokens
        return self.spent.visits if part == "visits" else self.elapsed_ms(now)

    def limit_of(self, part: str, limits: Budget | None) -> float | None:
        """The limit of a part, with what was added to it; None: there is none."""
        limit = given_limit(limits, part)
        return None if limit is None else limit + self.raised.get(part, 0)


def given_limit(limits: Budget | None, part: str) -> float | None:
    """The limit of a part as the definition says it."""
    if limits is None:
        return None
    if part == "cost":
        return limits.cost
    if part == "tokens":
        return limits.tokens
    return limits.visits if part == "visits" else limits.elapsed_ms

"""What a run has spent, counted from its history (6.8): nothing begins once a part of its budget is spent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from treadle.model import commands as c
from treadle.model import events as e

if TYPE_CHECKING:
    from tests.simulator.audit.record import Record, Visit

PARTS = ("cost", "tokens", "visits", "elapsed_ms")
TINY = 1e-6
"""Costs are sums of fractions."""


@dataclass(slots=True)
class Purse:
    """What a run has spent since it exists."""

    since: int | None = None
    cost: float = 0.0
    tokens: float = 0
    visits: int = 0
    """By the run and, as far as it has allowed them, by its children."""
    own_visits: int = 0
    raised: dict[str, float] = field(default_factory=dict)
    still_ms: int = 0
    stood_at: int | None = None

    def begin(self, at: int) -> None:
        """Count from now on, from zero."""
        self.since, self.cost, self.tokens, self.visits, self.own_visits = at, 0.0, 0, 0, 0
        self.raised, self.still_ms, self.stood_at = {}, 0, None

    def stand(self, at: int) -> None:
        """Time does not count while the run stands still."""
        if self.stood_at is None:
            self.stood_at = at

    def go_on(self, at: int) -> None:
        if self.stood_at is not None:
            self.still_ms += at - self.stood_at
        self.stood_at = None

    def spent(self, part: str, now: int) -> float:
        if part == "elapsed_ms":
            until = self.stood_at if self.stood_at is not None else now
            return until - (self.since or 0) - self.still_ms
        found: float = getattr(self, part)
        return found

    def limit(self, record: Record, part: str) -> float | None:
        budget = record.chart.workflow.budget
        limit = getattr(budget, part) if budget is not None else None
        return limit + self.raised.get(part, 0) if limit is not None else None


def on_begin(record: Record, event: e.TokenDispatched | e.TokenStarted) -> None:
    """An attempt begins: then nothing was spent to the end."""
    visit = record.visits.get(event.token)
    if visit is None or not _begins(record, visit, event) or _is_interrupted(record, visit):
        return
    first = event.attempt == 1
    for part in PARTS:
        limit = record.budget.limit(record, part)
        if limit is None or (part == "visits" and not first):
            continue
        spent = record.budget.spent(part, event.at)
        text = f"visit {visit.id} begins attempt {event.attempt} and {spent} of {limit} {part} are spent"
        record.expect(spent < limit - (TINY if part == "cost" else 0), "budget", text)


def _begins(record: Record, visit: Visit, event: e.TokenDispatched | e.TokenStarted) -> bool:
    """Whether this is where an attempt of forward work begins. Nodes without a task pass through."""
    if visit.compensation or visit.state != "pending" or record.node(visit.node).task is None:
        return False
    return not (isinstance(event, e.TokenDispatched) and event.recovery)


def _is_interrupted(record: Record, visit: Visit) -> bool:
    """Whether a trigger that was there before ends the visit before its work has begun."""
    events = record.doing.events
    return any(isinstance(event, e.TokenCancelled) and event.token == visit.id for event in events)


def count(record: Record, visit: Visit, event: e.TokenDispatched | e.TokenStarted) -> None:
    """To be called before the visit moves."""
    if _begins(record, visit, event) and event.attempt == 1:
        record.budget.visits += 1
        record.budget.own_visits += not _is_interrupted(record, visit)


def progress(record: Record, event: e.TokenProgress | e.ResultIgnored) -> None:
    visit = record.visits.get(event.token)
    amount = event.spent
    if amount is not None and not (visit is not None and visit.compensation):
        record.budget.cost += amount.cost
        record.budget.tokens += amount.tokens
        record.budget.visits += amount.visits


def on_exceeded(record: Record, event: e.BudgetExceeded) -> None:
    """Only what is spent is said to be."""
    spent, limit = record.budget.spent(event.part, event.at), record.budget.limit(record, event.part)
    fits = limit is not None and abs(spent - event.spent) < TINY and abs(limit - event.limit) < TINY
    record.expect(fits, "budget", f"{event} and {spent} of {limit} {event.part} are spent")
    record.expect(event.spent >= event.limit - TINY, "budget", f"{event}: something is left of it")


def on_raised(record: Record, event: e.BudgetRaised) -> None:
    cause = record.doing.cause
    told = isinstance(cause, c.RaiseBudget) and all(getattr(cause, p) == getattr(event, p) for p in PARTS)
    record.expect(told, "budget", f"{event} by {cause}")


def raise_limits(record: Record, event: e.BudgetRaised) -> None:
    for part in PARTS:
        record.budget.raised[part] = record.budget.raised.get(part, 0) + getattr(event, part)

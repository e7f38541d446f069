"""Spending: what work has used up, and how a child run asks its parent whether it may spend more (6.8)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model.ids import RunId, TokenId

Json = Any

PARTS = ("cost", "tokens", "visits", "elapsed_ms")
"""The parts of a budget, in the order in which they are looked at. Stored strings: never renamed."""
DIGITS = 9
"""Decimals that a cost is rounded to. Ten times 0.1 is then 1, and a limit of 1 is reached by it."""


class Spending(Struct, frozen=True, omit_defaults=True):
    """An amount that was spent."""

    cost: float = 0.0
    tokens: int = 0
    visits: int = 0
    child: RunId | None = None
    """The child run that has spent it; None: the run itself."""
    ask: str | None = None
    """The question of a child that this visit was allowed by; the same question again counts no second visit."""

    def plus(self, other: Spending) -> Spending:
        """Both amounts together, without the names of who has spent them."""
        return Spending(round(self.cost + other.cost, DIGITS), self.tokens + other.tokens, self.visits + other.visits)


class Ask(Struct, frozen=True, omit_defaults=True):
    """A question of a run below a budget: may this attempt begin?"""

    token: TokenId
    attempt: int
    first: bool
    """Whether it is the visit's first attempt: a further attempt is no further visit."""
    runs: tuple[RunId, ...]
    """The runs the question has come through, the asking one first: the answer goes back the same way."""

    @property
    def key(self) -> str:
        """The name of the question, the same whenever it is asked again."""
        return f"{self.runs[0]}:{self.token}:{self.attempt}"


def spending_of(report: Json) -> Spending | None:
    """The spending in a worker's report, {cost?, usage?}; None if it says nothing that a budget counts. Tokens are
    `total_tokens` of the usage, else input and output tokens together."""
    if not isinstance(report, dict):
        return None
    cost = _amount(report.get("cost"))
    usage = report.get("usage")
    tokens = _tokens(usage) if isinstance(usage, dict) else 0
    return Spending(round(cost, DIGITS), tokens) if cost or tokens else None


def report_in(output: Json) -> Json:
    """The report that the output of a language model contains, {cost?, usage?}; None: there is none."""
    if not isinstance(output, dict):
        return None
    return {name: output[name] for name in ("cost", "usage") if output.get(name) is not None} or None


def together(reports: list[Json]) -> Json:
    """Several reports as one. A single one stays as it is."""
    told = [report for report in reports if report is not None]
    if len(told) < 2:
        return told[0] if told else None
    total = Spending()
    for report in told:
        total = total.plus(spending_of(report) or Spending())
    return {"cost": total.cost, "usage": {"total_tokens": total.tokens}}


def _tokens(usage: dict[str, Json]) -> int:
    total = usage.get("total_tokens")
    if total is not None:
        return int(_amount(total))
    return int(_amount(usage.get("input_tokens")) + _amount(usage.get("output_tokens")))


def _amount(value: Json) -> float:
    """A number that can be added up; anything else is nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        return 0
    return value

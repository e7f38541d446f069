"""The budget of a workflow (6.8)."""

from __future__ import annotations

from typing import Any

from treadle.language.reading import Place, Reading
from treadle.language.record import Field, Record
from treadle.language.shapes import BAD, Choice, Json, Number, Schema, Whole
from treadle.model import definition as d
from treadle.model.spending import PARTS


class Amount(Number):
    """A number above 0."""

    def __init__(self) -> None:
        super().__init__()
        self.wants = "a number above 0"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        found = super().read(value, at, reading)
        if found is not BAD and not 0 < found < float("inf"):
            return self.wrong(value, at, reading)
        return found

    def describe(self) -> Schema:
        return {"type": "number", "exclusiveMinimum": 0}


class BudgetShape(Record):
    """A budget: it limits at least one part."""

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, dict) and value.keys().isdisjoint(PARTS):
            reading.problem("BAD_VALUE", at, f"a budget limits nothing; give it one of {', '.join(PARTS)}")
            return BAD
        return super().read(value, at, reading)


BUDGET = BudgetShape(
    "Budget",
    "What a run and its children may spend together, looked at before every attempt.",
    (
        Field("cost", Amount(), "In the currency of the prices of language models"),
        Field("tokens", Whole(1), "Tokens of language models"),
        Field("visits", Whole(1), "Visits of nodes that have a task"),
        Field("elapsed_ms", Whole(1), "Time since the start, without pauses"),
        Field("warn_at", Number(0, 1), "Share of a limit at which `budget.warned` is recorded", default=0.8),
        Field(
            "on_exceeded",
            Choice("pause", "fail", "gate"),
            "What happens when a part is spent and another attempt would begin",
            default="pause",
        ),
    ),
    d.Budget,
)

"""Structured conditions as short as the tests want to write them, and something to ask them about."""

from __future__ import annotations

from typing import Any

from treadle.expression.conditions import Unevaluable, compile_condition
from treadle.expression.view import DictView

STATE = {
    "score": 85,
    "ratio": 0.5,
    "name": "ada",
    "done": True,
    "nothing": None,
    "list": [1, 2, 3],
    "flags": [True],
    "object": {"a": 1},
    "big": 2**80,
}
VIEW = DictView({"state": STATE, "input": {"limit": 80.0}, "judge": "bob"})
UNEVALUABLE = "unevaluable"


class MarkedView(DictView):
    """Knows how many tokens are where, and counts how often it was asked."""

    def __init__(self, value: Any, tokens: dict[str, int]) -> None:
        super().__init__(value)
        self.tokens = tokens
        self.asked: list[str] = []

    def tokens_at(self, node: str) -> int:
        self.asked.append(node)
        return self.tokens.get(node, 0)


def field(path: str) -> dict[str, Any]:
    return {"field": path}


def literal(value: Any) -> dict[str, Any]:
    return {"literal": value}


def compare(left: Any, operator: str, right: Any) -> dict[str, Any]:
    return {"type": "comparison", "left": left, "operator": operator, "right": right}


def both(*conditions: Any) -> dict[str, Any]:
    return {"type": "and", "conditions": list(conditions)}


def either(*conditions: Any) -> dict[str, Any]:
    return {"type": "or", "conditions": list(conditions)}


def negated(condition: Any) -> dict[str, Any]:
    return {"type": "not", "condition": condition}


TRUE = compare(literal(1), "==", literal(1))
FALSE = compare(literal(1), "==", literal(2))
UNKNOWN = compare(field("state.absent"), "==", literal(1))


def answer(condition: Any, view: DictView = VIEW) -> object:
    given = compile_condition(condition)(view)
    return UNEVALUABLE if isinstance(given, Unevaluable) else given

"""Conditions on data every run has: `input.n`, `input.flag`, `state.n`, the branch a token is in, the marking."""

from __future__ import annotations

from typing import Any

from tests.simulator.generator.sketch import Sketch

Condition = dict[str, Any]
OPERATORS = ("==", "!=", "<", "<=", ">", ">=")


def compare(field: str, operator: str, value: Any) -> Condition:
    """field operator value."""
    return {
        "type": "comparison",
        "left": {"field": f"$.{field}"},
        "operator": operator,
        "right": {"literal": value},
    }


def cel(expr: str) -> Condition:
    return {"type": "cel", "expr": expr}


def condition(s: Sketch) -> Condition:
    """Any condition; about half of them hold."""
    draw = s.draw
    kind = draw.pick(("number", "number", "branch", "exists", "set", "length", "compound", "cel", "flag"))
    if kind == "branch":
        return compare("_branch.index", draw.pick(OPERATORS), draw.between(0, 2))
    if kind == "exists":
        return {"type": "exists", "field": draw.pick(("$.input.flag", "$.input.nothing", "$.state.v"))}
    if kind == "set":
        return {"type": "in_set", "field": "$.input.n", "values": [draw.between(0, 3), draw.between(0, 3)]}
    if kind == "length":
        return {
            "type": "array_length",
            "field": "$.input.items",
            "operator": draw.pick(OPERATORS),
            "value": draw.between(0, 3),
        }
    if kind == "compound":
        parts = [_number(s), _number(s)]
        return draw.pick(
            (
                {"type": "and", "conditions": parts},
                {"type": "or", "conditions": parts},
                {"type": "not", "condition": parts[0]},
            )
        )
    if kind == "cel":
        return cel(draw.pick(("input.n > 1", "state.n % 2 == 0", "_branch.index % 2 == 1", "has(input.flag)")))
    if kind == "flag":
        return compare("input.flag", "==", draw.chance(0.5))
    return _number(s)


def _number(s: Sketch) -> Condition:
    return compare(s.draw.pick(("input.n", "state.n")), s.draw.pick(OPERATORS), s.draw.between(0, 3))


def marking(s: Sketch) -> Condition:
    """Whether a token is at some node."""
    ref = s.draw.pick(list(s.nodes))
    return cel(f'tokens_at("{ref}") {s.draw.pick(("> 0", "== 0", "> 1"))}')

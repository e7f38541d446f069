"""JSON values as conditions compare them: kinds, equality, acceptable literals.

Python says `True == 1` and `"ab"[0] == "a"`; JSON does not. Numbers are one kind (1 equals 1.0), a boolean is
never a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import NoneType
from typing import Any

DEPTH_MAX = 32
"""Levels of nesting in anything an author writes: CEL's own limit, so that all dialects agree."""
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
"""The integers CEL can hold. A literal outside could be compared in one dialect and not in the other."""

_KINDS: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    NoneType: "null",
    list: "array",
    dict: "object",
}


def kind_of(value: Any) -> str:
    """The JSON word for a value's type; a Python type name for what is not JSON."""
    return _KINDS.get(type(value)) or type(value).__name__


def json_equal(left: Any, right: Any) -> bool:
    """Strict JSON equality, at any depth."""
    if isinstance(left, dict):
        return isinstance(right, dict) and _equal_objects(left, right)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(json_equal, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


def _equal_objects(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return left.keys() == right.keys() and all(json_equal(value, right[key]) for key, value in left.items())


def membership(values: list[Any]) -> Callable[[Any], bool]:
    """A fast `in`. Booleans have a set of their own, because Python takes True and 1 for the same member."""
    booleans = frozenset(value for value in values if isinstance(value, bool))
    composites = [value for value in values if isinstance(value, list | dict)]
    scalars = frozenset(value for value in values if not isinstance(value, bool | list | dict))

    def contains(value: Any) -> bool:
        if isinstance(value, bool):
            return value in booleans
        if isinstance(value, list | dict):
            return any(json_equal(member, value) for member in composites)
        return value in scalars

    return contains


def literal_problem(value: Any, depth: int = 0) -> str | None:
    """The reason a value may not be a literal in a definition, or None if it may."""
    if depth > DEPTH_MAX:
        return f"a literal is nested at most {DEPTH_MAX} deep"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN and infinity are not JSON"
    if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
        return "an integer has at most 64 bits"
    if isinstance(value, dict):
        return _first_problem(list(value.values()), depth)
    if isinstance(value, list):
        return _first_problem(value, depth)
    return None if type(value) in _KINDS else f"{kind_of(value)} is not a JSON type"


def _first_problem(values: list[Any], depth: int) -> str | None:
    problems = (literal_problem(value, depth + 1) for value in values)
    return next((problem for problem in problems if problem), None)

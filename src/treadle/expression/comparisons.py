"""The six operators over JSON values, as closures.

Numbers compare with numbers and strings with strings; equality also takes booleans, arrays and objects of the
same kind, and null. Everything else is unevaluable. The closure for a field against a scalar literal is the
hot path of routing: its kind check is one set lookup, and the answer for a missing field is made when the
condition is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.expression.answer import Answer, Test, Unevaluable
from treadle.expression.operands import OPERATORS, ORDERINGS, Constant, Field, field_text
from treadle.expression.paths import MISSING, Path
from treadle.expression.values import json_equal, kind_of
from treadle.expression.view import View

_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SCALARS = {"number": frozenset((int, float)), "string": frozenset((str,)), "boolean": frozenset((bool,))}
_ORDERED = ("number", "string")


def missing(path: Path) -> Unevaluable:
    """The answer when nothing is at `path`."""
    return Unevaluable(f"{field_text(path)} is missing")


def can_compare(symbol: str, value: Any) -> bool:
    """Whether a literal may be used with this operator: only numbers and strings have an order."""
    return symbol not in ORDERINGS or kind_of(value) in _ORDERED


def comparison(left: Field | Constant, symbol: str, right: Field | Constant) -> Test:
    """The test `left symbol right`."""
    if isinstance(left, Field):
        if isinstance(right, Field):
            return _field_with_field(left, symbol, right)
        return _field_with_constant(left, symbol, right.value)
    if isinstance(right, Field):
        return _field_with_constant(right, _MIRRORED[symbol], left.value)
    answer = _decide(left.value, symbol, right.value)
    return lambda _view: answer


def _field_with_constant(field: Field, symbol: str, constant: Any) -> Test:
    if constant is None:
        return _field_with_null(field, symbol == "==")
    kind = kind_of(constant)
    if kind in _SCALARS:
        return _field_with_scalar(field, symbol, constant, _SCALARS[kind])
    return _field_with_field(field, symbol, Constant(constant))


def _field_with_null(field: Field, wanted: bool) -> Test:
    path, absent = field.path, missing(field.path)

    def test(view: View) -> Answer:
        value = view.get(path)
        return absent if value is MISSING else (value is None) is wanted

    return test


def _field_with_scalar(field: Field, symbol: str, constant: Any, alike: frozenset[type]) -> Test:
    path, absent, compare = field.path, missing(field.path), OPERATORS[symbol]

    def test(view: View) -> Answer:
        value = view.get(path)
        if type(value) in alike:
            return compare(value, constant)
        return absent if value is MISSING else _unlike(value, symbol, constant)

    return test


def _field_with_field(field: Field, symbol: str, other: Field | Constant) -> Test:
    path, absent = field.path, missing(field.path)
    read_other = _reader(other)

    def test(view: View) -> Answer:
        left, right = view.get(path), read_other(view)
        if left is MISSING:
            return absent
        return right if isinstance(right, Unevaluable) else _decide(left, symbol, right)

    return test


def _reader(operand: Field | Constant) -> Callable[[View], Any]:
    if isinstance(operand, Constant):
        return lambda _view: operand.value
    path, absent = operand.path, missing(operand.path)

    def read(view: View) -> Any:
        value = view.get(path)
        return absent if value is MISSING else value

    return read


def _decide(left: Any, symbol: str, right: Any) -> Answer:
    kind = kind_of(left)
    if kind != kind_of(right) or (symbol in ORDERINGS and kind not in _ORDERED):
        return _unlike(left, symbol, right)
    if symbol in ORDERINGS:
        return OPERATORS[symbol](left, right)
    try:
        return json_equal(left, right) is (symbol == "==")
    except RecursionError:
        return Unevaluable("the values compared are nested too deeply")


def _unlike(left: Any, symbol: str, right: Any) -> Unevaluable:
    return Unevaluable(f"unlike types: {kind_of(left)} {symbol} {kind_of(right)}")

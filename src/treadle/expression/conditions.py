"""Conditions: they decide whether a transition is followed (1.5, 1.10).

Owns the structured forms. `cel` compiles CEL, which looks the same from outside. A condition becomes a closure over a
view, built once. Its answer is True, False or Unevaluable, and evaluating never raises:

1. A missing field, or two values of unlike kinds, makes a comparison unevaluable. Only `== null` and `!=
   null` accept every kind, and they too need a value that is there.
2. `and` and `or` absorb it as CEL does: one false part decides an `and`, one true part an `or`, wherever it
   stands.
3. `not` hands it on. `exists` is always evaluable: missing and null are both false.

Unevaluable is falsy, so `if condition(view)` reads as 1.10 does: an unevaluable condition does not
match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from treadle.errors import ExpressionError
from treadle.expression.answer import Answer, Test, Unevaluable
from treadle.expression.cel import compile_cel
from treadle.expression.comparisons import can_compare, comparison, missing
from treadle.expression.operands import (
    OPERATORS,
    Constant,
    Field,
    field_text,
    json_text,
    read_field,
    read_literal,
    read_operand,
    read_operator,
)
from treadle.expression.paths import MISSING, Path
from treadle.expression.values import DEPTH_MAX, kind_of, membership
from treadle.expression.view import View
from treadle.expression.words import clip, nearest, shown

__all__ = ["CompiledCondition", "Unevaluable", "compile_condition"]

SIZE_MAX = 65_536
"""Bytes of JSON. One bound for long strings, long lists and many parts; nobody writes more by hand."""
TEXT_MAX = 200
"""Characters of a condition that history repeats each time it decides something."""


class CompiledCondition(msgspec.Struct, frozen=True):
    """A compiled condition; `evaluate` is the bare closure, for loops that count nanoseconds."""

    evaluate: Test
    text: str
    """The condition in short, for people: `state.score >= 80`."""
    reads: frozenset[Path] = frozenset()
    """Every path the condition can look at, as far as its text tells."""
    marking: frozenset[str] = frozenset()
    """The nodes at which it counts tokens."""

    def __call__(self, view: View) -> Answer:
        return self.evaluate(view)

    @property
    def needs_marking(self) -> bool:
        return bool(self.marking)


class _Place(msgspec.Struct, frozen=True):
    """The current place in the condition, its depth, and the extra names that may be used."""

    names: frozenset[str]
    where: str = ""
    depth: int = 1

    def at(self, step: str) -> str:
        return f"{self.where}.{step}" if self.where else step

    def inside(self, step: str) -> _Place:
        return _Place(self.names, self.at(step), self.depth + 1)


_ALWAYS = CompiledCondition(lambda _view: True, "always")


def compile_condition(condition: dict[str, Any] | None, names: Iterable[str] = ()) -> CompiledCondition:
    """A condition in canonical form, compiled; None is always true. `names` are further roots."""
    if condition is None:
        return _ALWAYS
    _refuse_the_oversized(condition)
    return _compile(condition, _Place(frozenset(names)))


def _refuse_the_oversized(condition: Any) -> None:
    try:
        size = len(msgspec.json.encode(condition))
    except RecursionError:
        raise ExpressionError(f"a condition is nested at most {DEPTH_MAX} deep") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ExpressionError(f"a condition is plain JSON: {error}") from None
    if size > SIZE_MAX:
        raise ExpressionError(f"a condition has at most {SIZE_MAX} bytes, this one has {size}")


def _compile(condition: Any, place: _Place) -> CompiledCondition:
    if place.depth > DEPTH_MAX:
        raise ExpressionError(f"a condition is nested at most {DEPTH_MAX} deep", place.where)
    if not isinstance(condition, dict):
        raise ExpressionError(f"a condition is an object, not {kind_of(condition)}", place.where)
    kind = condition.get("type")
    if not isinstance(kind, str) or kind not in _FORMS:
        raise ExpressionError(f"unknown condition type {shown(kind)}{nearest(kind, _FORMS)}", place.at("type"))
    keys, form = _FORMS[kind]
    _check_keys(condition, keys, place)
    return form(condition, place)


def _text(text: str) -> str:
    return clip(text, TEXT_MAX)


def _check_keys(condition: dict[str, Any], keys: tuple[str, ...], place: _Place) -> None:
    for key in condition:
        if key != "type" and key not in keys:
            raise ExpressionError(f"unknown field {shown(key)}{nearest(key, keys)}", place.at(str(key)))
    for key in keys:
        if key not in condition:
            raise ExpressionError(f"{condition['type']} needs {key!r}", place.where)


def _comparison(condition: dict[str, Any], place: _Place) -> CompiledCondition:
    left = read_operand(condition["left"], place.at("left"))
    right = read_operand(condition["right"], place.at("right"))
    symbol = read_operator(condition["operator"], place.at("operator"))
    for side, operand in (("left", left), ("right", right)):
        if isinstance(operand, Constant) and not can_compare(symbol, operand.value):
            raise ExpressionError(f"{symbol} cannot order {kind_of(operand.value)}", place.at(side))
    text = f"{left.text} {symbol} {right.text}"
    reads = frozenset(operand.path for operand in (left, right) if isinstance(operand, Field))
    return CompiledCondition(comparison(left, symbol, right), _text(text), reads)


def _exists(condition: dict[str, Any], place: _Place) -> CompiledCondition:
    path = read_field(condition["field"], place.at("field"))

    def test(view: View) -> Answer:
        value = view.get(path)
        return value is not MISSING and value is not None

    return CompiledCondition(test, _text(f"{field_text(path)} exists"), frozenset((path,)))


def _in_set(condition: dict[str, Any], place: _Place) -> CompiledCondition:
    path = read_field(condition["field"], place.at("field"))
    values = read_literal(condition["values"], place.at("values"))
    if not isinstance(values, list):
        raise ExpressionError(f"values is an array, not {kind_of(values)}", place.at("values"))
    absent, contains = missing(path), membership(values)

    def test(view: View) -> Answer:
        value = view.get(path)
        return absent if value is MISSING else contains(value)

    return CompiledCondition(test, _text(f"{field_text(path)} in {json_text(values)}"), frozenset((path,)))


def _array_length(condition: dict[str, Any], place: _Place) -> CompiledCondition:
    path = read_field(condition["field"], place.at("field"))
    symbol, length = read_operator(condition["operator"], place.at("operator")), condition["value"]
    if type(length) is not int or length < 0:
        raise ExpressionError("a length is a whole number, 0 or more", place.at("value"))
    absent, compare = missing(path), OPERATORS[symbol]

    def test(view: View) -> Answer:
        value = view.get(path)
        if isinstance(value, list):
            return compare(len(value), length)
        return absent if value is MISSING else Unevaluable(f"{field_text(path)} is not an array")

    return CompiledCondition(test, _text(f"size({field_text(path)}) {symbol} {length}"), frozenset((path,)))


def _and(condition: dict[str, Any], place: _Place) -> CompiledCondition:
    return _joined(condition, place, decisive=False, word=" and ")


def _or(condition: dict[str, Any], place: _Place) -> CompiledCondition:
    return _joined(condition, place, decisive=True, word=" or ")


def _joined(condition: dict[str, Any], place: _Place, *, decisive: bool, word: str) -> CompiledCondition:
    given = condition["conditions"]
    if not isinstance(given, list):
        raise ExpressionError(f"conditions is an array, not {kind_of(given)}", place.at("conditions"))
    parts = [_compile(part, place.inside(f"conditions[{index}]")) for index, part in enumerate(given)]
    return CompiledCondition(
        _absorbing(tuple(part.evaluate for part in parts), decisive),
        _text(f"({word.join(part.text for part in parts)})"),
        frozenset[Path]().union(*(part.reads for part in parts)),
        frozenset[str]().union(*(part.marking for part in parts)),
    )


def _absorbing(tests: tuple[Test, ...], decisive: bool) -> Test:
    """One decisive answer decides, wherever it stands; without one, the first unevaluable answer is the result."""
    undecided = not decisive

    def test(view: View) -> Answer:
        answer: Answer = undecided
        for part in tests:
            given = part(view)
            if given is decisive:
                return decisive
            if given is not undecided and answer is undecided:
                answer = given
        return answer

    return test


def _not(condition: dict[str, Any], place: _Place) -> CompiledCondition:
    part = _compile(condition["condition"], place.inside("condition"))
    evaluate = part.evaluate

    def test(view: View) -> Answer:
        given = evaluate(view)
        return given if isinstance(given, Unevaluable) else not given

    return CompiledCondition(test, _text(f"not {part.text}"), part.reads, part.marking)


def _cel(condition: dict[str, Any], place: _Place) -> CompiledCondition:
    try:
        compiled = compile_cel(condition["expr"], place.names)
        compiled.require_boolean()
    except ExpressionError as error:
        where = ", ".join(filter(None, (place.at("expr"), error.where)))
        raise ExpressionError(error.message, where, error.code) from None
    return CompiledCondition(compiled.condition, _text(compiled.text), compiled.reads, compiled.marking)


_FORMS: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Any], _Place], CompiledCondition]]] = {
    "comparison": (("left", "operator", "right"), _comparison),
    "exists": (("field",), _exists),
    "in_set": (("field", "values"), _in_set),
    "array_length": (("field", "operator", "value"), _array_length),
    "and": (("conditions",), _and),
    "or": (("conditions",), _or),
    "not": (("condition",), _not),
    "cel": (("expr",), _cel),
}

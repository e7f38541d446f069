"""Structured conditions: what each form answers, and when it cannot answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.expression.forms import (
    FALSE,
    TRUE,
    UNEVALUABLE,
    UNKNOWN,
    VIEW,
    answer,
    both,
    compare,
    either,
    field,
    literal,
    negated,
)
from treadle.errors import ExpressionError
from treadle.expression.conditions import Unevaluable, compile_condition
from treadle.expression.view import DictView


@pytest.mark.parametrize(
    ("left", "operator", "right", "expected"),
    [
        (field("$.state.score"), ">=", literal(80), True),
        (field("state.score"), "<", literal(84.5), False),
        (field("state.score"), "==", literal(85.0), True),
        (field("state.score"), ">", field("input.limit"), True),
        (literal(80), "<", field("state.score"), True),
        (literal(85), "<=", field("state.score"), True),
        (literal(85), ">", field("state.score"), False),
        (field("state.name"), "==", literal("ada"), True),
        (field("state.name"), "<", literal("bob"), True),
        (field("state.name"), "!=", field("judge"), True),
        (field("state.done"), "==", literal(True), True),
        (field("state.done"), "!=", literal(True), False),
        (field("state.list"), "==", literal([1, 2, 3.0]), True),
        (field("state.flags"), "==", literal([1]), False),
        (field("state.object"), "!=", literal({"a": True}), True),
        (field("state.list[2]"), "==", literal(3), True),
        (field("state.big"), ">", literal(1.5), True),
        (literal("a"), "==", literal("a"), True),
        (field("judge"), "==", literal("bob"), True),
    ],
)
def test_a_comparison_of_like_values_answers(left: Any, operator: str, right: Any, expected: bool) -> None:
    assert answer(compare(left, operator, right)) is expected


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("other", [literal(1), literal("a"), field("state.score"), field("input.none")])
def test_a_missing_field_makes_the_comparison_unevaluable(operator: str, other: Any) -> None:
    assert answer(compare(field("state.absent"), operator, other)) == UNEVALUABLE
    assert answer(compare(other, operator, field("state.absent.deeper"))) == UNEVALUABLE


@pytest.mark.parametrize(
    ("left", "operator", "right"),
    [
        (field("state.score"), "==", literal("85")),
        (field("state.score"), "!=", literal("85")),
        (field("state.name"), "<", literal(3)),
        (field("state.done"), "==", literal(1)),
        (field("state.done"), ">", field("state.done")),
        (field("state.done"), ">", literal(0)),
        (field("state.score"), "==", literal(True)),
        (field("state.nothing"), "==", literal(0)),
        (field("state.nothing"), "==", field("state.score")),
        (field("state.list"), "==", literal({})),
        (field("state.list"), "<", field("state.list")),
        (literal(1), "==", literal("1")),
    ],
)
def test_unlike_types_make_the_comparison_unevaluable(left: Any, operator: str, right: Any) -> None:
    assert answer(compare(left, operator, right)) == UNEVALUABLE


@pytest.mark.parametrize(
    ("path", "operator", "expected"),
    [
        ("state.nothing", "==", True),
        ("state.nothing", "!=", False),
        ("state.score", "==", False),
        ("state.score", "!=", True),
        ("state.list", "!=", True),
        ("state.absent", "==", UNEVALUABLE),
        ("state.absent", "!=", UNEVALUABLE),
    ],
)
def test_anything_that_is_there_compares_with_null(path: str, operator: str, expected: object) -> None:
    assert answer(compare(field(path), operator, literal(None))) == expected
    assert answer(compare(literal(None), operator, field(path))) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("state.score", True),
        ("state.done", True),
        ("state.nothing", False),
        ("state.absent", False),
        ("state.absent.deeper", False),
        ("nowhere", False),
        ("$", True),
    ],
)
def test_exists_is_always_evaluable(path: str, expected: bool) -> None:
    assert answer({"type": "exists", "field": path}) is expected


@pytest.mark.parametrize(
    ("path", "values", "expected"),
    [
        ("state.score", [84, 85], True),
        ("state.score", [85.0], True),
        ("state.score", ["85", None], False),
        ("state.done", [1], False),
        ("state.done", [True], True),
        ("state.nothing", [None], True),
        ("state.list", [[1, 2, 3]], True),
        ("state.flags", [[1], [True, True]], False),
        ("state.object", [{"a": 1.0}], True),
        ("state.name", [], False),
        ("state.absent", ["a"], UNEVALUABLE),
    ],
)
def test_in_set_uses_the_equality_of_json(path: str, values: list[Any], expected: object) -> None:
    assert answer({"type": "in_set", "field": path, "values": values}) == expected


@pytest.mark.parametrize(
    ("path", "operator", "value", "expected"),
    [
        ("state.list", "==", 3, True),
        ("state.list", "<", 3, False),
        ("state.flags", ">=", 1, True),
        ("state.name", "==", 3, UNEVALUABLE),
        ("state.absent", ">=", 0, UNEVALUABLE),
        ("state.nothing", "==", 0, UNEVALUABLE),
    ],
)
def test_only_an_array_has_a_length(path: str, operator: str, value: int, expected: object) -> None:
    condition = {"type": "array_length", "field": path, "operator": operator, "value": value}
    assert answer(condition) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (both(), True),
        (both(TRUE, TRUE), True),
        (both(TRUE, FALSE), False),
        (both(UNKNOWN, FALSE), False),
        (both(FALSE, UNKNOWN), False),
        (both(UNKNOWN, TRUE), UNEVALUABLE),
        (both(TRUE, UNKNOWN), UNEVALUABLE),
        (either(), False),
        (either(FALSE, TRUE), True),
        (either(FALSE, FALSE), False),
        (either(UNKNOWN, TRUE), True),
        (either(TRUE, UNKNOWN), True),
        (either(UNKNOWN, FALSE), UNEVALUABLE),
        (negated(TRUE), False),
        (negated(FALSE), True),
        (negated(UNKNOWN), UNEVALUABLE),
        (negated(both(UNKNOWN, FALSE)), True),
        (either(negated(UNKNOWN), negated(FALSE)), True),
        (both({"type": "exists", "field": "state.absent"}, UNKNOWN), False),
    ],
)
def test_and_or_absorb_the_unevaluable_and_not_hands_it_on(condition: Any, expected: object) -> None:
    assert answer(condition) == expected


def test_structured_and_or_agree_with_cel() -> None:
    parts = {"true": TRUE, "false": FALSE, "state.absent": UNKNOWN}
    for left, right in [(left, right) for left in parts for right in parts]:
        for form, sign in ((both, "&&"), (either, "||")):
            cel = {"type": "cel", "expr": f"{left} {sign} {right}"}
            assert answer(form(parts[left], parts[right])) == answer(cel), (left, sign, right)


def test_no_condition_is_always_true() -> None:
    assert compile_condition(None)(VIEW) is True


def test_an_unevaluable_answer_is_falsy_and_names_the_culprit() -> None:
    given = compile_condition(UNKNOWN)(VIEW)
    assert not given
    assert given == Unevaluable("state.absent is missing")
    unlike = compile_condition(compare(field("state.name"), "<", literal(3)))(VIEW)
    assert unlike == Unevaluable("unlike types: string < number")


def test_deep_data_is_unevaluable_not_a_crash() -> None:
    deep: list[Any] = []
    other: list[Any] = []
    for _ in range(100_000):
        deep, other = [deep], [other]
    same = compare(field("a"), "==", field("b"))
    assert answer(same, DictView({"a": deep, "b": other})) == UNEVALUABLE


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
SCALAR = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, 1.0, "", "a", "b"])
OPERATOR = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


@given(JSON, OPERATOR, JSON)
def test_comparing_any_two_values_gives_an_answer(left: Any, operator: str, right: Any) -> None:
    condition = compile_condition(compare(field("left"), operator, field("right")))
    assert isinstance(condition(DictView({"left": left, "right": right})), bool | Unevaluable)


@given(SCALAR, OPERATOR, SCALAR)
def test_a_literal_on_either_side_answers_like_a_field(left: Any, operator: str, right: Any) -> None:
    view = DictView({"left": left, "right": right})
    by_field = answer(compare(field("left"), operator, field("right")), view)
    if left is None or right is None:
        return
    for sides in ((field("left"), literal(right)), (literal(left), field("right"))):
        try:
            assert answer(compare(sides[0], operator, sides[1]), view) == by_field
        except ExpressionError:
            assert by_field == UNEVALUABLE

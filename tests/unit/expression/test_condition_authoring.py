"""Structured conditions as authors meet them: their text, what they read, what does not compile and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.expression.forms import (
    FALSE,
    TRUE,
    UNKNOWN,
    MarkedView,
    answer,
    both,
    compare,
    either,
    field,
    literal,
    negated,
)
from treadle.errors import ExpressionError
from treadle.expression.conditions import compile_condition


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (None, "always"),
        (compare(field("$.state.score"), ">=", literal(80)), "state.score >= 80"),
        (compare(literal("a"), "==", field('$["odd key"]')), '"a" == $["odd key"]'),
        ({"type": "exists", "field": "state.x"}, "state.x exists"),
        ({"type": "in_set", "field": "state.x", "values": [1, "a"]}, 'state.x in [1,"a"]'),
        ({"type": "array_length", "field": "x", "operator": ">", "value": 2}, "size(x) > 2"),
        (both(negated(TRUE), either(TRUE, FALSE)), "(not 1 == 1 and (1 == 1 or 1 == 2))"),
        ({"type": "cel", "expr": "state.a > 1"}, "state.a > 1"),
    ],
)
def test_the_text_is_what_a_person_would_say(condition: Any, text: str) -> None:
    assert compile_condition(condition).text == text


def test_a_long_text_is_clipped() -> None:
    text = compile_condition(compare(field("state.x"), "==", literal("x" * 10_000))).text
    assert len(text) == 200
    assert text.endswith("…")


def test_a_condition_tells_what_it_reads() -> None:
    cel = {"type": "cel", "expr": 'tokens_at("open") > 0 && state.list.exists(i, i == judge.id)'}
    condition = compile_condition(
        both(compare(field("state.a[0]"), "==", field("input.b")), cel, negated(UNKNOWN)), names=["judge"]
    )
    assert condition.reads == {
        ("state", "a", 0),
        ("input", "b"),
        ("state", "list"),
        ("judge", "id"),
        ("state", "absent"),
    }
    assert condition.marking == {"open"}
    assert condition.needs_marking
    assert not compile_condition(UNKNOWN).needs_marking


def test_the_marking_is_asked_for_when_the_condition_is_asked() -> None:
    view = MarkedView({}, {"open": 2})
    condition = compile_condition(both(FALSE, {"type": "cel", "expr": 'tokens_at("open") == 2'}))
    assert condition(view) is False
    assert view.asked == []
    assert compile_condition({"type": "cel", "expr": 'tokens_at("open") == 2'})(view) is True
    assert view.asked == ["open"]


@pytest.mark.parametrize(
    ("condition", "where", "message"),
    [
        ("state.x", "", "a condition is an object, not string"),
        ({}, "type", "unknown condition type None"),
        ({"type": "comparision"}, "type", "did you mean 'comparison'?"),
        ({"type": ["and"]}, "type", "unknown condition type"),
        ({"type": "exists"}, "", "exists needs 'field'"),
        ({"type": "exists", "feild": "x"}, "feild", "did you mean 'field'?"),
        ({"type": "exists", "field": 3}, "field", "a field is a path, not number"),
        ({"type": "exists", "field": "a..b"}, "field", "at position 1"),
        (compare("state.x", "==", literal(1)), "left", "an operand is"),
        (compare(literal(1), "==", {"field": "a", "literal": 1}), "right", "an operand is"),
        (compare(literal(1), "=", literal(1)), "operator", "an operator is one of"),
        (compare(literal(1), ["=="], literal(1)), "operator", "an operator is one of"),  # type: ignore[arg-type]
        (compare(field("a"), "<", literal(None)), "right", "< cannot order null"),
        (compare(literal(True), "<", field("a")), "left", "< cannot order boolean"),
        (compare(field("a"), "==", literal(float("nan"))), "right.literal", "NaN"),
        (compare(field("a"), "==", literal(float("inf"))), "right.literal", "infinity"),
        (compare(field("a"), "==", literal(2**70)), "right.literal", "64 bits"),
        ({"type": "in_set", "field": "a", "values": "b"}, "values", "values is an array, not string"),
        ({"type": "in_set", "field": "a", "values": [[float("nan")]]}, "values", "NaN"),
        ({"type": "array_length", "field": "a", "operator": "==", "value": -1}, "value", "0 or more"),
        ({"type": "array_length", "field": "a", "operator": "==", "value": True}, "value", "whole number"),
        ({"type": "and", "conditions": {}}, "conditions", "conditions is an array, not object"),
        (both(TRUE, both({"type": "exists"})), "conditions[1].conditions[0]", "exists needs"),
        (negated(7), "condition", "a condition is an object, not number"),
        (both({"type": "cel", "expr": "1 +"}), "conditions[0].expr, column 4", "ends where a value"),
        ({"type": "cel", "expr": "stat.x > 1"}, "expr, column 5", "did you mean 'state'?"),
        ({"type": "cel", "expr": "state.x + 1"}, "expr", "a condition is true or false"),
        ({"type": "cel", "expr": 7}, "expr", "a CEL expression is a string"),
    ],
)
def test_what_does_not_compile_says_where_and_why(condition: Any, where: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_condition(condition)
    assert caught.value.where == where
    assert message in caught.value.message
    assert caught.value.code == "CONDITION_SYNTAX"


def nested(depth: int) -> Any:
    condition = TRUE
    for _ in range(depth - 1):
        condition = negated(condition)
    return condition


def test_a_condition_has_a_greatest_depth() -> None:
    assert answer(nested(32)) is False
    for depth in (33, 100_000):
        with pytest.raises(ExpressionError, match="at most 32 deep"):
            compile_condition(nested(depth))


def test_a_literal_has_a_greatest_depth() -> None:
    value: Any = 1
    for _ in range(33):
        value = [value]
    with pytest.raises(ExpressionError, match="at most 32 deep"):
        compile_condition(compare(field("a"), "==", literal(value)))


FOREIGN = {
    "a long string": "x" * 70_000,
    "a long list": list(range(20_000)),
    "a huge integer": 10**5_000,
    "a lone surrogate": "\ud800",
    "a Python object": object(),
    "a set": {"a": {3}},
}


@pytest.mark.parametrize("value", FOREIGN.values(), ids=FOREIGN.keys())
def test_an_oversized_or_foreign_literal_is_refused(value: Any) -> None:
    with pytest.raises(ExpressionError):
        compile_condition(compare(field("a"), "==", literal(value)))

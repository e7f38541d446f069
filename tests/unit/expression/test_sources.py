"""Mappings: what stands on the right, what may stand on the left, and what is built from them."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.errors import EvaluationError, ExpressionError
from treadle.expression.sources import compile_mapping, compile_source, compile_targets
from treadle.expression.view import DictView

VIEW = DictView({"state": {"ideas": [{"text": "loom"}], "zero": 0, "nothing": None}, "judge": "bob"})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("$.state.ideas[0].text", "loom"),
        ("$.judge", "bob"),
        ("$", {"state": {"ideas": [{"text": "loom"}], "zero": 0, "nothing": None}, "judge": "bob"}),
        ("$.state.zero", 0),
        ("$.state.nothing", None),
        ("$.state.absent.deeper", None),
        ({"cel": "state.zero + 1"}, 1),
        ({"literal": "$.state.zero"}, "$.state.zero"),
        ({"literal": {"cel": "1"}}, {"cel": "1"}),
        ({"literal": None}, None),
        ("plain", "plain"),
        ("", ""),
        (7, 7),
        (None, None),
        ({"a": "$.judge", "b": {"cel": "1"}}, {"a": "$.judge", "b": {"cel": "1"}}),
        ({"cel": "1", "also": 2}, {"cel": "1", "also": 2}),
        (["$.judge"], ["$.judge"]),
    ],
)
def test_a_source_is_a_path_a_computation_or_itself(source: Any, expected: Any) -> None:
    assert compile_source(source).evaluate(VIEW) == expected


def test_an_unevaluable_computation_is_an_error_and_a_missing_path_is_not() -> None:
    with pytest.raises(EvaluationError, match="absent"):
        compile_source({"cel": "state.absent"}).evaluate(VIEW)
    assert compile_source("$.absent").evaluate(VIEW) is None


def test_a_source_tells_what_it_reads() -> None:
    assert compile_source("$.state.a[0]").reads == {("state", "a", 0)}
    assert compile_source({"cel": "judge + state.b"}, ["judge"]).reads == {("judge",), ("state", "b")}
    assert compile_source({"cel": "tokens_at('x')"}).marking == {"x"}
    assert compile_source({"cel": "tokens_at('x')"}).needs_marking
    assert compile_source({"literal": "$.a"}).reads == frozenset()


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("$5 off", "BAD_VALUE"),
        ("$.a[", "BAD_VALUE"),
        ({"cel": "1 +"}, "CONDITION_SYNTAX"),
        ({"cel": 5}, None),
    ],
)
def test_a_source_that_does_not_compile_is_refused(source: Any, code: str | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_source(source)
    assert caught.value.code == (code or "CONDITION_SYNTAX")


def test_a_text_that_looks_like_a_path_gets_a_hint() -> None:
    with pytest.raises(ExpressionError, match=r"write \{literal: …\}"):
        compile_source("$5 off")


def test_an_input_mapping_builds_one_object() -> None:
    mapping = compile_mapping({"who": "$.judge", "n": {"cel": "state.zero"}, "gone": "$.absent", "fixed": [1]})
    assert mapping.evaluate(VIEW) == {"who": "bob", "n": 0, "gone": None, "fixed": [1]}
    assert mapping.reads == {("judge",), ("state", "zero"), ("absent",)}
    assert [target for target, _ in mapping.items] == ["who", "n", "gone", "fixed"]
    assert not mapping.needs_marking
    assert compile_mapping({}).evaluate(VIEW) == {}


def test_a_dotted_key_builds_nested_objects() -> None:
    mapping = compile_mapping({"a.b.c": 1, "a.b.d": "$.judge", "a.e": 3})
    assert mapping.evaluate(VIEW) == {"a": {"b": {"c": 1, "d": "bob"}, "e": 3}}
    assert mapping.evaluate(VIEW) is not mapping.evaluate(VIEW)


@pytest.mark.parametrize("mapping", [{"a": 1, "a.b": 2}, {"a.b.c": 1, "a.b": 2}, {"a..b": 1}, {"": 1}, {"a.": 1}])
def test_keys_that_overlap_or_are_empty_are_refused(mapping: dict[str, Any]) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_mapping(mapping)
    assert caught.value.code == "BAD_VALUE"


def test_an_error_in_a_mapping_names_the_key() -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_mapping({"fine": 1, "sum": {"cel": "1 +"}})
    assert caught.value.where == "sum, column 4"
    with pytest.raises(ExpressionError, match="a mapping is an object, not array"):
        compile_mapping([])  # type: ignore[arg-type]


def test_targets_are_below_state_or_output() -> None:
    view = DictView({"text": "hi", "list": [1]})
    targets = compile_targets({"state.a.b": "$.text", "$.output['x y']": "$.list", "output.all": "$"})
    assert [(path, source.evaluate(view)) for path, source in targets] == [
        (("state", "a", "b"), "hi"),
        (("output", "x y"), [1]),
        (("output", "all"), {"text": "hi", "list": [1]}),
    ]


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("input.a", "INPUT_NOT_WRITABLE"),
        ("$.input", "INPUT_NOT_WRITABLE"),
        ("nodes.a.output", "BAD_VALUE"),
        ("score", "BAD_VALUE"),
        ("state", "BAD_VALUE"),
        ("$", "BAD_VALUE"),
        ("state..a", "BAD_VALUE"),
        ("[0]", "BAD_VALUE"),
    ],
)
def test_other_targets_are_refused(target: str, code: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_targets({target: 1})
    assert caught.value.code == code
    assert caught.value.where == target


def test_an_output_that_is_no_object_can_be_read_too() -> None:
    assert compile_source("$").evaluate(DictView([1, 2])) == [1, 2]
    assert compile_source("$[1]").evaluate(DictView([1, 2])) == 2
    assert DictView([1, 2]).tokens_at("a") == 0


def test_a_computed_map_has_its_keys_in_order_in_every_process() -> None:
    made = compile_source({"cel": "{'b': 1, 'a': {'y': 1, 'x': 2}, 'c': [{'q': 1, 'p': 2}]}"}).evaluate(DictView({}))
    assert str(made) == "{'a': {'x': 2, 'y': 1}, 'b': 1, 'c': [{'p': 2, 'q': 1}]}"

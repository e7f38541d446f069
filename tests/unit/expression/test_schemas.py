"""JSON Schema: problems with their places, bad schemas at deploy, nothing from network or disk."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from treadle.errors import ExpressionError
from treadle.expression.schemas import Validator, compile_schema

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"items": {"type": "string"}},
    },
    "required": ["name"],
}


def validator(schema: Any) -> Validator:
    compiled = compile_schema(schema)
    assert compiled is not None
    return compiled


def test_no_schema_accepts_everything_and_false_nothing() -> None:
    assert compile_schema(None) is None
    assert compile_schema(True) is None
    assert validator(False).problem(1) is not None
    assert validator({}).problem(1) is None


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "ada", "age": 36, "tags": ["a"]}, None),
        ({"name": "ada", "age": 36.0}, None),
        ({}, '$: "name" is a required property'),
        ([], '$: [] is not of type "object"'),
        ({"name": "ada", "tags": ["a", 7]}, '$.tags[1]: 7 is not of type "string"'),
    ],
)
def test_a_problem_names_its_place(value: Any, problem: str | None) -> None:
    assert validator(PERSON).problem(value) == problem


def test_at_most_three_problems_are_told_and_briefly() -> None:
    problem = validator({"items": {"type": "integer"}}).problem(["x" * 10_000] * 100)
    assert problem is not None
    assert problem.count("; ") == 2
    assert len(problem) < 700


@pytest.mark.parametrize("value", ["\ud800", {1: 2}, {"a": object()}])
def test_a_value_that_is_not_json_is_a_problem_not_a_crash(value: Any) -> None:
    problem = validator(PERSON).problem(value)
    assert problem is not None
    assert "not plain JSON" in problem


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "objekt"}, "$.type"),
        ({"properties": {"a": {"minimum": "3"}}}, "$.properties.a.minimum"),
        ({"pattern": "("}, "$.pattern"),
        ({"pattern": "((a{999}){999}){999}"}, "$.pattern"),
        ({"$ref": "#/$defs/none"}, None),
        ("string", ""),
        (7, ""),
        ([], ""),
        ({"const": object()}, ""),
    ],
)
def test_a_bad_schema_is_refused(schema: Any, where: str | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_schema(schema)
    assert caught.value.code == "BAD_SCHEMA"
    assert where is None or caught.value.where == where


def test_nothing_is_fetched(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    for reference in ("http://127.0.0.1:9/schema", "https://example.com/s", secret.as_uri(), "other.json"):
        with pytest.raises(ExpressionError, match=r"[Rr]etriev|not present|valid"):
            compile_schema({"$ref": reference})


def test_a_local_reference_may_be_recursive() -> None:
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    assert validator(tree).problem({"left": {"right": {}}}) is None
    assert validator(tree).problem({"left": {"right": 7}}) == '$.left.right: 7 is not of type "object"'
    union = {"$defs": {"a/b": {"anyOf": [{"type": "string"}, {"items": {"$ref": "#/$defs/a~1b"}}]}}}
    assert validator({**union, "$ref": "#/$defs/a~1b"}).problem([["a"]]) is None


def test_a_regular_expression_cannot_explode() -> None:
    bomb = validator({"pattern": "^(?=(a+)+$)(a|a)*b\\1$"})
    began = time.perf_counter()
    assert bomb.problem("a" * 1_000) is not None
    assert validator({"pattern": "(a+)+$"}).problem("a" * 10_000 + "b") is not None
    assert time.perf_counter() - began < 1


def doubled(levels: int, keyword: str) -> dict[str, Any]:
    defs: dict[str, Any] = {"a0": {"type": "string"}}
    for level in range(1, levels + 1):
        below = {"$ref": f"#/$defs/a{level - 1}"}
        defs[f"a{level}"] = {keyword: [below, below]}
    return {"$defs": defs, "$ref": f"#/$defs/a{levels}"}


def chained(length: int) -> dict[str, Any]:
    defs: dict[str, Any] = {"a0": {}}
    defs |= {f"a{n}": {"$ref": f"#/$defs/a{n - 1}"} for n in range(1, length)}
    return {"$defs": defs, "$ref": f"#/$defs/a{length - 1}"}


def negated(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


OVERSIZED = {
    "anyOf doubling": doubled(24, "anyOf"),
    "allOf doubling": doubled(24, "allOf"),
    "a long chain": chained(50_000),
    "deep nesting": negated(100_000),
    "many bytes": {"enum": ["x" * 300_000]},
}


@pytest.mark.parametrize("schema", OVERSIZED.values(), ids=OVERSIZED.keys())
def test_an_oversized_schema_is_refused_before_it_is_compiled(schema: dict[str, Any]) -> None:
    began = time.perf_counter()
    with pytest.raises(ExpressionError) as caught:
        compile_schema(schema)
    assert caught.value.code == "BAD_SCHEMA"
    assert time.perf_counter() - began < 2


def test_a_property_may_be_called_like_a_keyword() -> None:
    schema = {"properties": {"anyOf": True, "not": {"type": "string"}, "$ref": {"type": "string"}}}
    assert validator(schema).problem({"anyOf": 1, "not": "a", "$ref": "b"}) is None


def test_a_union_of_many_is_not_mistaken_for_doubling() -> None:
    assert validator(doubled(5, "anyOf")).problem("a") is None
    union = {"anyOf": [{"const": number} for number in range(500)]}
    assert validator(union).problem(499) is None

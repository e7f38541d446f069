"""CEL against people who mean harm: every bomb is refused, at once, and by name."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.errors import DataTooLarge, EvaluationError, ExpressionError
from treadle.expression.answer import Unevaluable
from treadle.expression.cel import LENGTH_MAX, compile_cel
from treadle.expression.cel_values import RESULT_MAX
from treadle.expression.conditions import compile_condition
from treadle.expression.values import kind_of
from treadle.expression.view import CEL_BYTES_MAX, DictView


@pytest.fixture(autouse=True, scope="module")
def _quickly() -> Iterator[None]:
    began = time.perf_counter()
    yield
    assert time.perf_counter() - began < 20, "a refusal must be cheap"


def doubling(levels: int, copies: int) -> str:
    """`[x].map(v1, [v1 + v1].map(v2, …))`: the string grows by `copies` at every level."""
    expr = f"v{levels}"
    for level in range(levels, 1, -1):
        expr = f"[{' + '.join([f'v{level - 1}'] * copies)}].map(v{level}, {expr})"
    return f"[input.x].map(v1, {expr})"


def nested_data(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


TOO_MUCH = {
    "a long text": ("1" + " " * LENGTH_MAX, "at most 4096 characters"),
    "deep brackets": ("(" * 100 + "1" + ")" * 100, "nested at most 32 deep"),
    "deep lists": ("[" * 100 + "]" * 100, "nested at most 32 deep"),
    "a long sum": ("+".join(["1"] * 1_000), "nested at most 32 deep"),
    "a long chain": ("state" + ".a" * 1_000, "nested at most 32 deep"),
    "nested choices": ("true ? 1 : " * 300 + "1", "nested at most 32 deep"),
    "a huge integer": ("9" * 100, "invalid int literal"),
    "doubling by map": (doubling(8, 8), "multiply the data too often"),
    "doubling under a comparison": (f"size({doubling(8, 8)}) > 1", "multiply the data too often"),
    "a NUL character": ("state.a\0 || true", "no NUL characters"),
    "a lone surrogate": ("state.a == '\ud800'", "no lone surrogates"),
}


@pytest.mark.parametrize(("expr", "message"), TOO_MUCH.values(), ids=TOO_MUCH.keys())
def test_an_expression_that_asks_too_much_does_not_compile(expr: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        compile_cel(expr)


def test_doubling_by_optionals_does_not_compile() -> None:
    expr = "v"
    for _ in range(14):
        expr = f"optional.of(input.x).optMap(v, {expr}).orValue('') + v"
    with pytest.raises(ExpressionError):
        compile_cel(expr, ["v"])


def test_ordinary_macros_are_not_mistaken_for_bombs() -> None:
    for expr in (
        doubling(3, 3),
        "input.l.map(i, input.l.filter(j, j.id == i.id).map(k, k.name + i.name))",
        "x in [" + ", ".join(f"'{n}'" for n in range(600)) + "]",
        " || ".join(f"x == '{n}'" for n in range(250)),
    ):
        compile_cel(expr, ["x"])


UNREADABLE = {
    "many iterations": (
        "input.map(a, input.map(b, input.map(c, 1)))",
        list(range(40)),
        "loops more than 10000",
    ),
    "a large integer": ("input.a == 1", {"a": 2**70}, "out of range"),
    "a NUL in a string": ("input.a == 'x'", {"a": "x\0y"}, "NUL character"),
    "a NUL in a key": ("input == {}", {"x\0y": 1}, "NUL character"),
    "a NUL in a list": ("input.a == []", {"a": [["\0"]]}, "NUL character"),
    "a lone surrogate": ("input.a == 'x'", {"a": "\ud800"}, "not plain JSON"),
    "a Python object": ("input.a == 'x'", {"a": object()}, "not plain JSON"),
    "deep data": ("input.a == 1", {"a": nested_data(100_000)}, "not plain JSON"),
    "much data": ("input.a == 'x'", {"a": "x" * (CEL_BYTES_MAX + 1)}, "bytes of data"),
}


@pytest.mark.parametrize(("expr", "data", "message"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_data_that_cannot_be_evaluated_is_an_error_not_a_crash(expr: str, data: Any, message: str) -> None:
    view = DictView({"input": data})
    with pytest.raises(EvaluationError, match=message):
        compile_cel(expr).evaluate(view)
    answer = compile_cel(expr).condition(view)
    assert isinstance(answer, Unevaluable)
    assert message in answer.reason


def test_too_much_data_is_told_apart_and_names_the_expression_and_the_size() -> None:
    view = DictView({"input": {"a": "x" * 100}}, bytes_max=50)
    with pytest.raises(DataTooLarge, match=r"reads 118 bytes .* at most 50 .* in `input.a == 'y'`"):
        compile_cel("input.a == 'y'").evaluate(view)
    answer = compile_cel("input.a == 'y'").condition(view)
    assert isinstance(answer, Unevaluable)
    assert answer.limit
    either = {
        "type": "or",
        "conditions": [{"type": "cel", "expr": "input.a == 'y'"}, {"type": "exists", "field": "input.a"}],
    }
    assert compile_condition(either)(view) is True, "what another part decides needs no answer"


def test_the_word_for_nul_is_not_nul() -> None:
    view = DictView({"input": {"a": "\\u0000"}})
    assert compile_cel("size(input.a) == 6").condition(view) is True


def test_a_regular_expression_cannot_explode() -> None:
    view = DictView({"input": {"a": "a" * 100_000 + "b", "pattern": "(a+)+$"}})
    assert compile_cel("input.a.matches(input.pattern)").condition(view) is False
    assert isinstance(compile_cel("'a'.matches('((a{99}){99}){99}')").condition(view), Unevaluable)


def test_a_result_has_a_greatest_size() -> None:
    view = DictView({"input": {"l": list(range(200)), "text": "x" * (RESULT_MAX // 100)}})
    with pytest.raises(EvaluationError, match="larger than"):
        compile_cel("input.l.map(i, input.text)").evaluate(view)


def test_a_whole_number_keeps_its_64_bits() -> None:
    view = DictView({"input": {"low": -(2**63), "high": 2**63 - 1, "unsigned": 2**64 - 1}})
    assert compile_cel("[input.low, input.high, input.unsigned]").evaluate(view) == [
        -(2**63),
        2**63 - 1,
        2**64 - 1,
    ]


JSON_KINDS = {"null", "boolean", "number", "string", "array", "object"}
WORDS = (
    *(
        "state",
        "input",
        "x",
        "i",
        ".a",
        ".?b",
        "['k']",
        "[0]",
        "[i]",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "?",
    ),
    *("+", "-", "*", "/", "%", "==", "<", "&&", "||", "!", " in ", "1", "2.5", "'s'", "b's'", "true", "null"),
    *(
        ".map(i, ",
        ".all(i, ",
        "has(",
        "size(",
        "type(",
        "optional.of(",
        ".orValue(",
        "tokens_at('n')",
        "// c\n",
    ),
)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map("".join) | st.text(max_size=30))
def test_any_text_compiles_or_is_refused_and_evaluates_or_says_why_not(expr: str) -> None:
    view = DictView({"state": {"a": 1, "k": [1]}, "input": [{"a": 2}], "x": "text"})
    try:
        compiled = compile_cel(expr, ["x"])
    except ExpressionError:
        return
    assert isinstance(compiled.condition(view), bool | Unevaluable)
    with contextlib.suppress(EvaluationError):
        assert kind_of(compiled.evaluate(view)) in JSON_KINDS

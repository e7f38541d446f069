"""CEL as authors meet it: a conformance table, the reasons it gives, what does not compile."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.errors import EvaluationError, ExpressionError
from treadle.expression.answer import Unevaluable
from treadle.expression.cel import compile_cel
from treadle.expression.view import DictView

VIEW = DictView(
    {
        "input": {"n": 3, "text": "é😀", "list": [1, 2, 3], "mixed": [1, "a"], "missing_is": None},
        "state": {"score": 85, "ratio": 0.5, "done": True, "object": {"a": 1, "b-c": 2}, "in": 1},
        "nodes": {"step_1": {"output": {"ok": True}}},
        "judge": "bob",
    }
)
ERROR = "error"


def value_of(expr: str, view: DictView = VIEW) -> Any:
    try:
        return compile_cel(expr, ["judge"]).evaluate(view)
    except EvaluationError:
        return ERROR


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        # types and literals
        ("1", 1),
        ("1u", 1),
        ("0xFF", 255),
        ("1.5", 1.5),
        ("'a' + \"b\"", "ab"),
        ("r'\\d'", "\\d"),
        ("true", True),
        ("null", None),
        ("[1, 'a', null]", [1, "a", None]),
        ("{'a': {'b': [1.5, true]}}", {"a": {"b": [1.5, True]}}),
        ("type(input.n) == int", True),
        # numbers: comparisons mix, arithmetic does not
        ("1 == 1.0", True),
        ("1 < 1.5", True),
        ("state.score > 84.5", True),
        ("state.ratio < 1", True),
        ("input.n + 1", 4),
        ("input.n / 2", 1),
        ("input.n % 2", 1),
        ("input.n + 0.5", ERROR),
        ("double(input.n) + 0.5", 3.5),
        ("input.n / 0", ERROR),
        ("9223372036854775807 + input.n", ERROR),
        ("math.greatest(input.n, 5)", 5),
        # null
        ("input.missing_is == null", True),
        ("input.n == null", False),
        ("null == 0", False),
        ("'x' == 1", False),
        # fields
        ("has(state.score)", True),
        ("has(state.absent)", False),
        ("has(state.absent.deeper)", ERROR),
        ("has(_last_error.kind)", False),
        ("_last_error.kind == 'x'", ERROR),
        ("state.absent == 1", ERROR),
        ("state['score']", 85),
        ("state.object.`b-c`", 2),
        (".state.score", 85),
        ("state.?absent.orValue(0) + 1", 1),
        ("state.?score.orValue(0) + 1", 86),
        ("state.?absent.?deeper.hasValue()", False),
        ("nodes.step_1.output.ok", True),
        ("judge == 'bob'", True),
        ("input.list[0]", 1),
        ("input.list[3]", ERROR),
        ("input.n.field", ERROR),
        # macros
        ("input.list.all(i, i > 0)", True),
        ("input.list.exists(i, i == 2)", True),
        ("input.list.exists_one(i, i > 1)", False),
        ("input.list.filter(i, i > 1)", [2, 3]),
        ("input.list.map(i, i * 2)", [2, 4, 6]),
        ("input.list.map(i, i > 1, i * 2)", [4, 6]),
        ("state.object.exists(key, key == 'a')", True),
        ("size(input.list) == 3 && size(state.object) == 2", True),
        ("2 in input.list", True),
        ("2.0 in input.list", True),
        ("true in input.list", False),
        ("'a' in state.object", True),
        # text
        ("size(input.text)", 2),
        ("input.text.startsWith('é')", True),
        ("'abc'.matches('^a.c$')", True),
        ("'abc'.matches('(')", ERROR),
        ("int('12') + int(string(input.n))", 15),
        # errors are absorbed by a deciding side, either one
        ("true || state.absent", True),
        ("state.absent || true", True),
        ("false && state.absent", False),
        ("state.absent && false", False),
        ("state.absent || false", ERROR),
        ("state.absent && true", ERROR),
        ("!state.absent", ERROR),
        ("input.mixed.all(i, i > 1)", False),
        ("input.mixed.exists(i, i == 1)", True),
        ("input.mixed.exists(i, i > 1)", ERROR),
        # the conditional
        ("state.done ? 1 : 'a'", 1),
        ("state.score ? 1 : 2", ERROR),
        # time
        ("timestamp('2026-01-31T10:00:00Z')", "2026-01-31T10:00:00Z"),
        ("timestamp('2026-01-31T10:00:00.5+02:00')", "2026-01-31T08:00:00.500000Z"),
        ("duration('90s')", "90s"),
        ("duration('1500ms')", "1.5s"),
        ("timestamp('2026-01-31T10:00:00Z') + duration('1h') < timestamp('2026-02-01T00:00:00Z')", True),
        # what JSON cannot hold
        ("b'abc'", ERROR),
        ("[b'abc']", ERROR),
        ("int", ERROR),
        ("1.0 / 0.0", ERROR),
        ("[double('NaN')]", ERROR),
        ("1.0e400", ERROR),
        ("{1: 2}", ERROR),
        ("state.?absent", ERROR),
        ("[optional.of(1)]", ERROR),
        # without a marking there are no tokens anywhere
        ("tokens_at('a')", 0),
    ],
)
def test_cel_conformance(expr: str, expected: Any) -> None:
    value = value_of(expr)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("expr", "reason"),
    [
        ("state.absent == 1", 'there is no key "absent"'),
        ("_branch", "_branch has no value here"),
        ("state.score < 'a'", "unlike types: _<_(int64, string)"),
        ("state.score.a", "a field is read from something that is not an object"),
        ("input.list[7] == 1", "there is no element 7 in an array of 3"),
        ("state.score ? true : false", "the condition of ?: is not true or false"),
        ("input.n / 0 == 1", "divide by zero"),
        ("state.score", "the result is int, not true or false"),
        ("state.?absent", "the result is an optional; end it with .orValue(…)"),
        ("input.list", "the result is list<dyn>, not true or false"),
    ],
)
def test_a_condition_without_an_answer_says_why(expr: str, reason: str) -> None:
    assert compile_cel(expr).condition(VIEW) == Unevaluable(reason)


def test_an_error_is_not_taken_for_true() -> None:
    assert not compile_cel("state.absent").condition(VIEW)
    with pytest.raises(EvaluationError, match="there is no key"):
        compile_cel("state.absent").evaluate(VIEW)


def test_an_evaluation_error_names_the_expression() -> None:
    with pytest.raises(EvaluationError, match=r'no key "absent" in `state\.absent \+ 1`'):
        compile_cel("state.absent + 1").evaluate(VIEW)


@pytest.mark.parametrize(
    ("expr", "where", "message"),
    [
        ("", "", "an expression is not empty"),
        ("  \n", "", "an expression is not empty"),
        ("1 +", "column 4", "the expression ends where a value is expected"),
        ("state.x >= && 3", "column 12", "unexpected '&&': a value is expected"),
        ("state.x > 1 and state.y", "column 13", "unexpected 'and': write &&"),
        ("state.x 3", "column 9", "unexpected '3': an operator, or the end is expected"),
        ("(state.x", "column 9", "')' is missing at the end"),
        ("1 +\n  )", "line 2, column 3", ")"),
        ("stat.x > 1", "column 5", "unknown name or function 'stat'; did you mean 'state'?"),
        ("quorum", "column 1", "known are _branch, _last_error, _run, _visit, input, nodes, output, state"),
        ("state.x.upper()", "column 14", "unknown name or function 'upper'"),
        ("state.a = 1", "column 9", "token recognition error"),
        ("for", "column 1", "reserved identifier: for"),
        ("state.x == 1 && 1 == 'a' && foo", "column 29", "unknown name or function 'foo'"),
    ],
)
def test_what_does_not_compile_says_where_and_why(expr: str, where: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_cel(expr)
    assert caught.value.where == where
    assert message in caught.value.message
    assert caught.value.code == "CONDITION_SYNTAX"


def test_a_join_sees_the_names_it_is_given() -> None:
    names = ["arrived", "succeeded", "failed", "live", "total", "results"]
    view = DictView({"arrived": 9, "total": 10, "results": [{"ok": True}]})
    assert compile_cel("arrived * 10 >= total * 9 && results[0].ok", names).condition(view) is True
    with pytest.raises(ExpressionError, match="arrived"):
        compile_cel("arrived * 10 >= total * 9")


def test_a_variable_may_have_any_name_but_cel_cannot_speak_of_all() -> None:
    names = ["type", "odd name", "in", "größe", "1st"]
    assert compile_cel("state.done", names).condition(VIEW) is True
    with pytest.raises(ExpressionError, match="'type' is the name of a CEL type"):
        compile_cel("type == 'a'", names)


def test_the_same_text_is_compiled_once() -> None:
    assert compile_cel("state.a > 1", ["x", "y"]) is compile_cel("state.a > 1", ("y", "x"))


def test_an_expression_is_evaluated_against_the_view_as_it_is_now() -> None:
    data = {"state": {"a": 1}}
    compiled = compile_cel("state.a + 1")
    assert compiled.evaluate(DictView(data)) == 2
    data["state"]["a"] = 41
    assert compiled.evaluate(DictView(data)) == 42

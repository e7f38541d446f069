"""Signatures: checked at deploy against what is mapped, converted to at the call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.actions.calls import error, output
from tests.unit.tasks import shop
from treadle.actions.registry import Registry
from treadle.language import load_text
from treadle.language.builder import Flow
from treadle.language.checks.signatures import check_signatures
from treadle.language.parts import cel, literal
from treadle.tasks import Trust, find_function, signature_of


def said(function: Any, input: Any = None, **options: Any) -> list[tuple[str, str]]:
    """The place and message of everything that is wrong with one node that calls a function."""
    flow = Flow("w")
    flow.node("n", function, **({} if input is None else {"input": input}), **options)
    problems = check_signatures(flow.load(signatures=None).require(), flow.functions)
    assert {problem.code for problem in problems} <= {"SIGNATURE"}
    return [(problem.at, problem.message) for problem in problems]


@pytest.mark.parametrize(
    ("function", "input"),
    [
        (shop.pay, {"order": "$.input.order"}),
        (shop.pay, {"order": {"id": "o", "amount": 5}, "strict": True}),
        (shop.pay, {"order.id": "$.input.id", "order.amount": 3}),
        (shop.pay, {"order": "$.input.order", "strict": None}),
        (shop.choose, {"how": "fast", "tries": 2.0, "share": 1, "names": ["a"]}),
        (shop.choose, {"how": cel("input.how")}),
        (shop.look_up, {"person": {"name": "Ann", "born": "1990-01-02"}, "where": {"street": "x"}}),
        (shop.own, {"money": 5, "later": "whatever"}),
        (shop.whole_order, {"id": "$.input.id", "amount": 3}),
        (shop.anything, {"x": 1}),
        (shop.greet, {"name": literal("$5")}),
    ],
)
def test_nothing_is_said_of_inputs_that_fit(function: Any, input: Any) -> None:
    assert said(function, input) == []


HERE = "nodes.n.input_mapping"


@pytest.mark.parametrize(
    ("function", "input", "problems"),
    [
        (shop.greet, None, [("nodes.n", "needs the input `name`")]),
        (shop.greet, {"nmae": "x"}, [(f"{HERE}.nmae", "has no parameter `nmae`"), (HERE, "needs the input `name`")]),
        (shop.greet, {"name": 5}, [(f"{HERE}.name", "expected `str`, got `int`")]),
        (shop.pay, {"order": {"id": "o"}}, [(f"{HERE}.order", "object missing required field `amount`")]),
        (shop.pay, {"order": {"id": "o", "amount": "5"}}, [(f"{HERE}.order", "got `str` - at `$.amount`")]),
        (
            shop.pay,
            {"order": {"id": "o", "amount": 5, "currency": "USD"}},
            [(f"{HERE}.order", "invalid enum value 'USD'")],
        ),
        (shop.choose, {"how": "slow"}, [(f"{HERE}.how", "invalid enum value 'slow'")]),
        (shop.choose, {"how": "fast", "tries": True}, [(f"{HERE}.tries", "expected `int`, got `bool`")]),
        (shop.choose, {"how": "fast", "names": [1]}, [(f"{HERE}.names", "expected `str`, got `int` - at `$[0]`")]),
        (shop.look_up, {"person": {"name": "x", "born": "y"}}, [(f"{HERE}.person", "invalid RFC3339")]),
        (
            shop.whole_order,
            {"id": "x"},
            [(HERE, "`input` of `whole_order(input: 'Order') -> 'Any'` needs the input `amount`")],
        ),
        (shop.whole_text, {"topic": "$.input.topic"}, [(HERE, "as `input`: expected `str`, got `object`")]),
        (shop.by_position, {"first": 1, "second": 2}, [(HERE, "takes `first` by position"), (HERE, "takes `second`")]),
    ],
)
def test_every_input_that_does_not_fit_is_named_with_its_place(function: Any, input: Any, problems: Any) -> None:
    found = said(function, input)
    assert [at for at, _ in found] == [at for at, _ in problems]
    for (_, message), (_, part) in zip(found, problems, strict=True):
        assert part in message


def test_a_misspelt_input_is_told_the_nearest_parameter() -> None:
    flow = Flow("w")
    flow.node("n", shop.greet, input={"nmae": "x"})
    assert flow.load().errors[0].hint == "did you mean `name`?"


def test_a_flow_checks_its_own_functions_when_it_is_built() -> None:
    flow = Flow("w")
    flow.node("n", shop.greet)
    assert [problem.code for problem in flow.load().errors] == ["SIGNATURE"]


def test_problems_of_a_text_have_line_and_column() -> None:
    action = f"{{kind: python, function: '{shop.__name__}:greet'}}"
    text = f"workflow: w\nnodes:\n  n:\n    action: {action}\n    input: {{name: 5}}\n"
    problem = load_text(text, "w.yaml", signatures=lambda name: find_function(name, {})).errors[0]
    assert str(problem).startswith("w.yaml:5:19: error SIGNATURE at nodes.n.input.name: ")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("no.such.module:f", "there is no module 'no.such.module' on Python's path"),
        (f"{shop.__name__}:greeet", "did you mean 'greet'?"),
        ("judeg", "did you mean 'judge'?"),
        ("math:pi", "functions.allow does not cover the module 'math'"),
    ],
)
def test_a_function_that_is_not_there_is_a_problem_that_names_the_nearest(function: str, message: str) -> None:
    flow = Flow("w")
    flow.node("n", action={"kind": "python", "function": function})
    (problem,) = check_signatures(flow.build(), {"judge": shop.greet})
    assert (problem.code, problem.at) == ("UNKNOWN_FUNCTION", "nodes.n.task.steps[0].action.function")
    assert message in problem.message


def test_a_module_that_breaks_while_it_is_imported_is_a_problem_and_not_a_crash(
    tmp_path: Any, monkeypatch: Any
) -> None:
    (tmp_path / "broken_shop.py").write_text("raise RuntimeError('half installed')\n")
    monkeypatch.syspath_prepend(tmp_path)
    flow = Flow("w")
    flow.node("n", action={"kind": "python", "function": "broken_shop:f"})
    trust = Trust(["broken_shop"])
    assert [problem.message for problem in check_signatures(flow.build(), {}, trust=trust)] == ["half installed"]


def test_a_process_takes_only_what_it_can_import() -> None:
    def local() -> None: ...

    async def waits() -> None: ...

    for function, reason in ((local, "cannot be sent"), (lambda: 1, "cannot be sent"), (waits, "is async")):
        flow = Flow("w")
        flow.node("n", action={"kind": "python", "function": function, "process": True})
        (problem,) = flow.load().errors
        assert problem.at == "nodes.n.action.process"
        assert reason in problem.message


def test_inputs_of_steps_transitions_and_compensations_count() -> None:
    flow = Flow("w")
    a = flow.node("a", shop.anything)
    a.to(flow.node("b", shop.greet), mapping={"name": "result"})
    flow.node("c", shop.greet, input={"name": "x"}, compensate=lambda input, output, name: None)
    flow.node("d", steps=[{"ref": "s", "action": {"kind": "python", "function": shop.greet}, "input": {"name": 5}}])
    assert [problem.at for problem in flow.load().errors] == ["nodes.d.steps[0].input.name"]


def test_all_problems_come_at_once() -> None:
    flow = Flow("w")
    flow.node("a", shop.greet)
    flow.node("b", shop.pay, input={"odrer": 1})
    assert len(flow.load().errors) == 3


registry = Registry()
for each in (
    shop.pay,
    shop.greet,
    shop.look_up,
    shop.choose,
    shop.own,
    shop.whole_order,
    shop.whole_text,
    shop.anything,
):
    registry.functions[each.__name__] = each
ORDER = {"id": "o1", "amount": 5}


@pytest.mark.parametrize(
    ("function", "input", "result"),
    [
        ("pay", {"order": ORDER}, {"charge": "ch-o1", "amount": 5}),
        ("greet", {"name": "Ann"}, {"result": "Hello, Ann!"}),
        ("look_up", {"person": {"name": "Ann", "born": "1990-01-02"}}, {"name": "Ann", "year": 1990, "city": None}),
        (
            "look_up",
            {"person": {"name": "Ann", "born": "1990-01-02"}, "where": {"street": "x"}},
            {"name": "Ann", "year": 1990, "city": "Bern"},
        ),
        ("choose", {"how": "safe", "tries": 2.0}, {"how": "safe", "tries": 2, "share": 0.5, "names": None}),
        ("choose", {"how": "safe", "tries": None}, {"how": "safe", "tries": 1, "share": 0.5, "names": None}),
        ("own", {"money": 5}, {"result": "int"}),
        ("whole_order", ORDER, {"got": "o1"}),
    ],
)
def test_json_becomes_what_the_annotation_says_and_the_result_is_json_again(
    function: str, input: Any, result: Any
) -> None:
    assert output("python", {"function": function}, input, registry=registry) == result


@pytest.mark.parametrize(
    ("function", "input", "message"),
    [
        ("pay", {"order": {"id": "o1", "amount": "5"}}, "the input `order` of pay(order: 'Order', strict"),
        ("pay", {"order": {"id": "o1", "amount": "5"}}, "expected `int`, got `str` - at `$.amount`"),
        ("choose", {"how": "slow"}, "invalid enum value 'slow'"),
        ("greet", {"name": None}, "expected `str`, got `null`"),
        ("whole_order", {"id": "o1"}, "the input `input` of whole_order"),
        ("whole_text", {"topic": "tea"}, "gets the whole input, an object, as `input`: expected `str`, got `object`"),
        ("whole_text", {"topic": "tea"}, "give the parameter another name to take one input by that name"),
        ("whole_text", 5, "the input `input` of whole_text(input: 'str') -> 'str': expected `str`, got `int`"),
    ],
)
def test_what_does_not_fit_fails_with_schema_and_names_parameter_and_path(
    function: str, input: Any, message: str
) -> None:
    problem = error("python", {"function": function}, input, registry=registry)
    assert (problem.kind, problem.retryable) == ("SCHEMA", False)
    assert message in problem.message


def test_a_model_that_validates_itself_is_made_by_itself() -> None:
    class Model:
        def __init__(self, x: int) -> None:
            self.x = x

        @classmethod
        def model_validate(cls, value: Any) -> Model:
            if not isinstance(value, dict):
                raise ValueError("an object, please")
            return cls(value["x"])

    def f(model: Model, other: int) -> int:
        return model.x + other

    f.__annotations__["model"] = Model
    registry.functions["f"] = f
    assert output("python", {"function": "f"}, {"model": {"x": 1}, "other": 2}, registry=registry) == {"result": 3}
    assert (
        "an object, please" in error("python", {"function": "f"}, {"model": 1, "other": 2}, registry=registry).message
    )


def test_a_signature_is_read_once() -> None:
    assert signature_of(shop.pay) is signature_of(shop.pay)

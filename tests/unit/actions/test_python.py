"""`python`: functions by name, their arguments, their results, their failures."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.unit.actions.calls import call, error, output
from treadle.actions.protocol import AttemptFacts, Work
from treadle.actions.python import PythonKind
from treadle.actions.registry import Registry
from treadle.tasks.trust import Trust

registry = Registry()
registry.trust = Trust((".", "json", "math", "string", "datetime"))


@dataclass
class Receipt:
    total: int


@registry.function("whole")
def whole(input: Any) -> Any:
    return {"got": input}


@registry.function("named")
def named(amount: int, currency: str = "EUR") -> Any:
    return f"{amount} {currency}"


@registry.function("keyword_only")
def keyword_only(*, amount: int) -> Any:
    return amount


@registry.function("single")
def single(amount: int = 1) -> Any:
    return amount


@registry.function("everything")
def everything(**values: Any) -> Any:
    return values


@registry.function("nothing")
def nothing() -> None:
    return None


@registry.function("with_facts")
def with_facts(input: Any, facts: AttemptFacts) -> Any:
    return {"node": facts.node, "key": facts.key, "order": input}


@registry.function("only_facts")
def only_facts(facts: AttemptFacts) -> Any:
    return facts.attempt


@registry.function("asynchronous")
async def asynchronous(input: Any) -> Any:
    return input["n"] + 1


@registry.function("receipt")
def receipt(input: Any) -> Receipt:
    return Receipt(input["n"])


@registry.function("greedy")
def greedy(input: Any) -> Any:
    input["n"] = "eaten"
    return {}


@registry.function("fails")
def fails(input: Any) -> Any:
    raise {"value": ValueError, "net": ConnectionError, "exit": SystemExit}[input["how"]]("told to")


@registry.function("fails_async")
async def fails_async(input: Any) -> Any:
    raise TimeoutError("upstream")


@registry.function("hidden_async")
def hidden_async(input: Any) -> Any:
    return asynchronous(input)


@registry.function("not_json")
def not_json(input: Any) -> Any:
    return {"f": float("nan")}


@pytest.mark.parametrize(
    ("function", "input", "result"),
    [
        ("whole", {"n": 1}, {"got": {"n": 1}}),
        ("whole", [1, 2], {"got": [1, 2]}),
        ("named", {"amount": 5}, {"result": "5 EUR"}),
        ("named", {"currency": "CHF", "amount": 5}, {"result": "5 CHF"}),
        ("keyword_only", {"amount": 5}, {"result": 5}),
        ("single", {"amount": 5}, {"result": 5}),
        ("single", {}, {"result": 1}),
        ("everything", {"a": 1, "b": [2]}, {"a": 1, "b": [2]}),
        ("nothing", {"n": 1}, {"result": None}),
        ("with_facts", {"n": 1}, {"node": "review", "key": "r1:7:1", "order": {"n": 1}}),
        ("only_facts", {"n": 1}, {"result": 2}),
        ("asynchronous", {"n": 1}, {"result": 2}),
        ("receipt", {"n": 1}, {"total": 1}),
        ("json:dumps", {"n": 1}, None),
        ("math:isqrt", {"n": 9}, None),
        ("string:capwords", {"s": "one two"}, {"result": "One Two"}),
        ("datetime:date.fromtimestamp", {}, None),
    ],
)
def test_a_function_is_found_and_called(function: str, input: Any, result: Any) -> None:
    if result is None:  # several parameters, and the input names none of them
        assert "does not fit" in error("python", {"function": function}, input, registry=registry).message
    else:
        assert output("python", {"function": function}, input, registry=registry) == result


@pytest.mark.parametrize(
    ("function", "input", "kind", "message", "retryable"),
    [
        ("fails", {"how": "value"}, "TASK_FAILED", "ValueError: told to", False),
        ("fails", {"how": "net"}, "TASK_FAILED", "ConnectionError: told to", True),
        ("fails", {"how": "exit"}, "TASK_FAILED", "SystemExit: told to", False),
        ("fails_async", {}, "TASK_FAILED", "TimeoutError: upstream", True),
        ("hidden_async", {"n": 1}, "TASK_FAILED", "returned a coroutine", False),
        ("not_json", {}, "TASK_FAILED", "$.f is nan", False),
        ("named", {"amuont": 5}, "TASK_FAILED", "does not fit named(amount", False),
        (
            "named",
            [5],
            "TASK_FAILED",
            "takes its inputs by name, and the step's input is no object but an array",
            False,
        ),
        ("nmaed", {}, "NOT_FOUND", "did you mean 'named'?", False),
        ("no.such.module:f", {}, "NOT_FOUND", "cannot be imported", False),
        ("math:nothing_here", {}, "NOT_FOUND", "cannot be imported", False),
        ("math:pi", {}, "NOT_FOUND", "is a float, not a function", False),
    ],
)
def test_what_goes_wrong_is_an_error_with_its_reason(
    function: str, input: Any, kind: str, message: str, retryable: bool
) -> None:
    problem = error("python", {"function": function}, input, registry=registry)
    assert (problem.kind, problem.retryable) == (kind, retryable)
    assert message in problem.message


def test_a_function_cannot_change_the_runs_data() -> None:
    shown = {"n": 1}
    output("python", {"function": "greedy"}, shown, registry=registry)
    assert shown == {"n": 1}


def test_a_module_that_breaks_while_it_is_imported_says_so(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "broken_tasks.py").write_text("raise RuntimeError('half installed')\n")
    monkeypatch.syspath_prepend(tmp_path)
    trusting = Registry()
    trusting.trust = Trust([str(tmp_path)])
    assert "RuntimeError: half installed" in error("python", {"function": "broken_tasks:f"}, registry=trusting).message
    sys.modules.pop("broken_tasks", None)


@pytest.mark.parametrize(("process", "place"), [(False, "thread"), (True, "process")])
def test_blocking_work_is_described_not_done(process: bool, place: str) -> None:
    described = PythonKind({"f": whole}).run(call({"function": "f", "process": process}))
    assert isinstance(described, Work)
    assert described.place == place


def test_a_function_registered_anew_under_its_name_is_the_one_that_is_called() -> None:
    own = Registry()
    own.functions["f"] = lambda: {"n": 1}
    assert output("python", {"function": "f"}, registry=own) == {"n": 1}
    own.functions["f"] = lambda: {"n": 2}
    assert output("python", {"function": "f"}, registry=own) == {"n": 2}
    del own.functions["f"]
    assert error("python", {"function": "f"}, registry=own).kind == "NOT_FOUND"

"""How the steps of a task hand data on (1.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.runtime.attempts import attempt, cel, failure, mock, result, step, task
from treadle.runtime.execute.task import TaskOutcome


@pytest.mark.parametrize("output", [{"v": 1}, None, 0, "", False, [], {}, [1, {"a": None}]])
def test_the_only_steps_output_is_the_tasks_unless_it_maps(output: Any) -> None:
    assert result(step("only", "mock", {"output": output})) == output


@pytest.mark.parametrize(
    ("mapping", "output"),
    [
        ({}, {}),
        ({"output.v": "$.v"}, {"v": 1}),
        ({"output.all": "$"}, {"all": {"v": 1, "w": [2]}}),
        ({"output.deep.w": "$.w[0]"}, {"deep": {"w": 2}}),
        ({"output.none": "$.nothing"}, {"none": None}),
        ({"state.v": "$.v"}, {}),
        ({"output.sum": {"cel": "output.v + input.n"}}, {"sum": 11}),
    ],
)
def test_an_output_mapping_writes_from_the_actions_output(mapping: dict[str, Any], output: Any) -> None:
    only = mock("only", {"v": 1, "w": [2]}, output_mapping=mapping)
    assert result(only, {"n": 10}) == output


def test_a_task_of_several_steps_results_in_what_output_targets_wrote() -> None:
    assert result(task(mock("a", {"x": 1}), mock("b", {"y": 2}))) == {}
    mapped = task(mock("a", {"x": 1}, output_mapping={"output.x": "$.x"}), mock("b", {"y": 2}))
    assert result(mapped) == {"x": 1}


def test_state_carries_values_from_step_to_step() -> None:
    chain = task(
        step("read", "set", {"values": {"n": "$.input.n"}}, output_mapping={"state.n": "$.n"}),
        step("double", "set", {"values": {"n": {"cel": "state.n * 2"}}}, output_mapping={"state.n": "$.n"}),
        step(
            "write",
            "set",
            input_mapping={"final": "$.state.n", "was": "$.input.n"},
            output_mapping={"output.n": "$.final", "output.was": "$.was"},
        ),
    )
    assert result(chain, {"n": 4}) == {"n": 8, "was": 4}


@pytest.mark.parametrize(
    ("mapping", "seen"),
    [
        (None, {"a": 1, "b": {"c": 2}}),
        ({}, {}),
        ({"x": "$.input.b.c"}, {"x": 2}),
        ({"x": {"cel": "input.a + 1"}, "y": "plain"}, {"x": 2, "y": "plain"}),
    ],
)
def test_a_step_without_input_mapping_gets_the_tasks_input(mapping: Any, seen: Any) -> None:
    first = mock("first")
    second = step("second", "set", input_mapping=mapping, output_mapping={"output.seen": "$"})
    assert result(task(first, second), {"a": 1, "b": {"c": 2}}) == {"seen": seen}


def test_a_later_write_does_not_change_an_earlier_value_it_was_copied_from() -> None:
    shared = task(
        mock("a", {"box": {"n": 1}}, output_mapping={"state.one": "$.box", "state.two": "$.box"}),
        mock("b", {"n": 2}, output_mapping={"state.two.n": "$.n"}),
        step(
            "c",
            "set",
            {"values": {"one": "$.state.one", "two": "$.state.two"}},
            output_mapping={"output.r": "$"},
        ),
    )
    assert result(shared) == {"r": {"one": {"n": 1}, "two": {"n": 2}}}


@pytest.mark.parametrize(
    ("when", "n", "ran"),
    [
        (cel("input.n > 1"), 2, "ab"),
        (cel("input.n > 1"), 1, "b"),
        (cel("input.gone > 1"), 1, "b"),
        ({"type": "exists", "field": "$.input.n"}, 1, "ab"),
        ({"if": cel("input.n > 1")}, 1, "b"),
        ({"if": cel("input.n > 1"), "then": "skip", "else": "continue"}, 2, "b"),
        ({"if": cel("input.n > 1"), "then": "skip", "else": "continue"}, 1, "ab"),
        ({"if": cel("input.n > 1"), "then": "succeed"}, 2, ""),
        ({"if": cel("input.n > 1"), "else": "succeed"}, 1, ""),
    ],
)
def test_when_runs_skips_or_ends(when: Any, n: int, ran: str) -> None:
    steps = task(
        mock("a", {"ok": True}, when=when, output_mapping={"output.a": "$.ok"}),
        mock("b", {"ok": True}, output_mapping={"output.b": "$.ok"}),
    )
    assert "".join(result(steps, {"n": n})) == ran


def test_when_sees_what_earlier_steps_wrote() -> None:
    steps = task(
        mock("a", {"done": True}, output_mapping={"state.done": "$.done", "output.n": {"literal": 1}}),
        mock(
            "b",
            {"n": 2},
            when={"if": cel("state.done"), "then": "succeed"},
            output_mapping={"output.n": "$.n"},
        ),
    )
    assert result(steps) == {"n": 1}


@pytest.mark.parametrize(
    ("n", "reason"), [(2, "input.n > 1 is true"), (1, "input.gone is unevaluable: ")], ids=["then", "else"]
)
def test_when_may_fail_the_step_and_says_why(n: int, reason: str) -> None:
    expr, verbs = ("input.n > 1", {"then": "fail"}) if n == 2 else ("input.gone", {"else": "fail"})
    error = failure(mock("check", when={"if": cel(expr), **verbs}), {"n": n})
    assert (error.kind, error.retryable) == ("TASK_FAILED", False)
    assert f"step 'check' is told to fail because {reason}" in error.message


@pytest.mark.parametrize("when", [cel("false"), {"if": cel("true"), "then": "succeed"}])
def test_a_single_step_that_does_not_run_results_in_an_empty_object(when: Any) -> None:
    assert result(mock("only", {"v": 1}, when=when)) == {}


def test_requests_of_all_steps_come_with_the_result_in_order() -> None:
    outcome, _ = attempt(
        task(
            step("a", "emit", {"type": "begun"}),
            step("b", "send", {"signal": "go"}, when=cel("false")),
            step("c", "emit", {"type": "ended", "data": "$.input.n"}),
        ),
        {"n": 1},
    )
    assert [(r.type, r.data) for r in outcome.requests] == [("begun", None), ("ended", 1)]  # type: ignore[union-attr]


def test_a_task_without_steps_succeeds_with_nothing() -> None:
    assert attempt(task()) == (TaskOutcome(output={}), 0)

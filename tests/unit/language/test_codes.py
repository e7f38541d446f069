"""Every code has a definition that earns it, with its place; and a near relative that does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.language.definitions import codes, flow, go, loaded, table
from treadle.language.problem import ADVICE, ERRORS, WARNINGS

MISTAKES = table("mistakes.yaml")
SOUND = table("sound.yaml")


@pytest.mark.parametrize("row", MISTAKES, ids=[f"{row['code']} {row['at']}" for row in MISTAKES])
def test_a_mistake_has_its_code_and_its_place(row: dict[str, Any]) -> None:
    found = loaded(row["definition"])
    assert (row["code"], row["at"]) in [(problem.code, problem.at) for problem in found.problems]
    assert found.workflow is None or row["code"] in WARNINGS | ADVICE


def test_a_webhook_is_warned_about_where_its_worker_could_not_call_back() -> None:
    definition = flow({"a": {"action": {"kind": "webhook", "url": "https://worker.example/jobs"}}})
    assert codes(definition) == []
    assert [(one.code, one.severity) for one in loaded(definition, callbacks=False).problems] == [
        ("NO_PUBLIC_URL", "warning")
    ]


def test_every_code_of_the_specification_is_covered() -> None:
    assert (ERRORS | WARNINGS | ADVICE) - {row["code"] for row in MISTAKES} == {
        "UNKNOWN_FUNCTION",
        "SIGNATURE",
        "NO_PUBLIC_URL",
    }


@pytest.mark.parametrize(
    "definition",
    [row["definition"] for row in MISTAKES if row["code"] in WARNINGS],
    ids=[row["code"] for row in MISTAKES if row["code"] in WARNINGS],
)
def test_under_strict_a_warning_is_an_error_of_the_same_code(definition: dict[str, Any]) -> None:
    lenient, strict = loaded(definition), loaded({**definition, "strict": True})
    assert lenient.workflow is not None
    assert lenient.errors == []
    assert strict.workflow is None
    assert {problem.code for problem in strict.errors} >= {problem.code for problem in lenient.warnings[:1]}
    assert loaded(definition, strict=True).workflow is None


@pytest.mark.parametrize("row", [row for row in MISTAKES if row["code"] in ADVICE], ids=lambda row: row["at"])
def test_strict_leaves_advice_a_warning(row: dict[str, Any]) -> None:
    strict = loaded({**row["definition"], "strict": True}, strict=True)
    assert strict.workflow is not None
    assert row["code"] in [problem.code for problem in strict.warnings]


def test_a_workflow_needs_a_name() -> None:
    problem = loaded({"nodes": {"a": {}}}).errors[0]
    assert (problem.code, problem.at) == ("BAD_VALUE", "")


def test_functions_are_looked_up_only_where_the_caller_can_tell() -> None:
    definition = flow({"a": {"action": {"kind": "python", "function": "shop:pay"}}})
    assert codes(definition) == []
    assert codes(definition, functions=lambda name: name == "shop:pay") == []
    problem = loaded(definition, functions=lambda _: False).errors[0]
    assert (problem.code, problem.at) == ("UNKNOWN_FUNCTION", "nodes.a.action.function")


@pytest.mark.parametrize("definition", [row["definition"] for row in SOUND], ids=[row["because"] for row in SOUND])
def test_nothing_is_said_where_nothing_is_wrong(definition: dict[str, Any]) -> None:
    assert codes(definition) == []


def test_all_mistakes_are_told_at_once() -> None:
    definition = flow(
        {"a": {"retries": 1}, "b": {"action": {"kind": "htp"}}, "c": {"timeout_ms": 0}},
        go("a", "x"),
        go("a", "b", spawn_count=0),
        go("a", "c", condition="1 +"),
        timeout_ms="5m",
    )
    assert sorted(codes(definition)) == [
        "BAD_TIMEOUT",
        "BAD_VALUE",
        "BAD_VALUE",
        "CONDITION_SYNTAX",
        "SPAWN_COUNT",
        "UNKNOWN_FIELD",
        "UNKNOWN_NODE",
    ]


def test_a_wrong_node_does_not_make_its_transitions_wrong() -> None:
    assert codes(flow({"a": 7, "b": {}}, go("a", "b"))) == ["BAD_VALUE"]


def test_the_number_of_problems_is_bounded() -> None:
    nodes = {f"n{index}": {"oops": 1} for index in range(1_000)}
    assert len(loaded(flow(nodes)).problems) == 501
    assert "500 more" in loaded(flow(nodes)).problems[-1].message


def test_an_error_beyond_the_bound_still_forbids_deploying() -> None:
    nodes: dict[str, Any] = {f"n{index}": {} for index in range(600)}
    only_warnings = loaded(flow(nodes, start="n0"))
    assert only_warnings.workflow is not None
    assert only_warnings.errors == []
    nodes["n0"] = {"input": {"x": "$.state.never_written"}}  # found last, when there is no more room
    found = loaded(flow(nodes, start="n0"))
    assert found.workflow is None
    assert [problem.message for problem in found.errors] == ["100 more problems are not shown"]


@pytest.mark.parametrize("value", [None, 7, "text", [1], [], {}, {"workflow": "w", "nodes": None}])
def test_what_is_no_definition_is_a_problem_and_not_an_exception(value: Any) -> None:
    assert loaded(value).errors

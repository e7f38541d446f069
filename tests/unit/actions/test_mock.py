"""`mock`: the outcome that was ordered."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.actions.calls import FACTS, call, error, output
from treadle.actions.mock import mock_reply
from treadle.actions.protocol import Done, Later


@pytest.mark.parametrize(
    ("config", "result"),
    [
        ({}, {}),
        ({"output": {"v": "aye"}}, {"v": "aye"}),
        ({"output": None}, None),
        ({"output": 0}, 0),
        ({"output": "$.input.n"}, "$.input.n"),
        ({"output": {"cel": "input.n * 2"}}, 4),
        ({"output": {"deep": [{"at": {"cel": "_branch.index"}}, "x"]}}, {"deep": [{"at": 3}, "x"]}),
        ({"output": {"cel": "input.n", "more": 1}}, {"cel": "input.n", "more": 1}),
    ],
)
def test_a_mock_answers_with_its_output(config: dict[str, Any], result: Any) -> None:
    facts = replace(FACTS, branch={"index": 3, "total": 5})
    assert output("mock", config, {"n": 2}, facts=facts) == result


@pytest.mark.parametrize(
    ("ordered", "kind", "message", "retryable"),
    [
        ({}, "TASK_FAILED", "mock failure", False),
        ({"message": "down", "retryable": True}, "TASK_FAILED", "down", True),
        ({"kind": "CARD_REFUSED"}, "CARD_REFUSED", "mock failure", False),
    ],
)
def test_a_mock_fails_on_demand(ordered: dict[str, Any], kind: str, message: str, retryable: bool) -> None:
    problem = error("mock", {"error": ordered, "output": {"ignored": True}})
    assert (problem.kind, problem.message, problem.retryable) == (kind, message, retryable)


@pytest.mark.parametrize("after_ms", [300, "$.input.ms", {"cel": "input.ms"}])
def test_a_mock_says_how_long_it_takes_and_waits_for_nothing(after_ms: Any) -> None:
    outcome = {"output": {"a": 1}, "after_ms": after_ms}
    assert mock_reply(outcome, call({}, {"ms": 300})) == Later(300, Done({"a": 1}))


@pytest.mark.parametrize("after_ms", ["$.input.ms", -1, 0.5])
def test_a_delay_that_is_no_duration_fails_the_mock(after_ms: Any) -> None:
    assert "is a number of milliseconds" in error("mock", {"after_ms": after_ms}, {"ms": "soon"}).message


def test_a_mock_whose_expression_has_no_value_fails_and_names_it() -> None:
    assert "input.gone" in error("mock", {"output": {"cel": "input.gone"}}, {}).message

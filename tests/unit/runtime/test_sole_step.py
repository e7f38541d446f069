"""A task that is one action and nothing else takes a short way through the pipeline: same questions, same outcome."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.runtime.attempts import attempt, fail, mock, step, task
from treadle.actions.protocol import Call
from treadle.runtime.execute import task as pipeline
from treadle.runtime.execute.task import Invoke, TaskOutcome
from treadle.runtime.execute.task_plan import plan_task

SCHEMA = {"type": "object", "required": ["n"]}
TASKS: dict[str, dict[str, Any]] = {
    "an output": {"steps": [mock("a", {"n": 1})]},
    "an output of another type": {"steps": [mock("a", [1, "two"])]},
    "requests": {"steps": [step("a", "emit", {"type": "said", "data": {"x": 1}})]},
    "failure": {"steps": [fail("a")]},
    "failure that is retryable": {"steps": [fail("a", error={"message": "later", "retryable": True})]},
    "failure that is let pass": {"steps": [fail("a", on_failure="continue")]},
    "failure that starts over": {"steps": [fail("a", on_failure="retry")]},
    "too slow": {"steps": [step("a", "mock", {"delay_ms": 50}, execution={"timeout_ms": 20})]},
    "slow": {"steps": [step("a", "mock", {"delay_ms": 5, "output": {}}, execution={"timeout_ms": 20})]},
    "unknown kind": {"steps": [step("a", "no_such_kind")]},
    "input that does not fit": {"steps": [mock("a", {"n": 1})], "input_schema": {"type": "string"}},
    "output that fits": {"steps": [mock("a", {"n": 1})], "output_schema": SCHEMA},
    "output that does not fit": {"steps": [mock("a", {"m": 1})], "output_schema": SCHEMA},
}


def played(definition: dict[str, Any]) -> tuple[TaskOutcome, int, list[Call]]:
    asked: list[Call] = []

    def noted(invoke: Invoke) -> None:
        asked.append(invoke.call)

    outcome, elapsed_ms = attempt(task(*definition["steps"], **_rest(definition)), {"given": 1}, noted)
    return outcome, elapsed_ms, asked


def _rest(definition: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in definition.items() if key != "steps"}


@pytest.mark.parametrize("name", TASKS)
def test_the_short_way_asks_and_ends_like_the_long_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = TASKS[name]
    assert plan_task(task(*definition["steps"])).sole is not None, "the case takes the long way anyhow"
    short = played(definition)
    monkeypatch.setattr(pipeline, "plan_task", lambda given: replace(plan_task(given), sole=None))
    assert played(definition) == short


@pytest.mark.parametrize(
    ("steps", "fields"),
    [
        ([mock("a", when={"type": "cel", "expr": "true"})], {}),
        ([mock("a", input_mapping={"x": "$.input.x"})], {}),
        ([mock("a", output_mapping={"output.x": "$.x"})], {}),
        ([mock("a", execution={"retry_policy": {"max_attempts": 2}})], {}),
        ([mock("a")], {"retry": {"max_attempts": 2}}),
        ([mock("a"), mock("b")], {}),
        ([], {}),
    ],
)
def test_whatever_has_more_to_it_takes_the_long_way(steps: list[dict[str, Any]], fields: dict[str, Any]) -> None:
    assert plan_task(task(*steps, **fields)).sole is None

"""A task that is one action skips the pipeline: it must come to exactly what the pipeline comes to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.executing import Bench, on_loop, python
from tests.unit.runtime.attempts import FACTS, attempt, fail, mock, step, task
from treadle.actions.registry import Registry
from treadle.model.commands import Command
from treadle.model.definition import Task
from treadle.runtime.execute.answer import result_command
from treadle.runtime.execute.task import sole_plan

NUMBER = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}

SOLE: dict[str, Task] = {
    "a function": task(python("doubled")),
    "an async function": task(python("awaited")),
    "a function that raises": task(python("raises")),
    "a function nobody knows": task(python("nobody")),
    "an output that fits its schema": task(python("doubled"), output_schema=NUMBER),
    "an output that does not": task(mock("a", {"n": "one"}), output_schema=NUMBER),
    "an output that is no JSON": task(python("unspeakable")),
    "a mock": task(mock("a", {"deep": [{"n": 1}]})),
    "a failure": task(fail("a")),
    "a failure that is noted": task(fail("a", on_failure="continue")),
    "a failure that would begin again, once": task(fail("a", on_failure="retry")),
    "a request": task(step("a", "emit", {"type": "seen", "data": {"n": 1}})),
    "an unknown kind": task(step("a", "shout", {})),
    "a timeout": task(step("a", "mock", {"output": {}, "delay_ms": 50}, execution={"timeout_ms": 10})),
    "a delay": task(step("a", "mock", {"output": {"late": True}, "delay_ms": 5}, execution={"timeout_ms": 10})),
}


def registry() -> Registry:
    known = Registry()

    @known.function("doubled")
    def doubled(input: Any) -> Any:
        return {"n": input["n"] * 2}

    @known.function("awaited")
    async def awaited(input: Any) -> Any:
        return {"n": input["n"] * 3}

    @known.function("raises")
    async def raises(input: Any) -> Any:
        raise ValueError(f"not {input['n']}")

    @known.function("unspeakable")
    async def unspeakable(input: Any) -> Any:
        return {"n": float("nan")}

    return known


@pytest.mark.parametrize("name", SOLE)
def test_it_skips_the_pipeline(name: str) -> None:
    assert sole_plan(SOLE[name]) is not None


@pytest.mark.parametrize("name", SOLE)
@on_loop
async def test_it_comes_to_what_the_pipeline_comes_to(name: str) -> None:
    async with Bench(registry()) as bench:
        bench.begin(SOLE[name], FACTS.token, attempt=FACTS.attempt, facts=FACTS, input={"n": 7})
        await bench.clock.advance(100)
        (end,) = await bench.wait_ends()
    assert end == piped(SOLE[name], {"n": 7})


def piped(definition: Task, input: Any) -> Command:
    outcome, _ = attempt(definition, input, registry=registry())
    return result_command(FACTS.token, FACTS.attempt, outcome)


@pytest.mark.parametrize(
    "definition",
    [
        task(mock("a"), mock("b")),
        task(mock("a"), input_schema=NUMBER),
        task(mock("a"), retry={"max_attempts": 2}),
        task(mock("a", execution={"retry_policy": {"max_attempts": 2}})),
        task(mock("a", input_mapping={"n": "$.input.n"})),
        task(mock("a", output_mapping={"output.n": "$.n"})),
        task(mock("a", when={"type": "cel", "expr": "true"})),
    ],
)
def test_whatever_has_more_to_it_does_not(definition: Task) -> None:
    assert sole_plan(definition) is None

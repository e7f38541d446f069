"""The virtual driver, and the promise that the pipeline runs under any other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.runtime.attempts import FACTS, attempt, fail, mock, result, step, task
from treadle.actions.mock import mock_reply
from treadle.actions.protocol import Call, Done, Failed, Later, Reply, Work, failed
from treadle.actions.registry import Registry
from treadle.runtime.execute.drive import Drive, Hold, begin
from treadle.runtime.execute.task import Answer, Invoke, Pause, TaskOutcome, run_task


def test_time_is_added_up_and_nobody_waits() -> None:
    century_ms = 100 * 365 * 24 * 3_600_000
    slow = task(step("a", "mock", {"after_ms": century_ms}), step("b", "mock", {"after_ms": 5}))
    assert attempt(slow)[1] == century_ms + 5


def test_a_hook_answers_for_one_step_and_leaves_the_others_alone() -> None:
    def hook(invoke: Invoke) -> Reply | None:
        return mock_reply({"output": {"v": 2}, "after_ms": 7}, invoke.call) if invoke.call.step == "b" else None

    both = {"output_mapping": {"output.v": "$.v"}}
    outcome, took = attempt(task(mock("a", {"v": 1}, **both), step("b", "http", **both)), hook=hook)
    assert (outcome.output, took) == ({"v": 2}, 7)


def test_a_step_of_an_unknown_kind_can_be_mocked() -> None:
    assert result(step("a", "of_another_team"), hook=lambda _: Done({"v": 1})) == {"v": 1}


def held_at_b() -> Drive:
    definition = task(
        step("a", "mock", {"after_ms": 10}),
        mock("b", output_mapping={"output.v": "$.v"}, execution={"timeout_ms": 100}),
        step("c", "mock", {"after_ms": 20}),
    )

    def hook(invoke: Invoke) -> Hold | None:
        return Hold() if invoke.call.step == "b" else None

    return Drive(run_task(definition, {}, FACTS, Registry()), hook)


def test_a_held_step_waits_for_its_release() -> None:
    drive = held_at_b()
    assert drive.run() == (None, 10)
    assert drive.held is not None
    assert drive.held.call.step == "b"
    assert drive.release(Later(5, Done({"v": 1}))) == (TaskOutcome(output={"v": 1}), 25)
    assert drive.held is None


def test_a_held_step_may_be_released_with_a_failure_or_too_late() -> None:
    for reply, kind in [(failed("no", "REFUSED"), "REFUSED"), (Later(101, Done({})), "TASK_TIMEOUT")]:
        drive = held_at_b()
        drive.run()
        outcome, _ = drive.release(reply)  # type: ignore[arg-type]
        assert outcome is not None
        assert outcome.error is not None
        assert outcome.error.kind == kind


class Raises:
    name = "raises"

    def __init__(self, how: str) -> None:
        self.how = how

    def run(self, call: Call) -> Reply:
        if self.how == "at once":
            raise ValueError("boom")
        return Work(self.work) if self.how == "in work" else self.awaited()

    def work(self) -> Done:
        raise ValueError("boom")

    async def awaited(self) -> Done:
        raise ValueError("boom")


@pytest.mark.parametrize("how", ["at once", "in work", "awaited"])
def test_a_kind_that_raises_has_failed(how: str) -> None:
    registry = Registry()
    registry.register(Raises(how))
    outcome, _ = attempt(step("a", "raises"), registry=registry)
    assert outcome.error is not None
    assert outcome.error.message == "ValueError: boom"


def test_async_functions_can_be_driven_inside_an_event_loop() -> None:
    registry = Registry()

    @registry.function("f")
    async def f(input: Any) -> Any:
        return input["n"] + 1

    async def inside() -> Any:
        return result(step("a", "python", {"function": "f"}), {"n": 1}, registry=registry)

    assert asyncio.run(inside()) == {"result": 2}


def test_the_same_pipeline_runs_under_asyncio() -> None:
    registry, pauses = Registry(), []  # type: ignore[var-annotated]

    @registry.function("flaky")
    async def flaky(input: Any) -> Any:
        if len(pauses) < 2:
            raise ConnectionError("down")
        return input

    async def answered(ask: Invoke | Pause) -> Answer:
        if isinstance(ask, Pause):
            pauses.append(ask.ms)
            return None
        reply = begin(ask)
        assert not isinstance(reply, Done | Failed | Later | Work)
        return await reply

    async def engine() -> TaskOutcome:
        policy = {"retry_policy": {"max_attempts": 3, "initial_delay_ms": 10, "backoff": "linear"}}
        definition = task(step("a", "python", {"function": "flaky"}, execution=policy))
        pipeline = run_task(definition, {"n": 1}, FACTS, registry)
        answer: Answer = None
        while True:
            try:
                answer = await answered(pipeline.send(answer))
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]

    assert asyncio.run(engine()) == TaskOutcome(output={"n": 1})
    assert pauses == [10, 20]


def test_an_attempt_can_be_abandoned_in_the_middle() -> None:
    pipeline = run_task(task(mock("a"), mock("b")), {}, FACTS, Registry())
    assert isinstance(next(pipeline), Invoke)
    pipeline.close()
    with pytest.raises(StopIteration):
        next(pipeline)


def test_drive_refuses_to_leave_a_step_held() -> None:
    with pytest.raises(AssertionError, match="use Drive"):
        attempt(fail("a"), hook=lambda _: Hold())

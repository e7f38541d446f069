"""The executor: what it reports, and what it never reports."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.runtime.executing import Bench, on_loop, python, turns
from tests.unit.runtime.attempts import fail, mock, step, task
from treadle.actions.current import current_attempt
from treadle.actions.protocol import Call, Done
from treadle.actions.registry import Registry
from treadle.model.commands import FailAttempt, FinishAttempt
from treadle.model.ids import TokenId
from treadle.model.requests import Emit

A, B = TokenId(1), TokenId(2)


@on_loop
async def test_an_attempt_that_waits_for_nothing_is_reported_but_not_from_inside_begin() -> None:
    async with Bench() as bench:
        bench.begin(mock("a", {"v": 1}))
        assert bench.reports == []
        assert bench.executor.executing == 1
        await bench.wait_ends()
        assert bench.reports == [("r1", FinishAttempt(A, 1, {"v": 1}))]
        assert bench.executor.executing == 0


@on_loop
async def test_a_report_carries_requests_and_tries() -> None:
    again = {"retry": {"max_attempts": 2, "initial_delay_ms": 5}}
    emit = step("b", "emit", {"type": "seen", "data": {}})
    async with Bench() as bench:
        bench.begin(task(emit))
        bench.begin(task(fail("a", on_failure="retry"), **again), 2)
        await bench.wait_ends(1)
        await bench.clock.advance(5)
        finished, failure = await bench.wait_ends(2)
    assert isinstance(finished, FinishAttempt)
    assert [type(request) for request in finished.requests] == [Emit]
    assert isinstance(failure, FailAttempt)
    assert (failure.token, failure.tries, failure.worker) == (B, 1, None)


@on_loop
async def test_pauses_and_scripted_delays_pass_on_the_clock_only() -> None:
    century_ms = 100 * 365 * 24 * 3_600_000
    async with Bench() as bench:
        bench.begin(step("a", "mock", {"output": {"v": 1}, "after_ms": century_ms}))
        await turns()
        await bench.clock.advance(century_ms - 1)
        assert bench.reports == []
        await bench.clock.advance(1)
        assert await bench.output() == {"v": 1}


@on_loop
async def test_a_scripted_delay_at_its_timeout_is_in_time_and_one_beyond_is_not() -> None:
    def late(ms: int) -> dict[str, Any]:
        return step("a", "mock", {"output": {}, "after_ms": ms}, execution={"timeout_ms": 100})

    async with Bench() as bench:
        bench.begin(late(100), 1)
        bench.begin(late(101), 2)
        await turns()
        await bench.clock.advance(100)
        in_time, too_late = await bench.wait_ends(2)
    assert isinstance(in_time, FinishAttempt)
    assert isinstance(too_late, FailAttempt)
    assert too_late.error.kind == "TASK_TIMEOUT"


@on_loop
async def test_an_async_function_is_cancelled_at_its_timeout_and_tried_again_after_the_backoff() -> None:
    registry, log = Registry(), list[str]()

    @registry.function("slow_once")
    async def slow_once(input: Any) -> Any:
        log.append("try")
        if len(log) > 1:
            return "late but well"
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await turns(3)
            log.append("cleaned up")

    policy = {"max_attempts": 2, "initial_delay_ms": 40, "backoff": "none"}
    async with Bench(registry) as bench:
        bench.begin(python("slow_once", timeout_ms=100, retry_policy=policy))
        await turns()
        await bench.clock.advance(99)
        assert log == ["try"]
        await bench.clock.advance(1)
        assert log == ["try", "cleaned up"]
        await bench.clock.advance(39)
        assert log == ["try", "cleaned up"]
        await bench.clock.advance(1)
        assert await bench.output() == {"result": "late but well"}
        assert bench.clock.pending == []


@on_loop
async def test_user_coroutines_run_in_a_task_and_know_their_attempt() -> None:
    registry = Registry()

    @registry.function("f")
    async def f(input: Any) -> Any:
        async with asyncio.timeout(1):
            return {"task": asyncio.current_task() is not None, "token": current_attempt().facts.token}

    async with Bench(registry) as bench:
        bench.begin(python("f"), 7)
        assert await bench.output() == {"task": True, "token": 7}


@on_loop
async def test_stopping_cancels_the_coroutine_and_nothing_is_reported() -> None:
    registry, cancelled = Registry(), asyncio.Event()

    @registry.function("forever")
    async def forever(input: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with Bench(registry) as bench:
        bench.begin(python("forever"))
        await turns()
        bench.stop()
        assert bench.executor.executing == 0
        await cancelled.wait()
        await turns()
        assert bench.reports == []
        bench.stop()


@on_loop
async def test_a_coroutine_that_swallows_its_cancellation_is_stopped_all_the_same() -> None:
    registry = Registry()

    @registry.function("stubborn")
    async def stubborn(input: Any) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "as if nothing had happened"
        return "unreachable"

    async with Bench(registry) as bench:
        bench.begin(python("stubborn"), 1)
        bench.begin(python("stubborn", timeout_ms=10), 2)
        await turns()
        bench.stop(1)
        await bench.clock.advance(10)
        (only,) = await bench.wait_ends()
        assert isinstance(only, FailAttempt)
        assert (only.token, only.error.kind) == (B, "TASK_TIMEOUT")


@on_loop
async def test_a_coroutine_cancelled_by_its_own_code_is_a_failure_not_a_lost_attempt() -> None:
    registry = Registry()

    @registry.function("suicidal")
    async def suicidal(input: Any) -> None:
        raise asyncio.CancelledError

    async with Bench(registry) as bench:
        bench.begin(python("suicidal"))
        error = await bench.failure()
        assert (error.kind, error.retryable) == ("TASK_FAILED", False)
        assert "not by the engine" in error.message


@on_loop
async def test_an_attempt_stopped_before_its_first_step_never_begins() -> None:
    registry, begun = Registry(), list[int]()

    @registry.function("f")
    async def f(input: Any) -> None:
        begun.append(1)

    async with Bench(registry) as bench:
        bench.begin(python("f"), 1)
        bench.stop(1)
        bench.begin(python("f"), 2)
        asyncio.get_running_loop().call_soon(bench.stop, 2)  # when its task has been made and has not had a turn
        await turns()
        assert (begun, bench.reports, bench.executor.executing) == ([], [], 0)


@on_loop
async def test_what_an_action_answers_wrongly_or_lets_escape_is_a_failure_that_says_so() -> None:
    class Odd:
        def __init__(self, name: str, answer: Any) -> None:
            self.name = name
            self._answer = answer

        def run(self, call: Call) -> Any:
            return self._answer()

    async def nonsense() -> Any:
        return 42

    def exits() -> Any:
        raise SystemExit(3)

    registry = Registry()
    answers = {"nothing": lambda: None, "number": nonsense, "exits": exits, "broken": lambda: 1 / 0}
    for name, answer in answers.items():
        registry.register(Odd(name, answer))
    async with Bench(registry) as bench:
        for token, name in enumerate(answers):
            bench.begin(step("a", name), token)
        ends = await bench.wait_ends(4)
    messages = {end.token: end.error.message for end in ends if isinstance(end, FailAttempt)}
    assert "NoneType" in messages[TokenId(0)]
    assert "int: 42" in messages[TokenId(1)]
    assert messages[TokenId(2)] == "SystemExit: 3"
    assert messages[TokenId(3)] == "ZeroDivisionError: division by zero"


@on_loop
async def test_the_same_attempt_begun_twice_runs_once() -> None:
    async with Bench() as bench:
        bench.begin(mock("a"))
        bench.begin(mock("a"))
        await bench.wait_ends()
        await turns()
        assert len(bench.reports) == 1


@on_loop
async def test_done_is_what_an_awaitable_kind_may_answer() -> None:
    class Echo:
        name = "echo"

        async def run(self, call: Call) -> Done:
            return Done(call.input)

    registry = Registry()
    registry.register(Echo())
    async with Bench(registry) as bench:
        bench.begin(step("a", "echo"), input={"v": 1})
        assert await bench.output() == {"v": 1}

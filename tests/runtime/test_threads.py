"""Blocking work in real threads: contexts, limits, and what being stopped means where nothing can be killed."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

from tests.runtime.executing import Bench, on_loop, python, turns
from treadle.actions.current import current_attempt
from treadle.actions.registry import Registry
from treadle.model.commands import FailAttempt, FinishAttempt

tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


class Gate:
    """Something a thread waits at, and tells the loop when it has arrived. Every wait ends with the test."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._arrived = asyncio.Semaphore(0)
        self.open = threading.Event()

    def wait(self) -> None:
        self._loop.call_soon_threadsafe(self._arrived.release)
        assert self.open.wait(30)

    async def wait_arrivals(self, n: int = 1) -> None:
        for _ in range(n):
            await self._arrived.acquire()


@on_loop
async def test_a_function_runs_in_a_thread_in_the_context_of_whoever_opened_the_executor() -> None:
    """Not of whoever happened to cause the attempt; and what one attempt sets no other sees."""
    registry = Registry()

    @registry.function("where")
    def where(input: Any) -> Any:
        found = tenant.get()
        tenant.set("changed by an attempt")
        return {
            "off_loop": threading.current_thread() is not threading.main_thread(),
            "tenant": found,
            "token": current_attempt().facts.token,
        }

    tenant.set("ann")
    async with Bench(registry) as bench:
        for token in (1, 2):
            tenant.set("somebody else")
            bench.begin(python("where"), token)
        outputs = {end.token: end.output for end in await bench.wait_ends(2) if isinstance(end, FinishAttempt)}
    assert outputs == {token: {"off_loop": True, "tenant": "ann", "token": token} for token in (1, 2)}


@on_loop
async def test_what_a_thread_raises_is_a_failure_even_if_it_wants_to_exit() -> None:
    registry = Registry()

    @registry.function("exits")
    def exits(input: Any) -> None:
        raise SystemExit(2)

    async with Bench(registry) as bench:
        bench.begin(python("exits"))
        assert (await bench.failure()).message == "SystemExit: 2"


@on_loop
async def test_no_more_threads_than_allowed_and_a_timeout_does_not_count_the_time_in_line() -> None:
    registry, gate = Registry(), Gate()

    @registry.function("wait")
    def wait(input: Any) -> None:
        gate.wait()

    async with Bench(registry, threads_max=2) as bench:
        bench.begin(python("wait"), 1)
        bench.begin(python("wait"), 2)
        bench.begin(python("wait", timeout_ms=10), 3)
        await gate.wait_arrivals(2)
        await bench.clock.advance(1_000)
        assert bench.reports == []
        gate.open.set()
        ends = await bench.wait_ends(3)
        assert all(isinstance(end, FinishAttempt) for end in ends)


@on_loop
async def test_a_timed_out_thread_is_told_its_result_dropped_and_its_place_kept_until_it_returns() -> None:
    registry, gate, told = Registry(), Gate(), list[bool]()

    @registry.function("deaf")
    def deaf(input: Any) -> str:
        gate.wait()
        told.append(current_attempt().cancelled.is_set())
        return "too late"

    @registry.function("quick")
    def quick(input: Any) -> str:
        return "done"

    async with Bench(registry, threads_max=1) as bench:
        bench.begin(python("deaf", timeout_ms=10), 1)
        await gate.wait_arrivals()
        await bench.clock.advance(10)
        (end,) = await bench.wait_ends()
        assert isinstance(end, FailAttempt)
        assert (end.error.kind, end.error.retryable) == ("TASK_TIMEOUT", True)
        bench.begin(python("quick"), 2)
        await turns()
        assert bench.executor._shop.threads.busy == 1
        assert len(bench.reports) == 1
        gate.open.set()
        ends = await bench.wait_ends(2)
    assert told == [True]
    assert isinstance(ends[1], FinishAttempt)
    assert ends[1].output == {"result": "done"}


@on_loop
async def test_the_next_try_of_a_timed_out_action_has_a_flag_of_its_own() -> None:
    registry, gate, flags = Registry(), Gate(), list[bool]()

    @registry.function("deaf_once")
    def deaf_once(input: Any) -> Any:
        flags.append(current_attempt().cancelled.is_set())
        if len(flags) == 1:
            gate.wait()
        return len(flags)

    policy = {"max_attempts": 2, "initial_delay_ms": 1, "backoff": "none"}
    async with Bench(registry) as bench:
        bench.begin(python("deaf_once", timeout_ms=10, retry_policy=policy))
        await gate.wait_arrivals()
        await bench.clock.advance(11)
        assert await bench.output() == {"result": 2}
        gate.open.set()
    assert flags == [False, False]


@on_loop
async def test_a_cooperative_function_ends_when_its_attempt_is_stopped() -> None:
    registry, begun, ended = Registry(), Gate(), Gate()
    begun.open.set()
    ended.open.set()

    @registry.function("patient")
    def patient(input: Any) -> None:
        begun.wait()
        assert current_attempt().cancelled.wait(30)
        ended.wait()

    async with Bench(registry) as bench:
        bench.begin(python("patient"))
        await begun.wait_arrivals()
        bench.stop()
        await ended.wait_arrivals()
        await turns()
        assert bench.reports == []


@on_loop
async def test_a_thread_that_ignores_its_cancellation_does_not_block_close_and_reports_nothing() -> None:
    registry, gate = Registry(), Gate()

    @registry.function("deaf")
    def deaf(input: Any) -> None:
        gate.wait()

    bench = Bench(registry)
    bench.begin(python("deaf"))
    await gate.wait_arrivals()
    await bench.executor.close(0)
    assert bench.executor.executing == 0
    gate.open.set()
    await turns()
    assert bench.reports == []


@on_loop
async def test_work_stopped_in_the_line_before_the_threads_never_begins() -> None:
    registry, gate, begun = Registry(), Gate(), list[int]()

    @registry.function("wait")
    def wait(input: Any) -> None:
        begun.append(current_attempt().facts.token)
        gate.wait()

    async with Bench(registry, threads_max=1) as bench:
        for token in (1, 2, 3):
            bench.begin(python("wait"), token)
        await gate.wait_arrivals()
        bench.stop(2)
        gate.open.set()
        await bench.wait_ends(2)
    assert begun == [1, 3]

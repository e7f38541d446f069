"""How much the executor does at once, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.runtime.executing import Bench, on_loop, python, turns
from tests.unit.runtime.attempts import mock, step, task
from treadle.actions.current import current_attempt
from treadle.actions.registry import Registry
from treadle.model.commands import FinishAttempt
from treadle.model.ids import TokenId

A = TokenId(1)


@on_loop
async def test_ten_thousand_attempts_never_exceed_the_room() -> None:
    registry = Registry()
    now, most = 0, 0

    @registry.function("counted")
    async def counted(input: Any) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await turns(2)
        now -= 1

    definition = task(python("counted"))
    async with Bench(registry, attempts_max=100) as bench:
        for token in range(10_000):
            bench.begin(definition, token)
        assert bench.executor.executing == 10_000
        await turns(1)
        assert len(asyncio.all_tasks()) <= 101
        ends = await bench.wait_ends(10_000)
    assert most == 100
    assert {end.token for end in ends if isinstance(end, FinishAttempt)} == set(range(10_000))


@on_loop
async def test_a_burst_leaves_turns_to_others() -> None:
    async with Bench() as bench:
        for token in range(3_000):
            bench.begin(mock("a"), token)
        await turns(1)
        assert 0 < len(bench.reports) < 3_000
        await bench.wait_ends(3_000)


@on_loop
async def test_an_attempt_stopped_while_it_waits_for_room_never_begins() -> None:
    registry, go, begun = Registry(), asyncio.Event(), list[int]()

    @registry.function("wait")
    async def wait(input: Any) -> None:
        begun.append(current_attempt().facts.token)
        await go.wait()

    async with Bench(registry, attempts_max=1) as bench:
        for token in (1, 2, 3):
            bench.begin(python("wait"), token)
        await turns()
        bench.stop(2)
        go.set()
        await bench.wait_ends(2)
        assert begun == [1, 3]


@on_loop
async def test_closing_lets_work_end_for_a_while_then_stops_it_unreported() -> None:
    registry, go = Registry(), asyncio.Event()

    @registry.function("soon")
    async def soon(input: Any) -> None:
        await go.wait()

    @registry.function("never")
    async def never(input: Any) -> None:
        await asyncio.Event().wait()

    bench = Bench(registry, attempts_max=2)
    bench.begin(python("soon"), 1)
    bench.begin(python("never"), 2)
    bench.begin(mock("waits_for_room"), 3)
    await turns()
    closing = asyncio.create_task(bench.executor.close(1_000))
    await turns()
    bench.begin(mock("too_late"), 4)
    assert bench.executor.executing == 2
    go.set()
    await bench.clock.advance(999)
    assert not closing.done()
    await bench.clock.advance(1)
    await closing
    assert bench.reports == [("r1", FinishAttempt(A, 1, {"result": None}))]
    assert bench.executor.executing == 0


@on_loop
async def test_closing_ends_early_when_the_last_attempt_does() -> None:
    bench = Bench()
    bench.begin(step("a", "mock", {"output": {}, "after_ms": 10}))
    await turns()
    closing = asyncio.create_task(bench.executor.close(1_000_000))
    await turns()
    await bench.clock.advance(10)
    await closing
    assert len(bench.ends()) == 1

"""The pace of streams: their work takes its share of the time, and waiting for a store or a reader is no work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import Any

import pytest

from tests.runtime.executing import turns
from treadle.server import pace as rules
from treadle.server.pace import Pace

WAIT_S = 20.0


class Clock:
    """A clock that only moves as told, and by pauses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.queued = 0.0
        monkeypatch.setattr(rules, "perf_counter", lambda: self.now)
        monkeypatch.setattr(rules, "queued_s", lambda: self.queued)
        monkeypatch.setattr(asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    async def answer_after(self, seconds: float, found: list[int]) -> list[int]:
        """A store that takes its time."""
        self.now += seconds
        return found


def played(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


def test_a_long_outage_is_not_followed_by_a_longer_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something inside of a turn did not answer for a minute, as the clock says."""
    clock = Clock(monkeypatch)

    async def test() -> None:
        pace = Pace()
        async with pace.turn():
            clock.now += 60
        async with pace.turn():
            pass

    played(test)
    assert sum(clock.slept) <= 3.0 + 1e-9


def test_waiting_for_the_store_is_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def test() -> None:
        pace = Pace()
        for _ in range(10):
            async with pace.turn():
                assert await pace.read(clock.answer_after(60, [1, 2, 3])) == [1, 2, 3]

    played(test)
    assert clock.slept == []


def test_work_of_streams_takes_a_tenth_of_the_time() -> None:
    async def test() -> None:
        pace = Pace()
        began = perf_counter()
        for _ in range(10):
            async with pace.turn():
                until = perf_counter() + 0.01
                while perf_counter() < until:
                    pass
        assert perf_counter() - began > 0.3, "a tenth of a second of work, less what may be done at once"

    played(test)


@pytest.mark.parametrize("size", [0, 100_000])
def test_what_is_sent_to_each_follower_counts(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    clock = Clock(monkeypatch)

    async def test() -> None:
        pace = Pace()
        for _ in range(10_000):
            await pace.sending(size)

    played(test)
    work_s = 10_000 * (rules.SEND_S + size * rules.SEND_BYTES_S)
    assert clock.now == pytest.approx((work_s - rules.BURST_S) / rules.SHARE, rel=0.01)


def test_followers_are_sent_events_while_the_store_does_not_answer() -> None:
    async def test() -> None:
        pace = Pace()
        answer: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

        async def look() -> None:
            async with pace.turn():
                await pace.read(answer)

        looking = asyncio.create_task(look())
        await turns(1)
        async with asyncio.timeout(WAIT_S):
            await pace.sending(1_000)
        assert not looking.done()
        answer.set_result([])
        await looking

    played(test)


@pytest.mark.parametrize(("in_line", "slower"), [(0.0, 1), (0.5, 2), (1.0, 10)])
def test_time_that_other_processes_had_the_processor_is_not_spare(
    monkeypatch: pytest.MonkeyPatch, in_line: float, slower: int
) -> None:
    """A part of every second this process stands in line: streams get a tenth of the rest, and never nothing."""
    clock = Clock(monkeypatch)

    async def sleep(seconds: float) -> None:
        clock.now += seconds
        clock.queued += seconds * in_line

    monkeypatch.setattr(asyncio, "sleep", sleep)

    async def test() -> None:
        pace = Pace()
        for _ in range(1_000):
            await pace.sending(2_000_000)

    played(test)
    work_s = 1_000 * (rules.SEND_S + 2_000_000 * rules.SEND_BYTES_S)
    assert clock.now == pytest.approx(slower * (work_s - rules.BURST_S) / rules.SHARE, rel=0.1)


def test_the_system_tells_how_long_a_thread_has_waited_or_nothing() -> None:
    before = rules.queued_s()
    assert 0 <= before <= rules.queued_s()

"""Timers in memory over timers in the store: what happens while a page is being read is newer than the page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.runtime.executing import on_loop
from treadle.model.ids import RunId, TimerId
from treadle.runtime.deliver.timers import WINDOW_MS, Timers
from treadle.store.port import TimerRow

RUN = RunId("r")
A, B = TimerId(1), TimerId(2)
FAR = 3 * WINDOW_MS


class SlowStore:
    """Answers with what it had when it was asked, when it is told to."""

    def __init__(self, *rows: TimerRow) -> None:
        self.rows = list(rows)
        self.asked: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()
        self.slow = False

    async def timers(self, _shard: int, until: int | None, limit: int) -> list[TimerRow]:
        found = sorted((row for row in self.rows if until is None or row.due <= until), key=lambda row: row.due)
        if self.slow:
            answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.asked.put_nowait(answer)
            await answer
        return found[:limit]


class Ringing:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.time = 0
        self.alarms: list[tuple[int, Callable[[], None], list[bool]]] = []
        self.pages: list[asyncio.Task[None]] = []

    def now(self) -> int:
        return self.time

    def call_at(self, due: int, action: Callable[[], None]) -> Any:
        cancelled = [False]
        self.alarms.append((due, action, cancelled))
        return type("Alarm", (), {"cancel": lambda _self: cancelled.__setitem__(0, True)})()

    async def turn_to(self, time: int) -> None:
        self.time = time
        while due := [alarm for alarm in self.alarms if alarm[0] <= time and not alarm[2][0]]:
            self.alarms.remove(due[0])
            due[0][1]()
            while self.pages:
                await self.pages.pop()


async def opened(store: SlowStore) -> tuple[Timers, Ringing, list[TimerId]]:
    clock, fired = Ringing(), []
    timers = Timers(store, lambda: (0,), clock, lambda _run, timer: fired.append(timer))  # type: ignore[arg-type]
    await timers.open(lambda: clock.pages.append(asyncio.get_running_loop().create_task(timers.turn_page())))
    return timers, clock, fired


async def while_reading(store: SlowStore, timers: Timers, *happenings: Callable[[], None]) -> None:
    """Turns a page; the first happens during the first reading, the second during the second."""
    store.slow = True
    turning = asyncio.get_running_loop().create_task(timers.turn_page())
    for happening in happenings:
        answer = await store.asked.get()
        happening()
        answer.set_result(None)
    store.slow = False
    await turning


def nothing() -> None:
    return


@on_loop
async def test_a_timer_beyond_the_window_that_is_set_while_a_page_is_read_fires() -> None:
    store = SlowStore()
    timers, clock, fired = await opened(store)

    def set_far() -> None:
        store.rows.append(TimerRow(RUN, A, FAR))
        timers.set(RUN, A, FAR)

    await while_reading(store, timers, nothing, set_far)
    await clock.turn_to(FAR)
    assert fired == [A]


@on_loop
async def test_a_timer_that_is_moved_while_a_page_is_read_fires_when_it_was_moved_to() -> None:
    store = SlowStore(TimerRow(RUN, A, 500))
    timers, clock, fired = await opened(store)
    await while_reading(store, timers, lambda: timers.set(RUN, A, 100), nothing)
    await clock.turn_to(100)
    assert fired == [A]


@on_loop
async def test_a_timer_that_is_cleared_while_a_page_is_read_does_not_fire() -> None:
    store = SlowStore(TimerRow(RUN, A, 500))
    timers, clock, fired = await opened(store)
    await while_reading(store, timers, lambda: timers.clear(RUN, A), nothing)
    await clock.turn_to(500)
    assert fired == []


@on_loop
async def test_a_timer_beyond_the_window_is_found_though_nearer_ones_come_between_two_readings() -> None:
    store = SlowStore(TimerRow(RUN, A, FAR))
    timers, clock, fired = await opened(store)

    def set_near() -> None:
        store.rows.append(TimerRow(RUN, B, 100))
        timers.set(RUN, B, 100)

    await while_reading(store, timers, set_near, nothing)
    await clock.turn_to(100)
    assert fired == [B]
    store.rows = [row for row in store.rows if row.timer != B]
    await clock.turn_to(FAR)
    assert fired == [B, A]


@on_loop
async def test_a_world_without_timers_is_never_woken_up() -> None:
    _timers, clock, _fired = await opened(SlowStore())
    assert clock.alarms == []


@on_loop
async def test_a_row_that_says_too_early_a_time_does_not_keep_the_store_busy() -> None:
    """Its run refuses it again and again; between two looks at the store there is a pause."""

    class Counts(SlowStore):
        pages = 0

        async def timers(self, shard: int, until: int | None, limit: int) -> list[TimerRow]:
            self.pages += until is not None
            return await super().timers(shard, until, limit)

    store = Counts()
    timers, clock, _fired = await opened(store)
    store.pages = 0
    for time in range(10_000, 15_000, 100):
        timers.settled(RunId("r"), TimerId(1), too_early=True)
        await clock.turn_to(time)
    assert 4 <= store.pages <= 6, "one at once, then one a second"

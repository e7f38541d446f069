"""Turns of messages to receivers, and the breaker of a receiver that does not answer, on a clock that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.runtime.executing import VirtualClock, _Alarm, on_loop, turns
from treadle.runtime.deliver.peers import FAILURES_MAX, LAST_PAUSE_MS, ROOM, Peers
from treadle.runtime.surroundings.ports import Undeliverable


class Steady(VirtualClock):
    """The virtual clock as one that measures durations."""

    def elapsed(self) -> int:
        return self.now()

    def call_after(self, ms: int, action: Callable[[], None]) -> _Alarm:
        return self.call_at(self.now() + ms, action)


async def message(peers: Peers, name: str, problem: Exception | None = None, sent: list[str] | None = None) -> None:
    async with peers.turn(name):
        if sent is not None:
            sent.append(name)
        if problem is not None:
            raise problem


async def fail(peers: Peers, times: int = 1, name: str = "dead:80") -> None:
    for _ in range(times):
        with pytest.raises(OSError):
            await message(peers, name, OSError("nobody is there"))


@on_loop
async def test_a_breaker_opens_after_five_failures_in_a_row_and_lets_one_probe_through_after_ten_seconds() -> None:
    clock, sent = Steady(), list[str]()
    peers = Peers(clock)
    await fail(peers, FAILURES_MAX - 1)
    assert not peers.is_open("dead:80")
    await fail(peers)
    assert peers.is_open("dead:80")
    waiting = [asyncio.ensure_future(message(peers, "dead:80", None, sent)) for _ in range(3)]
    await clock.advance(9_999)
    assert sent == []
    await clock.advance(1)
    await asyncio.gather(*waiting)
    assert sent == ["dead:80"] * 3
    assert not peers.is_open("dead:80")


@on_loop
async def test_each_probe_that_fails_doubles_the_pause_up_to_five_minutes() -> None:
    clock = Steady()
    peers = Peers(clock)
    await fail(peers, FAILURES_MAX)
    pauses = list[int]()
    for _ in range(7):
        began = clock.now()
        probe = asyncio.ensure_future(fail(peers))
        await turns()
        while not probe.done():
            await clock.advance(clock.pending[0])
        pauses.append(clock.now() - began)
    assert pauses == [10_000, 20_000, 40_000, 80_000, 160_000, LAST_PAUSE_MS, LAST_PAUSE_MS]


@on_loop
async def test_while_a_probe_is_under_way_nothing_else_goes() -> None:
    clock, sent, answer = Steady(), list[str](), asyncio.Event()
    peers = Peers(clock)
    await fail(peers, FAILURES_MAX)

    async def probe() -> None:
        async with peers.turn("dead:80"):
            await answer.wait()

    first = asyncio.ensure_future(probe())
    second = asyncio.ensure_future(message(peers, "dead:80", None, sent))
    await clock.advance(60_000)
    assert sent == []
    answer.set()
    await asyncio.gather(first, second)
    assert sent == ["dead:80"]


@on_loop
async def test_a_probe_that_is_withdrawn_leaves_its_place_to_the_next() -> None:
    clock, sent = Steady(), list[str]()
    peers = Peers(clock)
    await fail(peers, FAILURES_MAX)

    async def hangs() -> None:
        async with peers.turn("dead:80"):
            await asyncio.Event().wait()

    first = asyncio.ensure_future(hangs())
    await turns()
    second = asyncio.ensure_future(message(peers, "dead:80", None, sent))
    await clock.advance(10_000)
    assert sent == []
    first.cancel()
    await second
    assert sent == ["dead:80"]


@on_loop
async def test_a_success_or_a_refusal_in_between_counts_failures_from_the_beginning() -> None:
    peers = Peers(Steady())
    for between in (None, Undeliverable("404", answered=True)):
        await fail(peers, FAILURES_MAX - 1)
        with suppress(Undeliverable):
            await message(peers, "dead:80", between)
    await fail(peers, FAILURES_MAX - 1)
    assert not peers.is_open("dead:80")
    with pytest.raises(Undeliverable):  # an address that was never talked to says nothing about the receiver
        await message(peers, "dead:80", Undeliverable("refused by the gate"))
    await fail(peers)
    assert peers.is_open("dead:80")


@on_loop
async def test_messages_that_went_before_the_breaker_opened_say_nothing_new() -> None:
    clock, answer = Steady(), asyncio.Event()
    peers = Peers(clock)

    async def slow() -> None:
        async with peers.turn("dead:80"):
            await answer.wait()
            raise OSError("too late")

    under_way = [asyncio.ensure_future(slow()) for _ in range(10)]
    await turns()
    await fail(peers, FAILURES_MAX)
    answer.set()
    await asyncio.gather(*under_way, return_exceptions=True)
    sent = list[str]()
    probe = asyncio.ensure_future(message(peers, "dead:80", None, sent))
    await clock.advance(10_000)
    assert sent == ["dead:80"], "the pause is still the first"
    await probe


@on_loop
async def test_a_receiver_that_hangs_takes_its_own_room_and_no_other() -> None:
    peers, sent, answer = Peers(Steady()), list[str](), asyncio.Event()

    async def hangs() -> None:
        async with peers.turn("slow:80"):
            sent.append("slow:80")
            await answer.wait()

    hanging = [asyncio.ensure_future(hangs()) for _ in range(1_000)]
    await turns()
    assert sent == ["slow:80"] * ROOM
    await message(peers, "quick:80", None, sent)
    assert sent[-1] == "quick:80"
    for waiting in hanging[ROOM : ROOM + 500]:
        waiting.cancel()
    await turns()
    answer.set()
    await asyncio.gather(*hanging, return_exceptions=True)
    assert sent.count("slow:80") == 500, "those who gave up waiting were never sent"

"""Followers of all runs inside one process: one reader for all, outages, forgotten events, and rights."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.runtime.executing import turns
from treadle.errors import PositionGone, StoreUnavailable
from treadle.language import load_value
from treadle.runtime.engine import Engine
from treadle.runtime.service.following import FollowedEvent
from treadle.server import followers as rules
from treadle.server import newest_events as memory
from treadle.server.followers import Followers, next_limit
from treadle.server.newest_events import StreamFilter
from treadle.server.service import Service
from treadle.server.settings import ServerSettings
from treadle.server.who import NOBODY
from treadle.store.memory import MemoryStore

FLOW = load_value({"workflow": "w", "nodes": {"a": {}, "b": {}}, "transitions": [{"from": "a", "to": "b"}]}).require()
WAIT_S = 20.0
ALL = StreamFilter()


class Reading:
    """Reads of the log of all events on their way to the store: counted, and refused as told."""

    def __init__(self, followers: Followers) -> None:
        self.count = 0
        self.problem: Exception | None = None
        self._ask = followers._following.events_after
        self._last = followers._following.last_position
        followers._following.events_after = self.events_after  # type: ignore[method-assign]
        followers._following.last_position = self.last_position  # type: ignore[method-assign]

    async def events_after(self, position: str | None, limit: int = 1_000) -> list[FollowedEvent]:
        self.count += 1
        if self.problem is not None:
            raise self.problem
        return await self._ask(position, limit)

    async def last_position(self) -> str:
        await turns(1)  # a store on a disk takes its time, too
        return await self._last()


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Engine, Followers, Reading]]:
    async with Engine(MemoryStore()) as engine:
        await engine.deploy(FLOW)
        followers = Followers(Service(engine, ServerSettings()))
        yield engine, followers, Reading(followers)
        await followers.close()


async def followed(followers: Followers, position: str | None, until: int) -> list[tuple[str, int]]:
    """Follows until so many events have come, as a stream does."""
    found: list[tuple[str, int]] = []
    async with asyncio.timeout(WAIT_S), followers.reading():
        while len(found) < until:
            news = followers.news
            portion = await followers.portion(position, ALL)
            if portion is None:
                await news.wait()
            else:
                found += read(portion.pieces)
                position = portion.position
    return found


def read(written: Iterable[bytes]) -> list[tuple[str, int]]:
    """Events as a reader of the stream finds them: the run and the sequence number of each."""
    messages = b"".join(written).decode().split("\r\n\r\n")[:-1]
    events = [json.loads(message.partition("data: ")[2].partition("\r\n")[0]) for message in messages]
    return [(event["run"], event["seq"]) for event in events]


def played(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


async def written(engine: Engine) -> list[tuple[str, int]]:
    """The events of one run from its beginning to its end."""
    run = await engine.start("w")
    await run.wait()
    return [(run.id, event.seq) for event in await run.history()]


def test_followers_that_come_at_the_same_moment_get_every_event_once() -> None:
    async def test() -> None:
        async with serving() as (engine, followers, _):
            began, _ = await followers.now()
            many = [asyncio.create_task(followed(followers, began, 30)) for _ in range(5)]
            await turns(1)
            wanted: list[tuple[str, int]] = []
            while len(wanted) < 30:
                wanted += await written(engine)
            for found in await asyncio.gather(*many):
                assert found[:30] == wanted[:30]
            await turns(1)
            assert not [task for task in asyncio.all_tasks() if "Followers._read" in repr(task)], "readers are left"

    played(test)


def test_now_is_now_although_nobody_has_followed_for_a_while() -> None:
    async def test() -> None:
        async with serving() as (engine, followers, _):
            async with followers.reading():
                await written(engine)
            missed = await written(engine)
            now, _ = await followers.now()
            wanted = await written(engine)
            found = await followed(followers, now, len(wanted))
            assert found == wanted and found != missed

    played(test)


def test_now_is_now_although_the_reader_is_late() -> None:
    async def test() -> None:
        async with serving() as (engine, followers, _), followers.reading():
            first, _ = await followers.now()
            async with followers.pace.turn():  # the reader gets no turn
                past = await written(engine)
                position, last = await followers.now()
            assert position == first, "what comes is in memory there"
            wanted = await written(engine)
            found: list[tuple[str, int]] = []
            while len(found) < len(wanted):
                news = followers.news
                portion = await followers.portion(position, ALL, past=last)
                if portion is None:
                    await news.wait()
                    continue
                found += read(portion.pieces)
                position = portion.position
            assert found == wanted, "nothing of what was past"
            assert past

    played(test)


def test_a_follower_of_an_empty_store_hears_of_the_first_event() -> None:
    async def test() -> None:
        async with serving() as (engine, followers, _):
            following = asyncio.create_task(followed(followers, None, 1))
            while not followers._is_read:
                await turns(1)
            wanted = await written(engine)
            assert (await following)[:1] == wanted[:1]

    played(test)


@pytest.mark.parametrize("problem", [StoreUnavailable("the store is away"), RuntimeError("a bug")])
def test_an_outage_ends_no_reader_and_nothing_is_left_out(problem: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "POLL_S", 0.01)

    async def test() -> None:
        async with serving() as (engine, followers, reading), AsyncExitStack() as held:
            began, _ = await followers.now()
            await held.enter_async_context(followers.reading())
            reading.problem = problem
            wanted = await written(engine)
            async with asyncio.timeout(WAIT_S):
                seen = reading.count
                while reading.count < seen + 3:
                    await turns(1)
            reading.problem = None
            assert await followed(followers, began, len(wanted)) == wanted

    played(test)


def test_a_follower_whose_events_are_forgotten_is_told_so_and_does_not_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "POLL_S", 0.01)

    async def test() -> None:
        async with serving() as (engine, followers, reading):
            began, _ = await followers.now()
            following = asyncio.create_task(followed(followers, began, 10_000))
            while not followers._is_read:
                await turns(1)
            reading.problem = PositionGone("forgotten")
            await written(engine)
            with pytest.raises(PositionGone):
                await following

    played(test)


def test_the_newest_events_in_memory_are_bounded_and_the_store_has_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "KEPT", 7)

    async def test() -> None:
        async with serving() as (engine, followers, reading):
            began, _ = await followers.now()
            async with followers.reading():
                wanted: list[tuple[str, int]] = []
                for _ in range(5):
                    wanted += await written(engine)
                assert await followed(followers, began, len(wanted)) == wanted
                assert len(followers._newest) <= 7
                assert reading.count > 0

    played(test)


def test_a_stream_whose_caller_cannot_be_looked_at_stays_and_one_without_right_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "RIGHTS_S", 0.01)

    async def test() -> None:
        async with serving() as (_, followers, _reading), asyncio.timeout(WAIT_S):
            asked = asyncio.Event()
            answer: list[Any] = [RuntimeError("a bug")]

            async def is_current(_who: Any) -> bool:
                asked.set()
                if isinstance(answer[0], Exception):
                    raise answer[0]
                return bool(answer[0])

            followers._service.is_current = is_current  # type: ignore[assignment, method-assign]
            async with followers.stream(NOBODY) as stop:
                await asked.wait()
                assert not stop.woken.is_set()
                answer[0] = False
                await stop.woken.wait()
                assert stop.has_lost_right
            while followers._watchman is not None:
                await turns(1)
            assert followers.count == 0

    played(test)


@pytest.mark.parametrize(
    ("count", "size", "limit"), [(0, 0, 5), (20, 2_000, 500), (20, 20_000_000, 1), (100, 1_048_576, 100)]
)
def test_a_follower_reads_fewer_events_at_a_time_the_larger_they_are(count: int, size: int, limit: int) -> None:
    assert next_limit(count, size) == limit


def test_a_page_from_memory_is_bounded_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "AT_ONCE", 1_000)

    async def test() -> None:
        async with serving() as (engine, followers, reading), followers.reading():
            position = began = (await followers.now())[0]
            wanted: list[tuple[str, int]] = []
            while len(wanted) < 30:
                wanted += await written(engine)
            assert await followed(followers, began, len(wanted)) == wanted
            asked = reading.count
            seen = 0
            while portion := await followers.portion(position, ALL):
                assert portion.count == 1 or portion.size <= 1_000
                seen, position = seen + portion.count, portion.position
            assert seen == len(wanted)
            assert reading.count == asked, "all of it was in memory"

    played(test)


def test_a_follower_that_waits_for_news_is_woken_when_the_service_ends() -> None:
    async def test() -> None:
        async with serving() as (_, followers, _reading), asyncio.timeout(WAIT_S), followers.stream(NOBODY) as stop:
            waiting = asyncio.create_task(followers.news.wait())
            await turns(1)
            await followers.close()
            await waiting
            assert stop.woken.is_set()

    played(test)

"""Notices between processes: said soon, heard by others, coalesced, and back after the server was away."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
import structlog

from tests.postgres import new_database
from tests.runtime.executing import on_loop, turns
from treadle.runtime.cluster.file_notices import FileNotices
from treadle.runtime.cluster.store_ownership import open_channel
from treadle.store.notices import AWAIT, CHANGED, END, INBOX, MISSED, NEWS, WANT, Notices
from treadle.store.postgres import notices as postgres
from treadle.store.postgres.notices import Channel, packed


class Ear:
    """Hears one kind and lets a test wait for it."""

    def __init__(self, notices: Notices, kind: str) -> None:
        self.heard: Counter[str] = Counter()
        self._news = asyncio.Event()
        notices.hear(kind, self._hear)

    def _hear(self, name: str) -> None:
        self.heard[name] += 1
        self._news.set()

    async def until(self, name: str) -> None:
        while name not in self.heard:
            await self._news.wait()
            self._news.clear()


@asynccontextmanager
async def channels(dsn: str, count: int) -> AsyncIterator[list[Channel]]:
    made = [Channel(dsn) for _ in range(count)]
    try:
        for one in made:
            await one.connected.wait()
        yield made
    finally:
        for one in made:
            await one.close()


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with new_database() as made:
        yield made


@on_loop
async def test_what_one_process_says_the_others_hear_and_it_does_not_hear_itself(dsn: str) -> None:
    async with channels(dsn, 3) as (one, two, three):
        ears = [Ear(channel, INBOX) for channel in (one, two, three)]
        one.say(INBOX, "17")
        await ears[1].until("17")
        await ears[2].until("17")
        two.say(INBOX, "18")
        await ears[0].until("18")
        assert ears[0].heard == {"18": 1}


@on_loop
async def test_news_go_out_only_of_runs_that_somebody_wants(dsn: str) -> None:
    async with channels(dsn, 2) as (owner, watcher):
        wanted, news, inbox = Ear(owner, WANT), Ear(watcher, NEWS), Ear(watcher, INBOX)
        owner.say(NEWS, "run-1")
        watcher.say(WANT, "run-2")
        await wanted.until("run-2")
        owner.say(NEWS, "run-1")
        owner.say(NEWS, "run-2")
        owner.say(INBOX, "the end")
        await news.until("run-2")
        await inbox.until("the end")
        assert set(news.heard) == {"run-2"}


@on_loop
async def test_who_waits_for_an_end_is_not_told_of_every_step(dsn: str) -> None:
    async with channels(dsn, 2) as (owner, watcher):
        awaited, news, ends = Ear(owner, AWAIT), Ear(watcher, NEWS), Ear(watcher, END)
        watcher.say(AWAIT, "run-1")
        await awaited.until("run-1")
        owner.say(NEWS, "run-1")
        owner.say(END, "run-2")
        owner.say(END, "run-1")
        await ends.until("run-1")
        assert not news.heard
        assert set(ends.heard) == {"run-1"}


@on_loop
async def test_a_watcher_that_waits_again_and_again_does_not_say_so_again_and_again(dsn: str) -> None:
    async with channels(dsn, 2) as (owner, watcher):
        wanted, inbox = Ear(owner, WANT), Ear(owner, INBOX)
        for _ in range(100):
            watcher.say(WANT, "run-1")
        watcher.say(INBOX, "the end")
        await inbox.until("the end")
        assert wanted.heard == {"run-1": 1}


@on_loop
async def test_a_thousand_notices_at_once_are_a_handful_of_statements(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[int] = []
    speak = Channel._speak

    async def counted(self: Channel, connection: Any, channel: str) -> None:
        said.append(sum(map(len, self._pending.values())))
        await speak(self, connection, channel)

    monkeypatch.setattr(Channel, "_speak", counted)
    async with channels(dsn, 2) as (one, two):
        heard = Ear(two, INBOX)
        for number in range(1_000):
            one.say(INBOX, str(number))
        await heard.until("999")
        assert len(heard.heard) == 1_000
        assert len([count for count in said if count]) <= 3


def test_long_lists_and_long_names_fit_into_what_the_server_takes() -> None:
    names = dict.fromkeys([f"run-{number:040}" for number in range(500)] + ["x" * 9_000, "\0", "ü" * 100])
    payloads = list(packed({NEWS: names}))
    assert max(len(payload.encode()) for payload in payloads) < 8_000
    assert sum(payload.count("run-") for payload in payloads) == 500
    assert "x" * 9_000 not in "".join(payloads)


@on_loop
async def test_a_connection_that_was_ended_is_made_again_and_says_that_something_was_missed(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "AGAIN_FIRST_S", 0.001)
    async with channels(dsn, 2) as (one, two):
        missed, heard = Ear(one, MISSED), Ear(one, INBOX)
        server = await asyncpg.connect(dsn)
        await server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE 'LISTEN%' AND datname = current_database()"
        )
        await server.close()
        await missed.until("")
        while not heard.heard:  # the other one's connection is away as well for a moment
            await two.connected.wait()
            two.say(INBOX, "again")
            await asyncio.wait([asyncio.ensure_future(heard.until("again"))], timeout=0.05)


@on_loop
async def test_no_password_is_logged_while_there_is_no_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    tries: list[Any] = []
    twice = asyncio.Event()
    connect = asyncpg.connect

    async def trying(*args: Any, **options: Any) -> Any:
        tries.append(args)
        if len(tries) > 1:
            twice.set()
        return await connect(*args, **options)

    monkeypatch.setattr(postgres, "AGAIN_FIRST_S", 0.001)
    monkeypatch.setattr(asyncpg, "connect", trying)
    password = "hunter2"
    channel = open_channel(f"postgresql://somebody:{password}@127.0.0.1:1/nothing")
    channel.say(CHANGED)  # into the void
    with structlog.testing.capture_logs() as logs:
        await twice.wait()
        await channel.close()
    shown = capsys.readouterr()
    said = caplog.text + shown.out + shown.err + str(logs)
    assert "the store is polled instead" in said
    assert password not in said


@on_loop
async def test_beside_a_file_a_new_watcher_is_told_to_look_at_once() -> None:
    """Between its look at the store and the owner's hearing of it something may have happened."""
    owner = FileNotices()
    watcher = FileNotices(lambda: owner.address)
    try:
        news, inbox = Ear(watcher, NEWS), Ear(owner, INBOX)
        watcher.say(WANT, "run-1")
        await news.until("")
        watcher.say(INBOX, "0")
        await inbox.until("0")
        owner.say(NEWS, "run-1")
        while news.heard[""] < 2:
            await turns(1)
    finally:
        await watcher.close()
        await owner.close()


@on_loop
async def test_a_notice_that_arrives_while_its_connection_ends_is_nobodys(dsn: str) -> None:
    async with channels(dsn, 1) as (channel,):
        ear = Ear(channel, INBOX)
        ended = await asyncpg.connect(dsn)
        await ended.close()
        channel._received(ended, 1, "", '{"inbox":["3"]}')
        assert not ear.heard

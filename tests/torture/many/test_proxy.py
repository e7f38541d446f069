"""The proxy does what it is told to do to a line: otherwise a torture proves nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.torture.many.proxy import Line, Streams


@asynccontextmanager
async def echoing() -> AsyncIterator[tuple[Line, Streams, list[bytes]]]:
    """A server that repeats what it hears, a line to it, a connection through the line."""
    heard: list[bytes] = []
    ended = asyncio.Event()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(100):
                heard.append(data)
                writer.write(data)
        writer.close()
        ended.set()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    line = Line(server.sockets[0].getsockname()[1])
    streams = await asyncio.open_connection("127.0.0.1", await line.open())
    try:
        yield line, streams, heard
    finally:
        streams[1].transport.abort()
        await line.close()
        server.close()
        await asyncio.wait_for(ended.wait(), 10)


async def said(streams: Streams, text: bytes) -> bytes:
    streams[1].write(text)
    return await asyncio.wait_for(streams[0].readexactly(len(text)), 10)


def test_a_good_line_carries_both_ways() -> None:
    async def play() -> None:
        async with echoing() as (_, streams, _heard):
            assert await said(streams, b"hello") == b"hello"

    asyncio.run(play())


def test_a_hole_holds_everything_and_a_healed_line_goes_on() -> None:
    async def play() -> None:
        async with echoing() as (line, streams, heard):
            await said(streams, b"a")
            line.fail("hole", 0, 0)
            answer = asyncio.ensure_future(said(streams, b"b"))
            await asyncio.wait([answer], timeout=0.1)
            assert not answer.done() and heard == [b"a"]
            line.heal()
            assert await answer == b"b"

    asyncio.run(play())


def test_a_deaf_line_lets_what_is_asked_through_and_no_answer() -> None:
    async def play() -> None:
        async with echoing() as (line, streams, heard):
            await said(streams, b"a")
            line.fail("deaf", 0, 0)
            answer = asyncio.ensure_future(said(streams, b"b"))
            await asyncio.wait([answer], timeout=0.2)
            assert not answer.done() and heard == [b"a", b"b"]
            line.heal()
            assert await answer == b"b"

    asyncio.run(play())


@pytest.mark.parametrize("fault", ["reset", "orphan"])
def test_a_reset_is_noticed_at_once(fault: str) -> None:
    async def play() -> None:
        async with echoing() as (line, streams, _heard):
            await said(streams, b"a")
            line.fail(fault, 0, 0)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await said(streams, b"b")

    asyncio.run(play())


def test_a_swallowed_answer_was_heard_and_its_connection_is_reset() -> None:
    async def play() -> None:
        async with echoing() as (line, streams, heard):
            await said(streams, b"a")
            line.fail("swallow", 0, 1)
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await said(streams, b"b")
            assert heard == [b"a", b"b"]
            assert not line.swallows(), "one was asked for"

    asyncio.run(play())


def test_a_delay_delays() -> None:
    async def play() -> None:
        async with echoing() as (line, streams, _heard):
            line.fail("delay", 60, 0)
            began = asyncio.get_running_loop().time()
            assert await said(streams, b"a") == b"a"
            assert asyncio.get_running_loop().time() - began >= 0.11

    asyncio.run(play())

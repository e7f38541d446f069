"""The way to a server: over TCP without TLS, where most newcomers begin."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from asyncpg.connect_utils import TLSUpgradeProto

from tests.postgres import Database
from tests.runtime.executing import on_loop
from treadle.store.postgres.connect import reach
from treadle.store.postgres.hosts import way_to
from treadle.store.postgres.notices import Channel


@asynccontextmanager
async def over_tcp(dsn: str) -> AsyncIterator[str]:
    """The same database at 127.0.0.1, whatever it listens on, for who says nothing about TLS."""
    parts = urlsplit(dsn)
    host, port = parse_qs(parts.query).get("host", [parts.hostname or "127.0.0.1"])[0], parts.port or 5432

    relays: list[asyncio.Task[None]] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # whoever asked is gone
            while part := await reader.read(65_536):
                writer.write(part)
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = (
            asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
            if host.startswith("/")
            else asyncio.open_connection(host, port)
        )
        answers, questions = await there
        await asyncio.gather(pump(reader, questions), pump(answers, writer))

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relays.append(asyncio.ensure_future(relay(reader, writer)))

    async with await asyncio.start_server(begin, "127.0.0.1", 0) as server:
        here = server.sockets[0].getsockname()[1]
        who = f"{parts.username or 'postgres'}{f':{parts.password}' if parts.password else ''}"
        yield f"postgresql://{who}@127.0.0.1:{here}{parts.path}"
        await asyncio.gather(*relays)


@on_loop
async def test_notices_that_end_while_they_ask_for_tls_leave_nothing_on_the_screen(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.collect()  # what others have left is not ours
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    closed: list[asyncio.Task[None]] = []

    async with over_tcp(database.dsn) as dsn:
        way_to(dsn).is_pooled = False  # nobody has to look, which takes a connection more
        channel = Channel(dsn)

        def asked(_protocol: Any, _transport: Any) -> None:
            closed.append(asyncio.ensure_future(channel.close()))

        monkeypatch.setattr(TLSUpgradeProto, "connection_made", asked)
        await asyncio.wait([channel._living])
        await asyncio.gather(*closed)
        monkeypatch.undo()
        gc.collect()
    assert len(closed) == 1
    assert complaints == []


@on_loop
async def test_who_is_interrupted_on_the_way_to_a_silent_server_need_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("treadle.store.postgres.connect.ALMOST_S", 0.01)
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        while await reader.read(100):
            pass
        writer.close()
        await writer.wait_closed()
        ended.set()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reaching = asyncio.ensure_future(reach(f"postgresql://somebody@127.0.0.1:{port}/nothing"))
        await arrived.wait()
        reaching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reaching
        await ended.wait()

"""Failover with real servers: what was acknowledged is there, and an old primary that comes back is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeVar

import asyncpg
import pytest
import structlog

from tests.contract.test_postgres_hosts import address, wait_for_standby
from tests.postgres_server import STANDBY, USER, Server, binaries
from tests.runtime.cores import chain
from tests.runtime.executing import on_loop, turns
from treadle import Engine, EngineSettings, connect
from treadle.errors import StoreGoneBack
from treadle.runtime.run import Run
from treadle.runtime.surroundings import patience
from treadle.store.postgres.hosts import way_to
from treadle.testing.world.store_names import NoPostgres

SETTINGS = EngineSettings(lease_ms=3_000, grace_ms=1_000)
T = TypeVar("T")


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """A primary whose commits wait for its standby."""
    with ExitStack() as stack:
        try:
            primary = Server(binaries())
        except NoPostgres as problem:
            pytest.skip(str(problem))
        stack.callback(primary.close)
        standby = primary.standby()
        stack.callback(standby.close)
        asyncio.run(wait_for_standby(primary, STANDBY))
        yield primary, standby


async def a() -> dict[str, bool]:
    return {"ok": True}


async def fail_over(primary: Server, standby: Server) -> None:
    """The primary dies, its standby is promoted."""
    await aside(primary.crash)
    await aside(standby.promote)


async def come_back(primary: Server) -> None:
    """The old primary, writable: it waits for no standby any more."""
    primary.configure(synchronous_standby_names="")
    await aside(primary.start)


async def aside(work: Callable[[], T]) -> T:
    """So that the engines go on meanwhile."""
    return await asyncio.to_thread(work)


async def count_runs(server: Server) -> int:
    connection = await asyncpg.connect(server.address())
    try:
        return int(await connection.fetchval("SELECT count(*) FROM runs"))
    finally:
        await connection.close()


async def finish(engine: Engine) -> Run:
    run = await engine.start("chain")
    await run.result()
    return run


@on_loop
async def test_what_was_acknowledged_survives_and_the_old_primary_is_refused(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, standby = servers
    dsn = address(primary, standby)
    async with Engine(dsn, functions={"a": a}, settings=SETTINGS) as engine, connect(dsn) as client:
        await engine.deploy(chain("a"))
        before = [await finish(engine) for _ in range(10)]
        await fail_over(primary, standby)
        after = [await finish(engine) for _ in range(10)]
        acknowledged = {run.id for run in (*before, *after)}
        assert {row.run for row in await client.runs()} == acknowledged

        await come_back(primary)
        kept = await count_runs(primary)
        monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
        with structlog.testing.capture_logs() as logs:
            await aside(standby.crash)  # so that nobody is left but the old one
            with pytest.raises(StoreGoneBack, match="on timeline 1") as refused:
                await until_refused(client)
        assert "is an old primary that has come back" in str(refused.value)
        assert "make it a standby of the new primary (pg_rewind, pg_basebackup)" in str(refused.value)
        assert {line["log_level"] for line in logs if "gone back" in line["event"]} == {"error"}
        monkeypatch.undo()

        await aside(standby.start)
        acknowledged.add((await finish(engine)).id)
        assert {row.run for row in await client.runs(limit=100)} == acknowledged
        assert await count_runs(primary) == kept, "nothing was written there"


async def until_refused(client: Any) -> None:
    """Asks until the answer is neither rows nor that nobody answers."""
    while True:
        try:
            await client.runs()
        except StoreGoneBack:
            raise
        except Exception:
            await turns(1)


class Switch:
    """One address, as of a proxy or a moving IP: where it leads is changed behind everybody's back."""

    def __init__(self, target: Server) -> None:
        self.target = target
        self._relays: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._take, "127.0.0.1", 0) as listening:
            yield f"postgresql://{USER}@127.0.0.1:{listening.sockets[0].getsockname()[1]}/postgres"
            self.lead_to(self.target)
            await asyncio.gather(*self._relays)

    def lead_to(self, target: Server) -> None:
        """From now on; whoever is connected is cut off."""
        self.target = target
        for writer in self._writers:
            writer.transport.abort()

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.ensure_future(self._relay(reader, writer))
        self._relays.add(relay)
        relay.add_done_callback(self._relays.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, questions = await asyncio.open_connection("127.0.0.1", self.target.port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, questions}
        await asyncio.gather(_pump(reader, questions), _pump(answers, writer))
        self._writers -= {writer, questions}


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.transport.abort()


@on_loop
async def test_behind_one_address_the_old_primary_is_refused_until_it_leads_elsewhere(
    servers: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    primary, standby = servers
    switch = Switch(primary)
    async with switch.open() as dsn, Engine(dsn, functions={"a": a}, settings=SETTINGS) as engine:
        await engine.deploy(chain("a"))
        await finish(engine)
        await fail_over(primary, standby)
        switch.lead_to(standby)
        await finish(engine)
        await come_back(primary)
        kept = await count_runs(primary)
        async with connect(dsn) as client:
            switch.lead_to(primary)
            monkeypatch.setattr(patience, "PATIENCE_S", 0.0)
            with pytest.raises(StoreGoneBack):
                await until_refused(client)
            with pytest.raises(StoreGoneBack):
                await connect(dsn, wait_s=0).__aenter__()
            monkeypatch.undo()
            switch.lead_to(standby)
            await finish(engine)
            assert len(await client.runs()) == 3
        assert await count_runs(primary) == kept


@on_loop
async def test_a_process_that_has_just_begun_asks_all_servers_first(servers: tuple[Server, Server]) -> None:
    primary, standby = servers
    async with Engine(address(primary), functions={"a": a}) as engine:
        await engine.deploy(chain("a"))
        await finish(engine)
    await fail_over(primary, standby)
    third = await aside(standby.standby)
    try:
        async with Engine(address(standby), functions={"a": a}) as engine:
            await finish(engine)
        await come_back(primary)
        fresh = address(primary, standby)
        async with connect(fresh) as client:
            assert len(await client.runs()) == 2
        assert way_to(fresh).witness.timeline == 2
        # The new primary is not among them; a standby of it is.
        with pytest.raises(StoreGoneBack, match="old primary"):
            await connect(address(primary, third), wait_s=0).__aenter__()
    finally:
        third.close()


@on_loop
async def test_connections_to_a_primary_that_another_has_replaced_are_given_up(servers: tuple[Server, Server]) -> None:
    """The old one was not killed, it was forgotten: both take writes."""
    primary, standby = servers
    await wait_for_standby(primary, "")
    dsn = address(primary, standby)
    async with Engine(dsn, functions={"a": a}, settings=SETTINGS) as engine:
        await engine.deploy(chain("a"))
        await finish(engine)
        await aside(standby.promote)
        kept = await count_runs(primary)
        there = address(standby)
        async with connect(there) as client:
            assert len(await client.runs()) == kept
        seen = way_to(there).witness.seen
        assert seen is not None
        way_to(dsn).witness.note(seen)  # as a new connection of the engine would
        await finish(engine)
        assert (await count_runs(standby), await count_runs(primary)) == (kept + 1, kept)

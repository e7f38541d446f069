"""An address with several servers, as libpq reads it: whichever of them takes writes is the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from tests.postgres_server import STANDBY, USER, Server, binaries, free_port
from tests.runtime.cores import chain
from tests.runtime.executing import on_loop
from treadle import Engine, connect
from treadle.cli.upkeep import doctor_postgres
from treadle.errors import StorePlaceError, StoreUnavailable
from treadle.runtime.operate.moving import move
from treadle.runtime.worker import Worker
from treadle.store.places import StoreLocation
from treadle.store.postgres import hosts
from treadle.store.postgres.connect import reach
from treadle.store.postgres.hosts import way_to
from treadle.store.postgres.notices import Channel
from treadle.testing.world.store_names import NoPostgres

HELLO = chain("a")


async def a() -> dict[str, bool]:
    return {"ok": True}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    """A primary and its standby."""
    try:
        primary = Server(binaries())
    except NoPostgres as problem:
        pytest.skip(str(problem))
    try:
        standby = primary.standby()
        try:
            yield primary, standby
        finally:
            standby.close()
    finally:
        primary.close()


async def wait_for_standby(server: Server, name: str) -> None:
    """Commits wait for it from now on; "": for none."""
    server.configure(synchronous_standby_names=name)
    server.reload()
    while True:
        connection = await asyncpg.connect(server.address())
        try:
            if await connection.fetchval("SHOW synchronous_standby_names") == name:
                return
        finally:
            await connection.close()


def address(*servers: Server | int, database: str = "postgres") -> str:
    """Of several servers; a number is a port where nobody listens."""
    ports = [one if isinstance(one, int) else one.port for one in servers]
    return f"postgresql://{USER}@{','.join(f'127.0.0.1:{port}' for port in ports)}/{database}"


@on_loop
async def test_the_server_that_takes_writes_is_found_wherever_it_stands(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    nobody = free_port()
    for servers in ((standby, primary), (nobody, standby, primary), (primary, standby), (standby, nobody, primary)):
        connection = await reach(address(*servers))
        assert await connection.fetchval("SELECT inet_server_port()") == primary.port
        await connection.close()


@on_loop
async def test_engine_worker_client_doctor_and_notices_take_several_servers(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    dsn = address(free_port(), standby, primary)
    async with Engine(dsn, functions={"a": a}) as engine:
        await engine.deploy(HELLO)
        await (await engine.start("chain")).result()
        async with Worker(dsn, queues={"any": 1}), connect(dsn) as client:
            assert len(await client.nodes()) == 2
            assert [row.status.value for row in await client.runs()] == ["completed"]
    channel = Channel(dsn)
    await channel.connected.wait()
    await channel.close()


@on_loop
async def test_the_doctor_looks_at_every_server_and_at_what_a_failover_may_lose(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    nobody = free_port()
    dsn = address(nobody, standby, primary)
    found = await doctor_postgres.lines(StoreLocation(dsn))
    assert found[0] == ("store", "ok", dsn.replace(f"{USER}@", ""), "")
    servers = [(line.verdict, line.finding) for line in found if line.check == "server"]
    assert [verdict for verdict, _ in servers] == ["warn", "ok", "ok"]
    assert [finding.partition(": ")[2] for _, finding in servers][1:] == [
        "standby on timeline 1",
        "primary on timeline 1",
    ]
    (standbys,) = [line for line in found if line.check == "standbys"]
    assert (standbys.verdict, standbys.remedy) == ("warn", "name them in synchronous_standby_names")
    await wait_for_standby(primary, STANDBY)
    try:
        found = await doctor_postgres.lines(StoreLocation(address(primary)))
        told = [line.finding for line in found if line.check == "standbys"]
        assert told == [f"1 connected, commits wait for {STANDBY}"]
    finally:
        await wait_for_standby(primary, "")


@on_loop
async def test_the_last_primary_is_tried_first(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    dsn = address(standby, free_port(), primary)
    written = [host.port for host in way_to(dsn).in_order() if host]
    assert (written[0], written[2]) == (standby.port, primary.port)
    await (await reach(dsn)).close()
    assert [host.port for host in way_to(dsn).in_order() if host] == [primary.port, standby.port, written[1]]


@on_loop
async def test_without_a_primary_every_server_says_why_not(pair: tuple[Server, Server]) -> None:
    _, standby = pair
    nobody = free_port()
    with pytest.raises(StoreUnavailable) as refused:
        await connect(address(nobody, standby), wait_s=0).__aenter__()
    assert f"127.0.0.1:{nobody}: " in str(refused.value)
    assert f"127.0.0.1:{standby.port}: it only reads" in str(refused.value)
    with pytest.raises(StoreUnavailable, match="it only reads: name the primary, or promote a standby"):
        await connect(address(standby), wait_s=0).__aenter__()


@on_loop
async def test_a_server_that_does_not_answer_takes_its_share_of_the_time(
    pair: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "CONNECT_S", 0.4)
    primary, _ = pair
    async with silent() as port:
        connection = await reach(address(port, primary))
        assert await connection.fetchval("SELECT inet_server_port()") == primary.port
        await connection.close()


@asynccontextmanager
async def silent() -> AsyncIterator[int]:
    """A port where connections are taken and nothing is ever said."""
    gone = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        gone.set()


@on_loop
async def test_a_refused_password_is_not_tried_elsewhere(pair: tuple[Server, Server]) -> None:
    primary, standby = pair
    with pytest.raises(StorePlaceError, match="create the database first"):
        await connect(address(primary, standby, database="nowhere")).__aenter__()


@on_loop
async def test_a_store_is_moved_to_an_address_with_several_servers(
    pair: tuple[Server, Server], tmp_path: object
) -> None:
    primary, standby = pair
    connection = await reach(address(primary))
    await connection.execute("CREATE DATABASE moved")
    await connection.close()
    file = f"{tmp_path}/t.db"
    async with Engine(file, functions={"a": a}) as engine:
        await engine.deploy(HELLO)
        await (await engine.start("chain")).result()
    target = address(standby, primary, database="moved")
    await move(StoreLocation(file), StoreLocation(target))
    async with connect(target) as client:
        assert len(await client.runs()) == 1


def test_hosts_of_the_environment_are_tried_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "red,blue")
    monkeypatch.setenv("PGPORT", "5432,5433")
    assert [str(host) for host in hosts.Way("postgresql:///shop").in_order()] == ["red:5432", "blue:5433"]
    assert [str(host) for host in hosts.Way("postgresql://green/shop").in_order()] == ["green"]
    monkeypatch.setenv("PGHOST", "red")
    assert hosts.Way("postgresql:///shop").in_order() == [None]

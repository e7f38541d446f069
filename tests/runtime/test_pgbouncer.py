"""PgBouncer in front of the database: session mode, and transaction mode, where nothing of a session stays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from tests.contract.test_postgres_hosts import wait_for_standby
from tests.pgbouncer import NoPgBouncer, PgBouncer
from tests.postgres_server import STANDBY, Server, binaries
from tests.runtime.cores import calls, chain
from tests.runtime.executing import on_loop
from tests.runtime.test_failover import Switch, come_back, count_runs, fail_over, finish, until_refused
from treadle import Engine, EngineSettings, connect
from treadle.cli.upkeep import doctor_postgres
from treadle.errors import StoreGoneBack, StorePlaceError
from treadle.language import load_value
from treadle.runtime.surroundings import patience
from treadle.runtime.worker import Worker
from treadle.store.places import StoreLocation
from treadle.store.postgres import server_facts
from treadle.store.postgres.connect import reach
from treadle.store.postgres.hosts import way_to
from treadle.store.postgres.notices import Channel
from treadle.testing.world.store_names import NoPostgres

SETTINGS = EngineSettings(lease_ms=5_000, grace_ms=1_000)
RUNS = 20


async def a() -> dict[str, bool]:
    return {"ok": True}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    try:
        made = Server(binaries())
    except NoPostgres as problem:
        pytest.skip(str(problem))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(params=["transaction", "session"])
def bouncer(request: pytest.FixtureRequest, server: Server) -> Iterator[PgBouncer]:
    yield from _bouncer(server.port, request.param)


def _bouncer(port: int, mode: str, **settings: str) -> Iterator[PgBouncer]:
    try:
        made = PgBouncer(port, mode, binaries()[1], **settings)
    except NoPgBouncer as problem:
        pytest.skip(str(problem))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def dsn(bouncer: PgBouncer, server: Server) -> Iterator[str]:
    """A database of its own, through the pooler."""
    name = f"through_{bouncer.port}"

    async def say(statement: str) -> None:
        connection = await asyncpg.connect(server.address())
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    asyncio.run(say(f"CREATE DATABASE {name}"))
    yield bouncer.address(name)
    asyncio.run(say(f"DROP DATABASE {name} WITH (FORCE)"))


@on_loop
async def test_engines_workers_and_clients_work_through_it(dsn: str) -> None:
    queued = load_value({"workflow": "queued", "nodes": {"a": {**calls("a"), "queue": "q"}}}).require()
    first = Engine(dsn, functions={"a": a}, settings=SETTINGS, name="first")
    second = Engine(dsn, functions={"a": a}, settings=SETTINGS, name="second")
    worker = Worker(dsn, queues={"q": 4}, functions={"a": a}, settings=SETTINGS)
    async with first, second, worker, connect(dsn) as client:
        await first.deploy(chain("a"))
        await first.deploy(queued)
        asked = [(engine, name) for engine in (first, second) for name in ("chain", "queued")] * RUNS
        runs = [await engine.start(name) for engine, name in asked]
        await asyncio.gather(*(run.result() for run in runs))
        assert {row.status.value for row in await client.runs(limit=500)} == {"completed"}
        assert len(await client.nodes()) == 3
        await (await client.start("chain")).result()


@on_loop
async def test_nothing_of_ours_stays_in_a_session_that_others_get(dsn: str) -> None:
    async with Engine(dsn, functions={"a": a}, settings=SETTINGS) as engine:
        await engine.deploy(chain("a"))
        await finish(engine)
        other = await asyncpg.connect(dsn, statement_cache_size=0)
        try:
            assert await other.fetchval("SHOW enable_seqscan") == "on"
            assert await other.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''") == 0
            assert await other.fetchval("SELECT count(*) FROM pg_listening_channels()") == 0
        finally:
            await other.close()


@on_loop
async def test_a_pooler_is_seen_and_notices_say_that_there_are_none(dsn: str, server: Server) -> None:
    connection = await reach(dsn)
    assert connection.is_pooled
    await connection.close()
    direct = await reach(server.address())
    assert not direct.is_pooled
    await direct.close()
    said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    channel = Channel(dsn, said.set_result)
    assert "no LISTEN" in await said
    assert "pooler" in {line.check for line in await doctor_postgres.lines(StoreLocation(dsn))}
    assert not channel.connected.is_set()
    await channel.close()


@on_loop
async def test_a_pooler_that_refuses_the_schema_is_told_with_the_remedy(dsn: str) -> None:
    with pytest.raises(StorePlaceError, match=r"ALTER ROLE … SET search_path") as refused:
        await connect(f"{dsn}?search_path=billing", create=True).__aenter__()
    assert "search_path" in refused.value.problem


def test_a_pooler_that_drops_the_schema_is_refused(server: Server) -> None:
    async def story(bouncer: PgBouncer) -> None:
        with pytest.raises(StorePlaceError, match="does not pass on search_path=billing"):
            await connect(f"{bouncer.address()}?search_path=billing", create=True).__aenter__()

    for bouncer in _bouncer(server.port, "transaction", ignore_startup_parameters="search_path"):
        asyncio.run(story(bouncer))


def test_an_old_primary_behind_it_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connections to the pooler outlive the server behind it: they are asked again and again."""
    monkeypatch.setattr(server_facts, "ASK_AGAIN_S", 0.0)
    primary = Server(binaries())
    standby = primary.standby()

    async def story() -> None:
        await wait_for_standby(primary, STANDBY)
        switch = Switch(primary)
        async with switch.open() as there:
            port = int(there.partition("@")[2].partition(":")[2].partition("/")[0])
            for bouncer in await asyncio.to_thread(lambda: [*_opened(port)]):
                try:
                    await _old_primary(switch, bouncer, primary, standby, monkeypatch)
                finally:
                    await asyncio.to_thread(bouncer.close)

    try:
        asyncio.run(story())
    finally:
        standby.close()
        primary.close()


def _opened(port: int) -> Iterator[PgBouncer]:
    try:
        yield PgBouncer(port, "transaction", binaries()[1])
    except NoPgBouncer as problem:
        pytest.skip(str(problem))


async def _old_primary(
    switch: Switch, bouncer: PgBouncer, primary: Server, standby: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    dsn = bouncer.address()
    async with Engine(dsn, functions={"a": a}, settings=SETTINGS) as engine, connect(dsn) as client:
        await engine.deploy(chain("a"))
        await finish(engine)
        await fail_over(primary, standby)
        switch.lead_to(standby)
        await finish(engine)
        assert way_to(dsn).witness.timeline == 2
        await come_back(primary)
        kept = await count_runs(primary)
        switch.lead_to(primary)
        with monkeypatch.context() as impatient, pytest.raises(StoreGoneBack):
            impatient.setattr(patience, "PATIENCE_S", 0.0)
            await until_refused(client)
        switch.lead_to(standby)
        await finish(engine)
        assert (await count_runs(primary), len(await client.runs())) == (kept, 3)

"""Several engines on one store: any of them takes any command, whoever owns the run, with notices and without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import asyncpg
import pytest

import treadle
from tests.postgres import new_database
from tests.runtime.cores import chain, one
from tests.runtime.executing import on_loop
from treadle.errors import CommandRefused, EngineStopped
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.client import Client
from treadle.runtime.cluster import store_ownership as holding
from treadle.runtime.connecting import connect
from treadle.runtime.engine import Engine, EngineSettings
from treadle.runtime.schedule.definition import Schedule
from treadle.store.notices import Silence
from treadle.store.rows import shard_of

ASKS = one("asks", {"kind": "human", "form": {"type": "object", "required": ["ok"]}})
SETTINGS = EngineSettings(lease_ms=2_000, grace_ms=1_000)


async def a() -> dict[str, bool]:
    return {"ok": True}


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with new_database() as made:
        yield made


@pytest.fixture(params=["notices", "silence"])
def place(request: pytest.FixtureRequest, dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database; with `silence` every notice is dropped, and everything is only slower."""
    if request.param == "silence":
        monkeypatch.setattr(holding, "open_channel", lambda _dsn: Silence())
        monkeypatch.setattr("treadle.runtime.connecting.open_channel", lambda _dsn: Silence())
    return dsn


@asynccontextmanager
async def engines(place: str, count: int) -> AsyncIterator[list[Engine]]:
    """So many, each with its share."""
    async with AsyncExitStack() as stack:
        opened = []
        for number in range(count):
            engine = Engine(place, functions={"a": a}, settings=SETTINGS, name=f"node-{number}")
            opened.append(await stack.enter_async_context(engine))
        moved = asyncio.Event()
        for engine in opened:
            told = engine._core.on_moved
            engine._core.on_moved = lambda told=told: (told(), moved.set())  # type: ignore[assignment, func-returns-value, misc]
        while not all(len(engine._core.shards.owned) == 64 // count for engine in opened):
            await moved.wait()
            moved.clear()
        yield opened


def owned_by(engine: Engine) -> str:
    """An id of a run that this engine owns."""
    while True:
        run = Client.new_run_id()
        if engine._core.shards.owns(run):
            return run


@on_loop
async def test_any_node_takes_any_command_for_a_run_that_another_owns(place: str) -> None:
    async with engines(place, 2) as (here, there):
        await here.deploy(ASKS)
        await here.deploy(chain("a"))
        run_id = owned_by(there)
        run = await here.start("asks", run_id=run_id)
        assert (await run.info()).status is RunStatus.RUNNING
        assert (await there.run(run_id).state()).tokens == (await run.state()).tokens
        [gate] = await here.gates(run_id)
        with pytest.raises(CommandRefused, match="SCHEMA"):
            await here.complete_gate(run_id, gate.token, {})
        ending = asyncio.create_task(run.wait())
        await here.complete_gate(run_id, gate.token, {"ok": True}, by="Ada")
        assert (await ending).status is RunStatus.COMPLETED
        assert [event.seq async for event in here.run(run_id).events()] == list(range(1, (await run.info()).seq + 1))
        with pytest.raises(CommandRefused, match="INVALID_STATE"):
            await run.pause()


@on_loop
async def test_a_client_reaches_every_node_and_hears_of_ends(place: str) -> None:
    async with engines(place, 2) as nodes, connect(place) as client:
        await client.deploy(chain("a"))
        runs = [await client.start("chain", run_id=owned_by(node)) for node in nodes for _ in range(2)]
        ended = await asyncio.gather(*(run.wait() for run in runs))
        assert {end.status for end in ended} == {RunStatus.COMPLETED}
        listed = await client.nodes()
        assert sorted(node.node for node in listed) == ["node-0", "node-1"]
        assert sorted(shard for node in listed for shard in node.shards) == list(range(64))
        assert all(node.coordinates and node.queues is None for node in listed)


@on_loop
async def test_the_same_key_is_the_same_run_wherever_it_is_asked_for(place: str) -> None:
    async with engines(place, 2) as nodes:
        await nodes[0].deploy(ASKS)
        asked = [
            nodes[number % 2].start("asks", key="once", run_id=owned_by(nodes[number // 2 % 2])) for number in range(8)
        ]
        assert len({run.id for run in await asyncio.gather(*asked)}) == 1


@on_loop
async def test_a_start_without_an_id_is_decided_where_it_is_asked(place: str) -> None:
    async with engines(place, 2) as nodes:
        await nodes[0].deploy(chain("a"))
        for node in nodes:
            run = await node.start(chain("a"))
            assert node._core.shards.owns(run.id)


@on_loop
async def test_what_was_deployed_at_one_node_can_be_started_at_another_at_once(
    place: str, request: pytest.FixtureRequest
) -> None:
    async with engines(place, 2) as (here, there):
        name = request.node.callspec.id
        await here.deploy(chain("a", name=name, input_schema={"type": "object", "required": ["n"]}))
        assert (await (await there.start(name, {"n": 1})).wait()).status is RunStatus.COMPLETED
        await here.deploy(chain("a", name=name))
        assert (await (await there.start(name)).wait()).status is RunStatus.COMPLETED


@on_loop
async def test_a_watch_goes_on_when_the_run_moves(place: str) -> None:
    """The second node takes half of the shards while somebody waits at the first."""
    async with engines(place, 1) as [first]:
        await first.deploy(ASKS)
        runs = [await first.start("asks") for _ in range(6)]
        waiting = [asyncio.create_task(run.wait()) for run in runs]
        second = Engine(place, functions={"a": a}, settings=SETTINGS, name="second")
        async with second:
            moved = asyncio.Event()
            second._core.on_moved = moved.set
            while not any(second._core.shards.owns(run.id) for run in runs):
                await moved.wait()
                moved.clear()
            for run in runs:
                await second.complete_gate(run.id, TokenId(1), {"ok": True})
            assert {(await one).status for one in waiting} == {RunStatus.COMPLETED}


@on_loop
async def test_a_schedule_is_carried_out_by_one_node_and_its_runs_belong_to_it(
    place: str, request: pytest.FixtureRequest
) -> None:
    async with engines(place, 2) as nodes:
        await nodes[0].deploy(chain("a"))
        name = request.node.name
        heard = asyncio.Event()
        for node in nodes:
            node.listen(heard.set)
        await nodes[1].put_schedule(Schedule(name=name, workflow="chain", every_ms=1_000, overlap="allow"))
        while len(rows := await nodes[0].runs(tag=f"schedule:{name}")) < 2:
            await heard.wait()
            heard.clear()
        await nodes[0].remove_schedule(name)
        assert len({row.idempotency_key for row in rows}) == len(rows)
        assert {shard_of(row.run, 64) for row in rows} == {shard_of(RunId(name), 64)}


@on_loop
async def test_without_a_node_a_command_is_kept_and_says_so(dsn: str) -> None:
    async with connect(dsn) as client:
        assert not await client.is_owned()
        await client.deploy(chain("a"))
        with pytest.raises(EngineStopped, match="is kept"):
            await client.start("chain", run_id=(run := client.new_run_id()), tags=["kept"])
        [nobody] = await client.nodes()
        assert (nobody.node, nobody.requests) == ("", 1)
        async with engines(dsn, 1) as [engine]:
            heard = asyncio.Event()
            engine.listen(heard.set)
            while not await engine.runs(statuses=[RunStatus.COMPLETED], tag="kept"):
                await heard.wait()  # the engine has just begun to read what it was asked
                heard.clear()
            assert (await engine.run(run).wait()).status is RunStatus.COMPLETED
            assert await client.is_owned()


@on_loop
async def test_notices_come_back_after_the_server_has_ended_every_connection(dsn: str) -> None:
    async with engines(dsn, 2) as (here, there):
        await here.deploy(ASKS)
        run = await here.start("asks", run_id=owned_by(there))
        ending = asyncio.create_task(run.wait())
        server: Any = await asyncpg.connect(dsn)
        await server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await server.close()
        await here.complete_gate(run.id, TokenId(1), {"ok": True})
        assert (await ending).status is RunStatus.COMPLETED


def test_code_without_async_uses_a_database_as_it_uses_a_file(dsn: str) -> None:
    with treadle.open(dsn, functions={"a": a}) as engine:
        assert engine.start(chain("a")).wait().status is RunStatus.COMPLETED
        with connect(dsn) as client:
            assert client.start("chain").wait().status is RunStatus.COMPLETED
            assert len(client.nodes()) == 1

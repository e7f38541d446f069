"""Commands of a request that may come again: carried out once, answered alike, after a crash and from every node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import new_database
from tests.runtime.cores import FaultyStore, one, running
from tests.runtime.executing import on_loop, turns
from tests.runtime.test_shared_engines import engines, owned_by
from treadle.errors import CommandRefused
from treadle.runtime.client import Client
from treadle.runtime.connecting import connect
from treadle.runtime.engine import Engine
from treadle.runtime.run import Run
from treadle.store.port import Batch, Fence, OutboxRow

ASKS = one("asks", {"kind": "human"})


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with new_database() as made:
        yield made


async def signals(run: Run) -> int:
    return sum(event.type == "signal.received" for event in await run.history())


async def sent(client: Client, run: str, id: str, print: str = "f") -> bool:
    """A request that sends two signals; whether it was answered before."""
    with client.once(id, print) as once:
        await client.run(run).signal("one")
        await client.run(run).signal("two")
    return once.replayed


async def started(client: Client, id: str, **given: Any) -> tuple[str, bool]:
    with client.once(id, "f") as once:
        run = await client.start("asks", **given)
    return run.id, once.replayed


@on_loop
async def test_a_request_that_comes_again_changes_nothing_and_is_answered_alike(tmp_path: Path) -> None:
    async with Engine(tmp_path / "t.db") as engine:
        await engine.deploy(ASKS)
        first, replayed = await started(engine, "s", key="k")
        assert not replayed
        assert await started(engine, "s", key="k") == (first, True)
        assert await started(engine, "other", key="k") == (first, False), "the run's key leads to the same run"
        assert await started(engine, "other", key="k") == (first, True)
        assert await sent(engine, first, "a") is False
        assert await sent(engine, first, "a") is True
        assert await signals(engine.run(first)) == 2
        assert await sent(engine, first, "b") is False
        assert await signals(engine.run(first)) == 4
    async with Engine(tmp_path / "t.db") as engine:
        assert await sent(engine, first, "a") is True, "after a restart"
        assert await started(engine, "s", key="k") == (first, True)
        assert await signals(engine.run(first)) == 4
        async with connect(tmp_path / "t.db") as client:
            assert await sent(client, first, "a") is True, "and from another process"
            assert await sent(client, first, "c") is False
        assert await sent(engine, first, "c") is True
        assert await signals(engine.run(first)) == 6


@on_loop
async def test_a_rejection_is_remembered(tmp_path: Path) -> None:
    async with Engine(tmp_path / "t.db") as engine:
        run = await engine.start(ASKS)
        for replayed in (False, True):
            with engine.once("r", "f") as once, pytest.raises(CommandRefused):
                await run.complete_gate(99)
            assert once.replayed is replayed
        before = (await run.info()).seq
        with engine.once("r2", "f"), pytest.raises(CommandRefused):
            await run.complete_gate(99)
        assert (await run.info()).seq == before


@on_loop
async def test_the_same_name_for_something_else_is_refused(tmp_path: Path) -> None:
    async with Engine(tmp_path / "t.db") as engine, connect(tmp_path / "t.db") as client:
        run = await engine.start(ASKS)
        await sent(engine, run.id, "a")
        for face in (engine, client):
            with pytest.raises(CommandRefused, match="IDEMPOTENCY_MISMATCH"):
                await sent(face, run.id, "a", print="g")
        assert await signals(run) == 2


@on_loop
async def test_a_caller_that_goes_away_while_its_command_is_written_finds_it_when_it_comes_again() -> None:
    class Slow(FaultyStore):
        gate = asyncio.Event()

        async def commit(self, batch: Batch, *fences: Fence) -> list[OutboxRow]:
            if batch.answers:
                await self.gate.wait()
            return await super().commit(batch, *fences)

    async with running(Slow(), {}) as here:
        run = await here.client.start(ASKS)
        first = asyncio.create_task(sent(here.client, run.id, "a"))
        await turns(20)
        first.cancel()
        await asyncio.wait([first])
        second = asyncio.create_task(sent(here.client, run.id, "a"))
        await turns(20)
        Slow.gate.set()
        assert await second is True
        assert await signals(run) == 2


@on_loop
async def test_a_crash_between_two_commands_repeats_only_the_second(tmp_path: Path) -> None:
    async with Engine(tmp_path / "t.db") as engine:
        run = await engine.start(ASKS)
        with engine.once("a", "f"):
            await run.signal("one")  # and here the server dies
        assert await sent(engine, run.id, "a") is True
        names = [event.name for event in await run.history() if event.type == "signal.received"]  # type: ignore[attr-defined]
        assert names == ["one", "two"]


@on_loop
async def test_every_node_gives_the_first_answer(dsn: str) -> None:
    async with engines(dsn, 2) as (here, there), connect(dsn) as client:
        await here.deploy(ASKS)
        for owner in (here, there):
            run = await here.start("asks", run_id=owned_by(owner))
            assert await sent(here, run.id, "a") is False
            for face in (there, client, here):
                assert await sent(face, run.id, "a") is True
            assert await signals(run) == 2
            for number in range(8):
                await asyncio.gather(*(sent(face, run.id, f"b{number}") for face in (here, there, client, here)))
                assert await signals(run) == 2 * (2 + number), "at the same moment from everywhere"
        for id in ("s1", "s2", "s3", "s4"):
            made = [await started(face, id) for face in (here, there, client)]
            assert made == [(made[0][0], False), (made[0][0], True), (made[0][0], True)]

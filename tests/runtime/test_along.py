"""An entry of a log that is written in the transaction of a decision: once, whatever happens to the store, or not at
all."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, one, running
from tests.runtime.executing import on_loop
from treadle.errors import CommandRefused
from treadle.runtime.client import Client
from treadle.runtime.connecting import connect
from treadle.runtime.engine import Engine
from treadle.runtime.service.records import Entry

ASKS = one("asks", {"kind": "human"})


def entry(text: str) -> Entry:
    return Entry("audit", "me", text, 5)


async def heard(client: Client) -> list[Any]:
    assert (await client.records.verify_log("audit")).problems == []
    return [found.body for found in reversed(await client.records.entries("audit"))]


@on_loop
async def test_the_first_command_takes_the_entry_into_its_transaction() -> None:
    store = FaultyStore()
    async with running(store, {}) as here:
        await here.client.deploy(ASKS)
        with here.client.along(entry("one")) as along:
            run = await here.client.start("asks")
            assert along.is_written
            await run.signal("s")
        assert await heard(here.client) == ["one"]
        batch = next(batch for batch in store.batches if batch.entries)
        assert [commit.run for commit in batch.commits] == [run.id]


@on_loop
async def test_of_two_commands_at_once_one_takes_it() -> None:
    async with running(FaultyStore(), {}) as here:
        await here.client.deploy(ASKS)
        with here.client.along(entry("one")) as along:
            await asyncio.gather(*(here.client.start("asks") for _ in range(3)))
        assert along.is_written
        assert await heard(here.client) == ["one"]


@on_loop
async def test_a_refused_command_leaves_the_entry_to_the_next_one() -> None:
    async with running(FaultyStore(), {}) as here:
        await here.client.deploy(ASKS)
        with here.client.along(entry("one")) as along:
            with pytest.raises(CommandRefused):
                await here.client.start("unknown")
            assert not along.is_written
            assert await heard(here.client) == []
            await here.client.start("asks")
        assert along.is_written
        assert await heard(here.client) == ["one"]


@on_loop
@pytest.mark.parametrize("fault", ["lost", "unseen"])
async def test_a_store_that_fails_writes_the_entry_once(fault: str) -> None:
    store = FaultyStore()
    async with running(store, {}) as here:
        await here.client.deploy(ASKS)
        store.faults.append(fault)
        with here.client.along(entry("one")) as along:
            await here.client.start("asks")
        assert along.is_written
        assert await heard(here.client) == ["one"]


@on_loop
async def test_work_that_was_begun_inside_and_goes_on_afterwards_takes_nothing() -> None:
    async with running(FaultyStore(), {}) as here:
        await here.client.deploy(ASKS)
        begin = asyncio.Event()

        async def later() -> None:
            await begin.wait()
            await here.client.start("asks")

        with here.client.along(entry("one")) as along:
            task = asyncio.create_task(later())
        begin.set()
        await task
        assert not along.is_written
        assert await heard(here.client) == []


@on_loop
async def test_a_remembered_command_takes_it_when_it_is_decided_and_not_when_it_comes_again(tmp_path: Path) -> None:
    async with Engine(tmp_path / "t.db") as engine:
        await engine.deploy(ASKS)
        for text, is_written in (("first", True), ("again", False)):
            with engine.once("r", "f"), engine.along(entry(text)) as along:
                await engine.start("asks", key="k")
            assert along.is_written is is_written
        assert await heard(engine) == ["first"]


@on_loop
async def test_a_command_to_another_process_leaves_the_entry_to_its_caller(tmp_path: Path) -> None:
    async with Engine(tmp_path / "t.db") as engine, connect(tmp_path / "t.db") as client:
        await engine.deploy(ASKS)
        with client.along(entry("one")) as along:
            await client.start("asks")
        assert not along.is_written
        assert await heard(client) == []

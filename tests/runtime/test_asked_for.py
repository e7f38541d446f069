"""Runs that are asked for while nobody coordinates the store: they have an id, and a key stands for one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.cores import chain
from tests.runtime.executing import on_loop, turns
from tests.runtime.hall import nothing
from treadle import CommandRefused, Engine, connect
from treadle.errors import EngineStopped
from treadle.model.states import RunStatus
from treadle.runtime.client import Client


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "t.db")
        return
    from tests.postgres import new_database

    with new_database() as dsn:
        yield dsn


async def kept(client: Client, key: str | None) -> str:
    with pytest.raises(EngineStopped) as stopped:
        await client.start("chain", key=key)
    assert stopped.value.run is not None
    return stopped.value.run


@on_loop
async def test_a_key_that_was_asked_for_before_stands_for_the_same_run(place: str) -> None:
    async with connect(place, create=True) as client:
        await client.deploy(chain("a"))
        first = await kept(client, "k1")
        assert await kept(client, "k1") == first
        assert await kept(client, "k2") != first
        assert await kept(client, None) != await kept(client, None)
        for question in (client.run(first).info(), client.run(first).state()):
            with pytest.raises(CommandRefused, match="is asked for and has not begun"):
                await question
        with pytest.raises(CommandRefused, match="there is no run 'nosuch'"):
            await client.run("nosuch").info()
    async with Engine(place, functions={"a": nothing}) as engine:
        while first not in {row.run for row in await engine.runs()}:
            await turns()
        assert (await engine.run(first).wait()).status is RunStatus.COMPLETED
    async with connect(place) as client:
        again = await client.start("chain", key="k1")
        assert again.id == first
        assert len(await client.runs()) <= 4


@on_loop
async def test_starts_with_one_key_at_the_same_moment_name_the_one_run_that_comes(place: str) -> None:
    async with connect(place, create=True) as one, connect(place) as other:
        await one.deploy(chain("a"))
        asked = await asyncio.gather(*(kept(client, "k") for client in (one, other) * 3))
        named = asked[-1]
    assert set(asked) == {named}
    async with Engine(place, functions={"a": nothing}) as engine:
        while not (found := await engine.runs()):
            await turns()
        assert (await engine.run(named).wait()).status is RunStatus.COMPLETED
        assert [row.run for row in found] == [named]

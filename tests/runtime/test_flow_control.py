"""Flow control (6.7) of real engines: several of them on one database, and one that is killed again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import new_database
from tests.runtime.executing import on_loop
from treadle.errors import CommandRefused
from treadle.kernel.placing import home_of, placed
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.runtime.client import Client
from treadle.runtime.connecting import connect
from treadle.runtime.engine import Engine, EngineSettings
from treadle.store.rows import shard_of

SETTINGS = EngineSettings(lease_ms=2_000, grace_ms=1_000)
ASK = {"action": {"kind": "human"}}
CALL = {"task": {"steps": [{"ref": "do", "action": {"kind": "python", "function": "a"}}]}}


async def a(**_given: Any) -> dict[str, bool]:
    return {"ok": True}


def limited(name: str = "limited", node: Any = CALL, **more: Any) -> Workflow:
    return load_value({"workflow": name, "nodes": {"work": node}, **more}).require()


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with new_database() as made:
        yield made


async def spans(client: Client, runs: list[str]) -> list[tuple[int, int]]:
    """When each run was live."""
    found = []
    for run in runs:
        times = {event.type: event.at async for event in client.run(run).events()}
        found.append((times["run.started"], times["run.completed"]))
    return sorted(found)


async def gate_opened(run: Any) -> None:
    async with asyncio.timeout(20):
        async for event in run.events():
            if event.type == "gate.opened":
                return


def most_at_once(live: list[tuple[int, int]]) -> int:
    """The largest number of runs that were live at a time; one that ends in a millisecond makes room in it."""
    moves = sorted([(begun, 1) for begun, _ in live] + [(ended, 0) for _, ended in live])
    most = count = 0
    for _, kind in moves:
        count += 1 if kind else -1
        most = max(most, count)
    return most


@on_loop
async def test_four_engines_never_run_more_than_the_limit_at_once(dsn: str) -> None:
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(Engine(dsn, functions={"a": a}, settings=SETTINGS, name=f"node-{number}"))
            for number in range(4)
        ]
        await opened[0].deploy(limited(concurrency={"limit": 1}))
        started = await asyncio.gather(*(opened[number % 4].start("limited", {"n": number}) for number in range(80)))
        ended = [await asyncio.wait_for(run.wait(), 60) for run in started]
        assert {run.status for run in ended} == {"completed"}
        assert len({run.id for run in started}) == 80
        live = await spans(opened[0], [run.id for run in started])
        assert most_at_once(live) <= 1
        assert all(later[0] >= earlier[1] for earlier, later in pairwise(live))


@on_loop
async def test_a_client_that_does_not_know_the_newest_version_finds_the_home_of_its_runs(dsn: str) -> None:
    async with Engine(dsn, functions={"a": a}, settings=SETTINGS) as engine, connect(dsn) as client:
        await client.deploy(limited("later"))
        await (await client.start("later")).wait()
        await engine.deploy(
            load_value({"workflow": "later", "concurrency": {"limit": 1}, "nodes": {"work": CALL}}).require()
        )
        run = await client.start("later")
        assert (await run.wait()).status == "completed"
        assert shard_of(RunId(run.id), 64) == shard_of(home_of("later"), 64)


@on_loop
async def test_a_skipped_start_is_told_which_run_is_in_its_way(tmp_path: Path) -> None:
    async with Engine(str(tmp_path / "t.db"), functions={"a": a}) as engine:
        await engine.deploy(limited("one", ASK, concurrency={"limit": 1, "on_limit": "skip"}))
        first = await engine.start("one")
        with pytest.raises(CommandRefused, match=first.id) as refused:
            await engine.start("one")
        assert refused.value.kind == "DUPLICATE"


@on_loop
async def test_a_run_that_was_looked_at_in_the_queue_is_looked_at_again_after_its_start(tmp_path: Path) -> None:
    async with Engine(tmp_path / "treadle.db") as engine:
        await engine.deploy(limited(node=ASK, concurrency={"limit": 1}))
        first, second = await engine.start("limited"), await engine.start("limited")
        assert (await second.detail()).status == "queued"
        await first.cancel()
        async for event in second.events():
            if event.type == "gate.opened":
                break
        assert (await second.detail()).status == "running"


@on_loop
async def test_queued_runs_go_on_in_order_after_the_engine_was_closed(tmp_path: Path) -> None:
    place = str(tmp_path / "t.db")
    async with Engine(place, functions={"a": a}) as engine:
        await engine.deploy(limited("one", ASK, concurrency={"limit": 1}))
        runs = [await engine.start("one") for _ in range(4)]
    async with Engine(place, functions={"a": a}) as engine:
        assert [row.run for row in await engine.queue("one")] == [run.id for run in runs[1:]]
        for run in runs:
            await gate_opened(engine.run(run.id))
            [gate] = await engine.gates()
            assert gate.run == run.id
            await engine.complete_gate(gate.run, gate.token, {})
            await asyncio.wait_for(engine.run(run.id).wait(), 10)
        assert await engine.queue("one") == []
        assert not await engine._commander.store.outbox(0)  # places do not outlive their runs


@pytest.mark.parametrize("shards", [1, 64, 100])
def test_an_id_is_placed_in_the_shard_that_the_store_computes(shards: int) -> None:
    home = shard_of(home_of("orders"), shards)
    for id in ("0192f0c1-5b7a-7c3e-8a51-3f0b9d2e4c17", "parent.3", "parent.3~2", "short"):
        found = placed(RunId(id), "orders", shards)
        assert shard_of(found, shards) == home
        assert placed(found, "orders", shards) == found
        assert len(found) == len(id) or found.startswith(f"{id}-")

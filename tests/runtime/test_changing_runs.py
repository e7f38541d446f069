"""Changes of runs (6.1 to 6.5) from Python, by the engine itself, through its store, and over HTTP: the same calls do
the same."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, load_value
from treadle.runtime.client import Client
from treadle.runtime.run import Run
from treadle.testing.recorded.export import export
from treadle.testing.recorded.past import read_run
from treadle.testing.scenario.runner import run_text

WAYS = pytest.mark.parametrize("way", ["itself", "store", "server"])
FLOW: dict[str, Any] = {
    "workflow": "flow",
    "budget": {"visits": 50},
    "output": {"got": "$.state.got"},
    "nodes": {
        "first": {"action": {"kind": "python", "function": "first"}, "output_mapping": {"state.v": "$.v"}},
        "second": {
            "action": {"kind": "python", "function": "second"},
            "input_mapping": {"v": "$.state.v"},
            "output_mapping": {"state.got": "$.got"},
        },
        "last": {"action": {"kind": "set", "values": {"done": True}}},
    },
    "transitions": [{"from": "first", "to": "second"}, {"from": "second", "to": "last"}],
}
LONGER = {
    **FLOW,
    "nodes": {**FLOW["nodes"], "more": {"action": {"kind": "set", "values": {}}}},
    "transitions": [*FLOW["transitions"], {"from": "last", "to": "more"}],
}


def first() -> dict[str, int]:
    return {"v": 1}


def second(v: int) -> dict[str, int]:
    if v == 1:
        raise ValueError("one is too little")
    return {"got": v * 10}


@asynccontextmanager
async def failed(place: Path, way: str) -> AsyncIterator[tuple[Client, Run]]:
    async with Engine(place, functions={"first": first, "second": second}) as engine:
        await engine.deploy(load_value(FLOW))
        await engine.deploy(load_value(LONGER))
        run = await engine.start("flow", {}, version=1)
        assert (await run.wait(20)).status == "failed"
        async with reached(engine, way, place) as client:
            yield client, client.run(run.id)


async def nodes_of(client: Client, run: str) -> list[str]:
    return [visit.node for visit in (await read_projection(client, run))]


async def read_projection(client: Client, run: str) -> list[Any]:
    from treadle.testing.world.projection import Projection

    projection = Projection()
    projection.apply(await client.run(run).history())
    return projection.begun()


async def passes_as_exported(client: Client, run: str) -> None:
    text = export(await read_run(client, run))
    [result] = run_text(text)
    assert result.ok, result
    assert "Not expected" not in text, text


@WAYS
@on_loop
async def test_a_fork_with_other_data_goes_its_own_way(tmp_path: Path, way: str) -> None:
    async with failed(tmp_path / "store.db", way) as (client, run):
        before = await run.history()
        foretold = await run.foretell_fork(node="second", state={"state.v": 2})
        assert [event.type for event in foretold][:2] == ["run.forked", "context.updated"]
        fork = await run.fork(node="second", state={"state.v": 2}, key="again")
        assert (await fork.wait(20)).output == {"got": 20}
        assert (await run.fork(node="second", state={"state.v": 2}, key="again")).id == fork.id
        other = await run.fork(visit=2, outputs={"first": {"v": 3}}, version=2)
        assert (await other.wait(20)).output == {"got": 30}
        assert await nodes_of(client, other.id) == ["first", "second", "last", "more"]
        assert await run.history() == before
        for told, kind in (
            ({"node": "nowhere"}, "NOT_FOUND"),
            ({"at": 999}, "NOT_FOUND"),
            ({"version": 9}, "NOT_FOUND"),
        ):
            for fork_so in (run.foretell_fork, run.fork):
                with pytest.raises(CommandRefused) as refused:
                    await fork_so(**told)
                assert refused.value.kind == kind
        for one in (fork, other):
            await passes_as_exported(client, one.id)


@WAYS
@on_loop
async def test_a_failed_run_is_edited_and_tried_again(tmp_path: Path, way: str) -> None:
    async with failed(tmp_path / "store.db", way) as (client, run):
        [event] = await run.edit({"state.v": 4}, dry_run=True)
        assert event.type == "context.updated"
        assert (await run.info()).seq == (await run.history())[-1].seq
        await run.edit({"state.v": 4}, by="Ada", reason="a typo")
        with pytest.raises(CommandRefused) as refused:
            await run.edit({"input.v": 4})
        assert refused.value.kind == "BAD_REQUEST"
        await run.retry()
        assert (await run.wait(20)).output == {"got": 40}
        with pytest.raises(CommandRefused) as refused:
            await run.edit({"state.v": 5})
        assert refused.value.kind == "INVALID_STATE"
        await passes_as_exported(client, run.id)


@WAYS
@on_loop
async def test_a_visit_is_skipped_sent_elsewhere_or_given_an_input(tmp_path: Path, way: str) -> None:
    async with failed(tmp_path / "store.db", way) as (client, run):
        skipped, jumped, given = [await run.fork() for _ in range(3)]
        await skipped.skip(2, {"got": 7})
        assert (await skipped.wait(20)).output == {"got": 7}
        await jumped.jump(2, "last")
        assert (await jumped.wait(20)).output == {"got": None}
        await given.set_input(2, {"v": 5})
        await given.retry()
        assert (await given.wait(20)).output == {"got": 50}
        with pytest.raises(CommandRefused) as refused:
            await run.jump(2, "nowhere")
        assert refused.value.kind == "NOT_FOUND"
        for one in (skipped, jumped, given):
            await passes_as_exported(client, one.id)


@WAYS
@on_loop
async def test_runs_are_migrated_and_looked_back_at(tmp_path: Path, way: str) -> None:
    async with failed(tmp_path / "store.db", way) as (client, run):
        then = await run.at(1)
        assert then.status == "running"
        [planned] = await client.migrate(run.id, 2, dry_run=True)
        assert planned.outcome == "possible"
        [moved] = await client.migrate(run.id, 2)
        assert moved.outcome == "migrated"
        await run.skip(2, {"got": 1})
        await run.wait(20)
        assert await nodes_of(client, run.id) == ["first", "second", "last", "more"]
        await passes_as_exported(client, run.id)


@WAYS
@on_loop
async def test_a_difference_says_how_visits_moved_that_ended_or_went_on(tmp_path: Path, way: str) -> None:
    async with failed(tmp_path / "store.db", way) as (_client, run):
        over = (await run.info()).seq
        await run.edit({"state.v": 2})
        await run.retry()
        await run.wait(20)
        now = (await run.info()).seq

        async def moves(begin: int, end: int) -> list[tuple[str, str | None, str | None]]:
            return [(one.node, one.begin, one.end) for one in (await run.diff(begin, end)).moved]

        assert await moves(1, over) == [("first", "executing", "completed"), ("second", None, "failed")]
        assert await moves(over, now) == [("second", "failed", "completed"), ("last", None, "completed")]
        assert await moves(now, over) == [("second", "completed", "failed"), ("last", "completed", None)]
        assert await moves(now, now) == []

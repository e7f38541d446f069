"""Runs on different nodes start, answer, signal and cancel each other: through the inbox, once, in order."""

from __future__ import annotations

import asyncio

import pytest

from tests.runtime.executing import on_loop
from tests.runtime.nodes import TTL_MS, World
from tests.runtime.test_many_nodes import COMPLETED, Work, parent_and_child
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import RunQuery

EVERYTHING = tuple(range(8))


@pytest.mark.parametrize("wakes_are_lost", [False, True])
@on_loop
async def test_runs_on_different_nodes_start_and_answer_each_other(wakes_are_lost: bool) -> None:
    work = Work()
    async with World({"f": work}) as world:
        world.wakes_are_lost = wakes_are_lost
        await world.deploy(*parent_and_child())
        nodes = [await world.node(name) for name in "abc"]
        await world.pass_time(TTL_MS)
        asking = [asyncio.ensure_future(world.start(nodes[n % 3], "parent", f"p{n}")) for n in range(20)]
        statuses = await world.wait_ended(40)
        await asyncio.gather(*asking)
        assert set(statuses.values()) == {COMPLETED} and len(statuses) == 40
        assert len(work.done) == 60 and not work.repeated
        rows = await world.store.find_runs(RunQuery(workflow="child"))
        shard_of = nodes[0].core.shards.of
        assert any(shard_of(row.run) != shard_of(row.parent or "") for row in rows), "some cross"
        assert await world.store.outbox(range(8)) == [] and await world.store.inbox(range(8)) == []
        assert await world.fsck() == []


@on_loop
async def test_a_child_that_is_refused_elsewhere_fails_its_parent() -> None:
    parent, _child = parent_and_child()
    async with World({"f": Work()}) as world:
        await world.deploy(parent)  # nobody has deployed the child
        nodes = [await world.node(name) for name in "ab"]
        await world.pass_time(TTL_MS)
        asking = [asyncio.ensure_future(world.start(nodes[0], "parent", f"p{n}")) for n in range(8)]
        statuses = await world.wait_ended(8)
        await asyncio.gather(*asking)
        assert set(statuses.values()) == {RunStatus.FAILED}
        assert await world.store.outbox(range(8)) == []


@on_loop
async def test_cancelling_a_parent_cancels_its_child_on_another_node() -> None:
    async with World({"f": Work(ms=100)}) as world:
        parent, _child = parent_and_child()
        child = load_value({"workflow": "child", "nodes": {"ask": {"action": {"kind": "human"}}}}).require()
        await world.deploy(parent, child)
        nodes = [await world.node(name) for name in "abc"]
        await world.pass_time(TTL_MS)
        asking = [asyncio.ensure_future(world.start(nodes[n % 3], "parent", f"p{n}")) for n in range(12)]
        await world.pass_time(5_000)
        assert len(await world.statuses()) == 24
        asking += [asyncio.ensure_future(world.ask(nodes[n % 3], f"p{n}", c.CancelRun())) for n in range(12)]
        statuses = await world.wait_ended(24)
        await asyncio.gather(*asking)
        assert set(statuses.values()) == {RunStatus.CANCELLED}
        assert await world.store.outbox(EVERYTHING) == []


@on_loop
async def test_a_run_signals_a_run_of_another_node_once() -> None:
    listens = {
        "workflow": "listens",
        "nodes": {"wait": {"action": {"kind": "signal", "name": "hello"}}},
    }
    sends = {
        "workflow": "sends",
        "nodes": {
            "send": {
                "task": {
                    "steps": [
                        {"ref": "do", "action": {"kind": "send", "signal": "hello", "run": "$.input.to"}},
                    ]
                }
            }
        },
    }
    async with World({"f": Work()}) as world:
        await world.deploy(load_value(listens).require(), load_value(sends).require())
        nodes = [await world.node(name) for name in "abc"]
        await world.pass_time(TTL_MS)
        asking = [asyncio.ensure_future(world.start(nodes[n % 3], "listens", f"l{n}")) for n in range(9)]
        await world.pass_time(2_000)
        asking += [
            asyncio.ensure_future(world.start(nodes[n % 3], "sends", f"s{n}", input={"to": f"l{n}"})) for n in range(9)
        ]
        statuses = await world.wait_ended(18)
        await asyncio.gather(*asking)
        assert set(statuses.values()) == {RunStatus.COMPLETED}
        for n in range(9):
            history = await world.store.history(RunId(f"l{n}"))
            assert sum(isinstance(event, e.SignalReceived) for event in history) == 1

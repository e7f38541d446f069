"""Several nodes share the runs of one store: they split the work, take over, hand over, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from tests.runtime.cores import calls, chain
from tests.runtime.executing import on_loop, turns
from tests.runtime.nodes import TTL_MS, Here, World
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.coordinate.shards import Moved

COMPLETED = RunStatus.COMPLETED


class Work:
    """Functions that take virtual time, and who has executed them how often."""

    def __init__(self, ms: int = 100) -> None:
        self.ms = ms
        self.done: Counter[str] = Counter()
        self.by: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()

    async def __call__(self, here: Here, facts: Any) -> dict[str, Any]:
        self.begun[facts.key] += 1
        await here.world.later(self.ms)
        self.done[facts.key] += 1
        self.by[here.name] += 1
        return {"n": 1}

    @property
    def repeated(self) -> dict[str, int]:
        return {key: times for key, times in self.done.items() if times > 1}


def parent_and_child() -> tuple[Workflow, Workflow]:
    call = {"task": {"steps": [{"ref": "do", "action": {"kind": "workflow_call", "workflow": "child"}}]}}
    document = {
        "workflow": "parent",
        "nodes": {"begin": calls("f"), "call": call, "end": calls("f")},
        "transitions": [{"from": "begin", "to": "call"}, {"from": "call", "to": "end"}],
    }
    return load_value(document).require(), chain("f", name="child")


@on_loop
async def test_nodes_that_come_share_the_shards_and_one_that_dies_is_replaced_after_its_lease() -> None:
    async with World({"f": Work()}) as world:
        a = await world.node("a")
        assert world.shares() == {"a": 8}
        b = await world.node("b")
        await world.pass_time(TTL_MS)
        assert world.shares() == {"a": 4, "b": 4} and not set(a.owned) & set(b.owned)
        await world.node("c")
        await world.pass_time(TTL_MS)
        assert sorted(world.shares().values()) == [2, 3, 3]
        a.kill()
        await world.pass_time(TTL_MS // 2)
        assert sum(world.shares().values()) < 8, "its leases have not run out"
        await world.pass_time(TTL_MS)
        assert sorted(world.shares().values()) == [4, 4]


@on_loop
async def test_every_node_accepts_every_command_and_the_owner_decides() -> None:
    work = Work()
    ask = {"action": {"kind": "signal", "name": "go"}}
    waits = load_value(
        {"workflow": "waits", "nodes": {"ask": ask, "end": calls("f")}, "transitions": [{"from": "ask", "to": "end"}]}
    ).require()
    async with World({"f": work}) as world:
        await world.deploy(waits)
        nodes = [await world.node(name) for name in "abc"]
        await world.pass_time(TTL_MS)

        async def client(number: int) -> None:
            run = f"r{number}"
            answer = await world.start(nodes[number % 3], "waits", run)
            assert answer.rejection is None
            answer = await world.signal(nodes[(number + 1) % 3], run, "go", "s1")
            assert answer.rejection is None

        asking = [asyncio.ensure_future(client(number)) for number in range(30)]
        statuses = await world.wait_ended(30)
        await asyncio.gather(*asking)
        assert set(statuses.values()) == {COMPLETED} and len(statuses) == 30
        assert len(work.done) == 30 and not work.repeated and len(work.by) == 3
        assert await world.fsck() == []


@on_loop
async def test_a_command_for_a_run_of_another_node_is_not_decided_here() -> None:
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        a, b = await world.node("a"), await world.node("b")
        await world.pass_time(TTL_MS)
        foreign = next(f"r{n}" for n in range(100) if b.core.coordinator.owns(RunId(f"r{n}")))
        with pytest.raises(Moved):
            await a.core.coordinator.ask(RunId(foreign), c.StartRun(RunId(foreign), version=0), "chain", fresh=True)
        assert await world.statuses() == {}


@on_loop
async def test_what_another_node_has_deployed_can_be_started_at_once() -> None:
    async with World({"f": Work()}) as world:
        nodes = [await world.node(name) for name in "ab"]
        await world.pass_time(TTL_MS)
        await nodes[0].core.library.deploy(chain("f"))
        run = next(RunId(f"r{n}") for n in range(100) if nodes[1].core.coordinator.owns(RunId(f"r{n}")))
        answer = await nodes[1].core.coordinator.ask(run, c.StartRun(run, version=0), "chain", fresh=True)
        assert answer.rejection is None
        refused = await nodes[1].core.coordinator.ask(run, c.StartRun(RunId("x"), version=0), "unheard of")
        assert refused.rejection is None, "that run exists"
        other = next(RunId(f"x{n}") for n in range(100) if nodes[1].core.coordinator.owns(RunId(f"x{n}")))
        refused = await nodes[1].core.coordinator.ask(other, c.StartRun(other, version=0), "unheard of")
        assert refused.rejection is not None and refused.rejection.kind == "NOT_FOUND"


@on_loop
async def test_work_of_a_node_that_dies_is_done_by_another() -> None:
    work = Work(ms=3_000)
    async with World({"f": work, "g": work}) as world:
        await world.deploy(chain("f", "g"))
        nodes = [await world.node(name) for name in "abc"]
        await world.pass_time(TTL_MS)
        asking = [asyncio.ensure_future(world.start(nodes[n % 3], "chain", f"r{n}")) for n in range(60)]
        await world.pass_time(1_000)
        nodes[0].kill()
        statuses = await world.wait_ended(60)
        await asyncio.gather(*asking, return_exceptions=True)
        assert set(statuses.values()) == {COMPLETED} and len(statuses) == 60
        assert len(work.done) == 120 and not work.repeated, "what was begun on the dead node never ended there"
        assert sum(work.begun.values()) > 120
        assert await world.fsck() == []


@on_loop
async def test_a_zombie_writes_nothing_and_its_work_is_not_applied_twice() -> None:
    work = Work(ms=2_000)
    async with World({"f": work, "g": work}) as world:
        await world.deploy(chain("f", "g"))
        nodes = [await world.node(name) for name in "ab"]
        await world.pass_time(TTL_MS)
        asking = [asyncio.ensure_future(world.start(nodes[n % 2], "chain", f"r{n}")) for n in range(40)]
        await world.pass_time(500)
        owned = nodes[0].owned
        nodes[0].stall()
        await world.pass_time(3 * TTL_MS)  # its work ends meanwhile, and its commits wait at the door
        assert set(nodes[1].owned) == set(range(8))
        nodes[0].wake()
        await turns(50)
        assert nodes[0].owned == () and owned
        statuses = await world.wait_ended(40)
        await asyncio.gather(*asking, return_exceptions=True)
        assert set(statuses.values()) == {COMPLETED}
        for run in statuses:
            types = [event.type for event in await world.store.history(RunId(run))]
            assert types.count("token.completed") == 2
        assert await world.fsck() == []
        await world.pass_time(2 * TTL_MS)
        assert world.shares() == {"a": 4, "b": 4}, "it is a node like others again"


@on_loop
async def test_rebalancing_stops_no_work_and_repeats_none() -> None:
    work = Work(ms=8_000)
    async with World({"f": work, "g": work}) as world:
        await world.deploy(chain("f", "g"))
        a = await world.node("a")
        asking = [asyncio.ensure_future(world.start(a, "chain", f"r{n}")) for n in range(200)]
        await world.pass_time(1_000)
        assert a.core.executor.executing == 200
        b = await world.node("b")
        await world.pass_time(TTL_MS // 2)
        assert world.shares() == {"a": 4, "b": 4}
        assert a.core.executor.executing == 200 and len(a.core.claims) > 50, "the work goes on where it began"
        c_ = await world.node("c")
        statuses = await world.wait_ended(200)
        await asyncio.gather(*asking)
        assert set(statuses.values()) == {COMPLETED} and len(statuses) == 200
        assert len(work.done) == 400 and not work.repeated and sum(work.begun.values()) == 400
        assert b.core.coordinator.written and c_.core.coordinator.written
        assert await world.fsck() == []


@on_loop
async def test_a_node_that_closes_hands_over_and_finishes_what_it_has_in_hand() -> None:
    work = Work(ms=3_000)
    async with World({"f": work, "g": work}) as world:
        await world.deploy(chain("f", "g"))
        a, b = await world.node("a"), await world.node("b")
        await world.pass_time(TTL_MS)
        asking = [asyncio.ensure_future(world.start(b, "chain", f"r{n}")) for n in range(40)]
        await world.pass_time(1_000)
        closing = asyncio.ensure_future(a.close(grace_ms=5_000))
        await turns(300)
        assert b.owned == tuple(range(8)), "nobody waited for a lease to run out"
        statuses = await world.wait_ended(40)
        await closing
        await asyncio.gather(*asking)
        assert set(statuses.values()) == {COMPLETED}
        assert len(work.done) == 80 and not work.repeated and sum(work.begun.values()) == 80
        assert await world.fsck() == []


@on_loop
async def test_work_that_outlasts_the_grace_is_handed_out_again_at_once_and_not_held_against_it() -> None:
    work = Work(ms=20_000)
    async with World({"f": work}) as world:
        await world.deploy(chain("f"))
        a, b = await world.node("a"), await world.node("b")
        await world.pass_time(TTL_MS)
        mine = next(f"r{n}" for n in range(100) if a.core.coordinator.owns(RunId(f"r{n}")))
        await world.start(a, "chain", mine)
        await world.pass_time(1_000)
        closing = asyncio.ensure_future(a.close(grace_ms=1_000))
        await world.pass_time(3_000)
        await closing
        assert b.core.executor.executing == 1, "no lease was waited for"
        await world.wait_ended(1)
        history = await world.store.history(RunId(mine))
        again = [event for event in history if event.type == "token.dispatched"]
        assert [(event.recovery, event.forgiven) for event in again] == [(0, False), (1, True)]  # type: ignore[attr-defined]

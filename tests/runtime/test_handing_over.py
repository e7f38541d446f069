"""Shards are handed over or lost while something is under way: work, work in line, messages, commands."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runtime.cores import calls, chain, one
from tests.runtime.executing import on_loop, turns
from tests.runtime.nodes import TTL_MS, Here, World
from tests.runtime.test_many_nodes import Work
from treadle.errors import StoreUnavailable
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.coordinate.shards import Moved
from treadle.store.port import Batch, Fence, InboxRequest, RunQuery

COMPLETED = {RunStatus.COMPLETED}


async def take_away(world: World, node: Here, run: str) -> int:
    """Another owner, which is no node of this world, takes the shard of a run. Returns the shard."""
    shard = node.core.shards.of(run)
    assert await world.store.lease(shard, "other", None, 100 * TTL_MS, evict=True)
    return shard


@on_loop
async def test_a_command_that_comes_during_a_hand_over_is_for_the_next_owner() -> None:
    async with World({"f": Work(60_000)}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        await world.pass_time(1_000)
        may_write = asyncio.Event()

        async def commit(batch: Batch, *fences: Fence) -> Any:
            await may_write.wait()
            return await world.store.commit(batch, *fences)

        a.door.commit = commit  # type: ignore[attr-defined]
        leaving = asyncio.ensure_future(a.core.hand_over([a.core.shards.of("r")]))
        await turns(20)
        assert not leaving.done(), "the claim of the work is not durable yet"
        asked = asyncio.ensure_future(a.core.coordinator.ask(RunId("r"), c.PauseRun()))
        await turns(20)
        with pytest.raises(Moved):
            asked.result()
        may_write.set()
        await leaving


@on_loop
async def test_work_stops_whose_claim_could_not_be_written_before_its_shard_went() -> None:
    async with World({"f": Work(60_000)}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        await world.pass_time(1_000)
        assert a.core.executor.executing == 1
        shard = await take_away(world, a, "r")
        await a.core.hand_over([shard])
        assert a.core.executor.executing == 0 and not a.core.claims


@on_loop
async def test_work_in_hand_that_another_node_may_have_had_is_begun_again() -> None:
    """The shard comes back after another node has had it, and nobody noticed: the work of before does not count."""
    work = Work(100_000)
    async with World({"f": work}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        await world.pass_time(1_000)
        a.door.trouble = lambda verb: "before" if verb in ("beat", "lease") else ""
        b = await world.node("b")
        await world.pass_time(2 * TTL_MS)
        assert work.begun.total() == 2
        b.kill()
        await world.pass_time(TTL_MS + 1_000)
        a.door.trouble = lambda _verb: ""
        await world.pass_time(TTL_MS)
        assert work.begun.total() == 3 and a.core.executor.executing == 1
        assert set((await world.wait_ended(1)).values()) == COMPLETED


@on_loop
async def test_work_in_line_begins_when_its_shard_has_been_away_and_is_back() -> None:
    work = Work(4 * TTL_MS)
    limited = load_value({"workflow": "w", "nodes": {"n": calls("f", concurrency={"limit": 1})}}).require()
    async with World({"f": work}) as world:
        await world.deploy(limited)
        a = await world.node("a")
        shard = a.core.shards.of
        second = next(f"r{n}" for n in range(100) if shard(f"r{n}") != shard("r0"))
        for run in ("r0", second):
            await world.start(a, "w", run)
            await world.pass_time(500)
        assert work.begun.total() == 1, "the other waits for its turn"
        gone = await take_away(world, a, second)
        await world.pass_time(TTL_MS)
        assert gone not in a.owned
        lease = next(one for one in (await world.store.standing()).leases if one.shard == gone)
        await world.store.release(Fence("other", gone, lease.epoch))
        assert set((await world.wait_ended(2)).values()) == COMPLETED
        assert work.begun.total() == 2


@on_loop
async def test_messages_of_a_shard_that_is_lost_are_left_to_its_next_owner() -> None:
    async with World({}) as world:
        await world.deploy(one("emits", {"kind": "emit", "type": "news"}))
        a = await world.node("a")
        a.letters.failures = [StoreUnavailable("not now")]
        await world.start(a, "emits", "r")
        await turns(50)
        assert not a.letters.failures, "it was tried once"
        await take_away(world, a, "r")
        a.core.lose([a.core.shards.of("r")], "as told")
        await world.pass_time(60_000, 1_000)
        assert a.letters.carried == []


@on_loop
async def test_work_that_goes_on_after_a_hand_over_keeps_its_claim_for_as_long_as_it_takes() -> None:
    work = Work(100_000)
    async with World({"f": work}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        for number in range(8):
            await world.start(a, "chain", f"r{number}")
        await world.node("b")
        assert set((await world.wait_ended(8)).values()) == COMPLETED
        assert work.begun.total() == 8 and work.by == {"a": 8}


@on_loop
async def test_work_goes_on_after_a_hand_over_also_if_its_run_was_not_in_memory() -> None:
    work = Work(100_000)
    async with World({"f": work}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        for number in range(8):
            await world.start(a, "chain", f"r{number}")
        await world.pass_time(500)
        a.core.coordinator._hots.clear()  # as after a commit that failed
        await world.node("b")
        assert set((await world.wait_ended(8)).values()) == COMPLETED
        assert work.begun.total() == 8 and work.by == {"a": 8}


@on_loop
async def test_a_request_is_taken_up_again_at_once_when_its_shard_has_been_away_for_a_moment() -> None:
    """No time passes, so no look into the inbox that is made now and then can help."""
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        fences = list(a.core.shards.fences.values())
        held, looked = asyncio.Event(), asyncio.Event()

        async def find(query: RunQuery) -> Any:
            if query.idempotency_key is not None:
                looked.set()
                await held.wait()
            return await world.store.find_runs(query)

        a.door.find_runs = find  # type: ignore[attr-defined]
        request = InboxRequest("q", RunId("r"), c.StartRun(RunId("r"), version=0, idempotency_key="k"), 0, "chain")
        await world.store.submit(request)
        a.look()
        await looked.wait()
        a.core.lose([fence.shard for fence in fences], "as told")
        held.set()
        await turns(50)
        assert await world.store.submit(request) is None, "nobody has decided it"
        await a.core.gain(*fences)
        await turns(50)
        answer = await world.store.submit(request)
        assert answer is not None and answer.rejection is None

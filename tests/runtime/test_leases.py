"""The leases of a node: how long it trusts them, what a heartbeat tells it, and what it does when one has gone."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.runtime.cores import chain
from tests.runtime.executing import on_loop, turns
from tests.runtime.nodes import TTL_MS, World
from tests.runtime.test_many_nodes import Work
from treadle.errors import StoreUnavailable
from treadle.model.commands import StartRun
from treadle.model.ids import RunId
from treadle.runtime.coordinate.shards import Moved
from treadle.store.members import Standing
from treadle.store.port import Batch, Fence, InboxAnswer

EVERYTHING = tuple(range(8))


@on_loop
async def test_a_lease_is_trusted_from_the_question_on_not_from_the_answer() -> None:
    """The store counts from the moment it is asked; an answer that is late has used up a part of the lease."""
    async with World({}) as world:
        a = await world.node("a")
        asked: list[int] = []

        async def beat(*args: Any) -> Standing:
            if asked:
                raise StoreUnavailable("connection refused")
            asked.append(world.clock.now())
            standing = await world.store.beat(*args)
            await world.later(TTL_MS // 2)
            return standing

        a.door.beat = beat  # type: ignore[attr-defined]
        while not asked:
            await world.pass_time(250)
        await world.pass_time(asked[0] + TTL_MS - 500 - world.clock.now())
        assert a.owned == EVERYTHING
        await world.pass_time(1_000)
        assert a.owned == ()


@on_loop
async def test_work_of_a_shard_that_another_owner_holds_stops_with_the_next_heartbeat() -> None:
    async with World({"f": Work(60_000)}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        await world.pass_time(1_000)
        shard = a.core.shards.of("r")
        assert await world.store.lease(shard, "other", None, 10 * TTL_MS, evict=True)
        await world.pass_time(TTL_MS // 2)
        assert a.core.executor.executing == 0 and not a.core.shards.doubted
        assert a.owned == tuple(one for one in EVERYTHING if one != shard)


@on_loop
async def test_a_shard_whose_lease_the_store_no_longer_has_is_not_decided_for() -> None:
    """It ran out by the store's clock, and cannot be taken again for now."""
    async with World({}) as world:
        a = await world.node("a")
        await world.store.release(a.core.shards.fences[3])
        a.door.trouble = lambda verb: "before" if verb == "lease" else ""
        await world.pass_time(TTL_MS // 2)
        assert a.owned == tuple(one for one in EVERYTHING if one != 3) and list(a.core.shards.doubted) == [3]
        a.door.trouble = lambda _verb: ""
        await world.pass_time(TTL_MS // 2)
        assert a.owned == EVERYTHING and not a.core.shards.doubted


@on_loop
async def test_shards_that_were_given_back_do_not_come_back_by_an_answer_from_before() -> None:
    """The heartbeat was answered when this node still held them, and the answer arrives when they are released."""
    async with World({}) as world:
        a, b = await world.node("a"), await world.node("b")
        releasing, may_release, seen, may_answer = (asyncio.Event() for _ in range(4))

        async def release(fence: Fence) -> None:
            releasing.set()
            await may_release.wait()
            await world.store.release(fence)

        async def beat(*args: Any) -> Standing:
            standing = await world.store.beat(*args)
            seen.set()
            await may_answer.wait()
            return standing

        a.door.release = release  # type: ignore[attr-defined]
        await world.pass_time(TTL_MS // 2)
        assert releasing.is_set() and a.owned == (0, 1, 2, 3)
        await b.close()  # so that the standing gives this node no reason to hand anything over
        a.door.beat = beat  # type: ignore[attr-defined]
        await world.pass_time(TTL_MS // 2)
        assert seen.is_set()
        may_release.set()
        await turns(50)
        del a.door.beat, a.door.release
        may_answer.set()
        await turns(50)
        assert a.owned == (0, 1, 2, 3)
        await world.pass_time(TTL_MS)
        leases = (await world.store.standing()).leases
        assert a.owned == EVERYTHING
        assert {lease.shard: lease.epoch for lease in leases} == {
            shard: fence.epoch for shard, fence in a.core.shards.fences.items()
        }


@on_loop
async def test_what_gathers_behind_a_batch_that_is_refused_is_decided_again() -> None:
    """A batch is being written when another node takes one of its shards; meanwhile the next batch gathers."""
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        shard = a.core.shards.of
        kept = next(f"r{n}" for n in range(1, 100) if shard(f"r{n}") != shard("r0"))
        writing, may_write = asyncio.Event(), asyncio.Event()

        async def commit(batch: Batch, *fences: Fence) -> Any:
            writing.set()
            await may_write.wait()
            return await world.store.commit(batch, *fences)

        def ask(run: str) -> asyncio.Task[InboxAnswer]:
            start = StartRun(RunId(run), version=0)
            return asyncio.ensure_future(a.core.coordinator.ask(RunId(run), start, "chain"))

        a.door.commit = commit  # type: ignore[attr-defined]
        refused = ask("r0")
        await writing.wait()
        behind = ask(kept)
        await turns(20)
        assert await world.store.lease(shard("r0"), "other", None, TTL_MS, evict=True)
        may_write.set()
        await turns(200)
        assert isinstance(refused.exception(), Moved)
        assert behind.done() and behind.result().rejection is None, (
            "it was decided and not written, so it is decided anew"
        )
        assert list(await world.statuses()) == [kept]

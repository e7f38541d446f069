"""A shard changes hands at the worst moment: one test for everything that once went wrong, or would be easy to get
wrong. The many moments nobody has thought of are drawn in `test_nodes_at_random.py`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runtime.cores import FaultyStore, calls, chain, running
from tests.runtime.executing import on_loop, turns
from tests.runtime.nodes import TTL_MS, Here, World
from tests.runtime.test_many_nodes import Work
from treadle.errors import StoreConflict
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.coordinate.shards import Moved, Shards
from treadle.runtime.operate.retention import Retention
from treadle.runtime.operate.retention_setting import Keep, KeepRules
from treadle.store.port import Fence, InboxRequest, RunQuery

EVERYTHING = tuple(range(8))


@on_loop
async def test_recovery_leaves_work_alone_whose_lease_is_not_over() -> None:
    """A worker of a queue has claimed it; its engine dies."""
    work = Work(ms=40_000)
    async with World({"f": work}) as world:
        await world.deploy(load_value({"workflow": "w", "nodes": {"a": calls("f", queue="gpu")}}).require())
        a = await world.node("a")
        await world.start(a, "w", "r1")
        until = world.clock.now() + 20_000
        answer = await world.ask(a, "r1", c.StartAttempt(1, 1, "far away", until))  # type: ignore[arg-type]
        if answer.rejection is not None:  # this engine was faster: the same, with its own claim
            until = world.clock.now() + 30_000
        a.kill()
        b = await world.node("b")
        await world.pass_time(TTL_MS + 4_000)
        assert b.owned == EVERYTHING
        types = [event.type for event in await world.store.history(RunId("r1"))]
        assert types.count("token.dispatched") == 1, "nobody has taken it away"
        await world.pass_time(until - world.clock.now() + 1_000)
        types = [event.type for event in await world.store.history(RunId("r1"))]
        assert types.count("token.dispatched") == 2, "its lease is over"


@pytest.mark.parametrize("keys", [1, 3])
@on_loop
async def test_of_starts_with_one_key_at_several_nodes_at_once_one_begins(keys: int) -> None:
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        nodes = [await world.node(name) for name in "abc"]
        await world.pass_time(TTL_MS)
        for node in nodes:  # so that all of them look before any of them has written
            _slow_down(node)
        asking = [
            asyncio.ensure_future(world.start(nodes[n % 3], "chain", f"r{n}", idempotency_key=f"k{n % keys}"))
            for n in range(12)
        ]
        statuses = await world.wait_ended(keys)
        answers = await asyncio.gather(*asking)
        assert len(statuses) == keys and {answer.result for answer in answers} == set(statuses)
        assert all(answer.rejection is None for answer in answers)
        for n, answer in enumerate(answers):
            assert answer.result == answers[n % keys].result, "the same key, the same run"


def _slow_down(node: Here) -> None:
    """Its commits and searches take a while, as over a network."""
    commit, find = node.world.store.commit, node.world.store.find_runs

    async def later(verb: Any, *args: Any, **kwargs: Any) -> Any:
        await turns(5)
        return await verb(*args, **kwargs)

    node.door.commit = lambda *args: later(commit, *args)  # type: ignore[attr-defined]
    node.door.find_runs = lambda *args: later(find, *args)  # type: ignore[attr-defined]


@on_loop
async def test_a_request_whose_shard_goes_while_its_key_is_looked_up_is_answered_when_it_comes_back() -> None:
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        held, looked = asyncio.Event(), asyncio.Event()

        async def find(query: RunQuery) -> Any:
            if query.idempotency_key is not None:
                looked.set()
                await held.wait()
            return await world.store.find_runs(query)

        a.door.find_runs = find  # type: ignore[attr-defined]
        command = c.StartRun(RunId("r1"), version=0, idempotency_key="k")
        await world.store.submit(InboxRequest("q", RunId("r1"), command, 0, "chain"))
        a.look()
        await looked.wait()
        a.core.lose(EVERYTHING, "as told")
        held.set()
        await turns(50)
        await world.pass_time(TTL_MS)
        assert a.owned == EVERYTHING
        answer = await world.store.submit(InboxRequest("q", RunId("r1"), command, 0, "chain"))
        assert answer is not None and answer.rejection is None
        await world.wait_ended(1)


@on_loop
async def test_whoever_waits_for_an_answer_is_told_to_ask_elsewhere_and_nothing_was_written() -> None:
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        a.door.shut()
        asking = [asyncio.ensure_future(a.core.coordinator.ask(RunId(run), _start(run), "chain")) for run in ("r", "s")]
        await turns(20)
        other = [await world.store.lease(shard, "other", None, TTL_MS, evict=True) for shard in range(8)]
        assert all(other)
        a.door.wake()
        for question in asking:
            with pytest.raises(Moved):
                await question
        assert not {a.core.shards.of("r"), a.core.shards.of("s")} & set(a.owned) and await world.statuses() == {}


def _start(run: str) -> c.StartRun:
    return c.StartRun(RunId(run), version=0)


@on_loop
async def test_a_batch_that_lost_one_of_its_shards_is_decided_again_for_the_others() -> None:
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        shard = a.core.shards.of
        kept, gone = "r0", next(f"r{n}" for n in range(100) if shard(f"r{n}") != shard("r0"))
        a.door.shut()
        asking = [
            asyncio.ensure_future(a.core.coordinator.ask(RunId(run), _start(run), "chain")) for run in (kept, gone)
        ]
        await turns(20)
        assert await world.store.lease(shard(gone), "other", None, TTL_MS, evict=True)
        a.door.wake()
        answer = await asking[0]
        assert answer.rejection is None and answer.result == kept
        with pytest.raises(Moved):
            await asking[1]
        assert a.owned == tuple(s for s in EVERYTHING if s != shard(gone))
        assert list(await world.statuses()) == [kept]


@on_loop
async def test_an_opinion_that_rests_on_a_lost_shard_reaches_nobody() -> None:
    """The other node has paused the run; this one, which does not know, would say that nothing is to be resumed."""
    async with World({"f": Work(60_000)}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        for shard in EVERYTHING:
            assert await world.store.lease(shard, "other", None, TTL_MS, evict=True)
        with pytest.raises(Moved):
            await a.core.coordinator.ask(RunId("r"), c.ResumeRun())


@on_loop
async def test_a_commit_nobody_heard_of_is_answered_once_also_if_its_shard_is_lost_meanwhile() -> None:
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        faults = ["after"]
        a.door.trouble = lambda verb: faults.pop() if verb == "commit" and faults and _lose_all(world) else ""
        answer = await a.core.coordinator.ask(RunId("r"), _start("r"), "chain")
        assert answer.rejection is None, "it happened before the shard was lost"
        assert list(await world.statuses()) == ["r"]
        assert not a.core.coordinator.owns(RunId("r"))


def _lose_all(world: World) -> bool:
    """Somebody takes everything over as soon as the call that is under way has been carried out."""

    async def take() -> None:
        for shard in EVERYTHING:
            await world.store.lease(shard, "other", None, TTL_MS, evict=True)

    asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(take()))
    return True


@on_loop
async def test_the_owner_of_the_first_shard_tidies_for_all() -> None:
    async with World({"f": Work()}) as world:
        await world.deploy(chain("f"))
        nodes = [await world.node(name) for name in "ab"]
        await world.pass_time(TTL_MS)
        for node in nodes:
            core = node.core
            rules = KeepRules(Keep(age_ms=60_000), {})
            tidy = Retention(
                core.coordinator.store, core.shards, node.clock, core.coordinator.feed, rules, core.library.names,
                core.coordinator.spawn,
            )  # fmt: skip
            core.on_moved = tidy.moved
            await tidy.open()
        asking = [asyncio.ensure_future(world.start(nodes[n % 2], "chain", f"r{n}")) for n in range(10)]
        await world.wait_ended(10)
        await asyncio.gather(*asking)
        tidies, other = sorted(nodes, key=lambda node: 0 not in node.owned)
        tidies.kill()
        await world.pass_time(2 * TTL_MS)
        assert 0 in other.owned and len(await world.statuses()) == 10
        await world.pass_time(150_000, 1_000)
        assert await world.statuses() == {}
        assert other.door.calls["forget"] and not tidies.door.calls["forget"]


def test_a_batch_needs_the_fences_of_the_shards_it_is_about_and_no_others() -> None:
    shards = Shards(8)
    shards.gain([Fence("a", shard, 1) for shard in range(4)])
    runs = {shards.of(f"r{n}"): RunId(f"r{n}") for n in range(100)}
    assert [fence.shard for fence in shards.covering([runs[3], runs[1]])] == [1, 3]
    with pytest.raises(StoreConflict) as refused:
        shards.covering([runs[1], runs[6], runs[7]])
    assert refused.value.shards == (6, 7)
    shards.leave([1])
    assert not shards.owns(runs[1]) and shards.covering([runs[1]]), "what was decided may still be written"
    shards.lose([1])
    with pytest.raises(StoreConflict):
        shards.covering([runs[1]])


@on_loop
async def test_draining_ends_also_when_there_is_nothing_to_write() -> None:
    async with running(FaultyStore(), {}) as here:
        coordinator = here.core.coordinator
        asking = asyncio.ensure_future(coordinator.ask(RunId("nobody"), c.PauseRun()))
        await turns(3)
        await coordinator.drained()
        assert (await asking).rejection is not None
        told = coordinator.future()
        coordinator._committer.add(_nothing_decided(told), None)
        await coordinator.drained()


def _nothing_decided(told: Any) -> Any:
    from treadle.runtime.coordinate.gathering import Decided, Item, answer_to

    item = Item(RunId("r"), c.PauseRun(), future=told)
    return Decided(item, None, [], answer_to(item))


@on_loop
async def test_a_node_that_cannot_reach_the_store_for_a_lease_decides_nothing_and_its_work_goes_on() -> None:
    work = Work(ms=20_000)
    async with World({"f": work}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        await world.pass_time(1_000)
        a.door.trouble = lambda verb: "before" if verb in ("beat", "lease") else ""
        await world.pass_time(TTL_MS - 2_500)
        assert a.owned == EVERYTHING, "three beats may be lost"
        await world.pass_time(5_000)
        assert a.owned == () and a.core.executor.executing == 1
        a.door.trouble = lambda _verb: ""
        await world.pass_time(TTL_MS)
        assert a.owned == EVERYTHING
        statuses = await world.wait_ended(1)
        assert set(statuses.values()) == {RunStatus.COMPLETED}
        assert work.begun.total() == 1, "nobody else had the shard meanwhile: what was in hand is still its own"


@on_loop
async def test_a_lease_that_cannot_be_given_back_now_is_no_bug() -> None:
    """Taken by a call whose answer was lost; then the connection breaks on the way back. The next beat finds it."""
    tried: list[str] = []

    def refuse(verb: str) -> str:
        tried.append(verb)
        return "before" if verb == "release" else ""

    async with World({}) as world:
        a = await world.node("a")
        a.door.trouble = refuse
        await a.membership._hand_over({9: Fence("a", 9, 1)})
        a.door.trouble = lambda _verb: ""
        assert "release" in tried
        assert not a.membership._leaving

"""Shards whose lease runs out and that come back: work in hand is recognised, unless somebody else had it meanwhile."""

from __future__ import annotations

from random import Random

import pytest

from tests.runtime.cores import calls, chain
from tests.runtime.executing import on_loop, turns
from tests.runtime.nodes import TTL_MS, Here, World
from tests.runtime.test_many_nodes import Work
from tests.runtime.test_nodes_at_random import Labour
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.shards import Shards
from treadle.runtime.surroundings import patience
from treadle.store.port import Fence

COMPLETED = {RunStatus.COMPLETED}
LEASES = ("beat", "lease")


def families() -> list[Workflow]:
    """Work, a fan-out, a join, a child that works twice, work."""
    call = {"action": {"kind": "workflow_call", "workflow": "child"}}
    document = {
        "workflow": "family",
        "nodes": {"begin": calls("f"), "branch": calls("f"), "join": {}, "call": call, "end": calls("f")},
        "transitions": [
            {"id": "fan", "from": "begin", "to": "branch", "spawn_count": 3},
            {"from": "branch", "to": "join", "synchronization": {"sibling_group": "fan"}},
            {"from": "join", "to": "call"},
            {"from": "call", "to": "end"},
        ],
    }
    return [load_value(document).require(), chain("f", "g", name="child")]


def cut(node: Here, *verbs: str) -> None:
    """These do not reach the store; without any, everything does again."""
    node.door.trouble = lambda verb: "before" if verb in verbs else ""


@pytest.mark.parametrize("work_ms", [8_000, 12_000, 16_000, 40_000])
@on_loop
async def test_work_in_hand_of_a_shard_that_comes_back_is_not_executed_again(work_ms: int) -> None:
    """It ends before the lease, while the shard is in doubt, or after it has come back."""
    work = Work(work_ms)
    async with World({"f": work, "g": work}) as world:
        await world.deploy(chain("f", "g"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        await world.pass_time(1_000)
        cut(a, *LEASES)
        await world.pass_time(TTL_MS + 4_000)
        assert a.owned == ()
        cut(a)
        assert set((await world.wait_ended(1)).values()) == COMPLETED
        assert list(work.begun.values()) == [1, 1]
        history = await world.store.history(RunId("r"))
        assert not [event for event in history if isinstance(event, e.TokenDispatched) and event.recovery]


@on_loop
async def test_what_could_not_be_written_before_the_lease_ran_out_is_written_when_the_shard_is_back() -> None:
    work = Work(2_000)
    async with World({"f": work, "g": work}) as world:
        await world.deploy(chain("f", "g"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        cut(a, *LEASES, "commit", "history", "outbox")
        await world.pass_time(2 * TTL_MS)
        cut(a)
        assert set((await world.wait_ended(1)).values()) == COMPLETED
        assert list(work.begun.values()) == [1, 1]


@on_loop
async def test_work_of_a_shard_that_another_node_took_over_stops_as_soon_as_that_is_known() -> None:
    work = Work(60_000)
    async with World({"f": work}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        cut(a, *LEASES)
        b = await world.node("b")
        await world.pass_time(2 * TTL_MS)
        assert len(b.owned) == 8 and a.core.executor.executing == 1
        cut(a)
        await world.pass_time(TTL_MS // 2)
        assert a.core.executor.executing == 0
        assert set((await world.wait_ended(1)).values()) == COMPLETED
        assert list(work.done.values()) == [1] and work.by == {"b": 1}


@on_loop
async def test_a_result_of_before_does_not_count_if_the_shard_comes_back_after_somebody_else_had_it() -> None:
    work = Work(30_000)
    async with World({"f": work}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        await world.pass_time(1_000)
        cut(a, *LEASES)
        b = await world.node("b")
        await world.pass_time(2 * TTL_MS)
        b.kill()
        await world.pass_time(TTL_MS + 1_000)  # the first execution has ended, its report is kept back
        cut(a)
        await world.wait_ended(1)
        history = await world.store.history(RunId("r"))
        assert [event.type for event in history].count("token.completed") == 1
        assert [event.recovery for event in history if isinstance(event, e.TokenDispatched)] == [0, 1, 2]
        assert work.begun.total() == 3 and await world.fsck() == []


@on_loop
async def test_a_report_that_was_under_way_while_somebody_else_had_the_shard_is_not_applied() -> None:
    """It waited for its run to be read, for instance, and the shard was lost and has come back meanwhile."""
    work = Work(600_000)
    async with World({"f": work}) as world:
        await world.deploy(chain("f"))
        a = await world.node("a")
        await world.start(a, "chain", "r")
        await world.pass_time(1_000)
        before = a.core.shards.epoch_of("r")
        cut(a, *LEASES)
        b = await world.node("b")
        await world.pass_time(2 * TTL_MS)
        b.kill()
        await world.pass_time(TTL_MS + 1_000)
        cut(a)
        await world.pass_time(TTL_MS)
        assert a.core.shards.owns("r") and a.core.shards.epoch_of("r") > before + 1
        report = c.FinishAttempt(TokenId(1), 1, {"late": True})
        a.core.coordinator.put(Item(RunId("r"), report, epoch=before))
        await turns(50)
        history = await world.store.history(RunId("r"))
        assert "token.completed" not in [event.type for event in history]


@pytest.mark.parametrize("seed", range(25))
@on_loop
async def test_a_lone_node_that_loses_its_leases_at_random_executes_everything_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "RETRY_FIRST_S", 0.0)
    random = Random(seed)
    labour = Labour(random)
    async with World({"f": labour, "g": labour}) as world:
        await world.deploy(*families())
        a = await world.node("a")
        for number in range(6):
            await world.start(a, "family", f"r{number}")
        for _ in range(12):
            cut(a, *random.choice([(), LEASES, LEASES, (*LEASES, "commit"), (*LEASES, "commit", "history")]))
            await world.pass_time(random.choice([1_000, 4_000, TTL_MS, 3 * TTL_MS]))
        cut(a)
        assert set((await world.wait_ended(12)).values()) == COMPLETED
        await turns(50)
        repeated = {key for key in labour.keys if labour.keys.count(key) > 1}
        assert not repeated
        assert await world.fsck() == []


def test_a_tenure_goes_on_as_long_as_nobody_else_can_have_had_the_shard() -> None:
    shards = Shards(1 << 1)
    (run,) = [name for name in ("r0", "r1", "r2") if shards.of(name) == 1][:1]
    assert shards.gain([Fence("me", 1, 5)]) == [1]
    shards.doubt([1])
    assert not shards.owns(run) and shards.epoch_of(run) == 5
    assert shards.is_in_doubt(run, 5) and not shards.is_current(run, 5) and not shards.is_in_doubt(run, 4)
    assert shards.gain([Fence("me", 1, 6)]) == []
    assert shards.is_current(run, 5) and shards.is_current(run, 6) and not shards.is_current(run, 4)
    shards.doubt([1])
    assert shards.gain([Fence("me", 1, 8)]) == [1]
    assert not shards.is_current(run, 6) and shards.is_current(run, 8)
    shards.lose([1])
    assert not shards.is_current(run, 8) and not shards.is_in_doubt(run, 8)

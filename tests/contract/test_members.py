"""Membership, for every store that nodes share. A world's clock is moved by hand; a database's is its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.making import ONE, RUN, Spoken, begin, commit
from tests.postgres import Database, run_all
from treadle.errors import StoreConflict
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model import events as e
from treadle.store.members import Backlog, Member
from treadle.store.memory import MemoryStore
from treadle.store.port import Batch, InboxRequest

LONG = 600_000
"""Milliseconds that no test waits."""
A, B = Member("a", "host-a", queues=("gpu", "cpu")), Member("b", "host-b", coordinates=False, behind=7)


class World:
    """A store, and a way to let time pass."""

    def __init__(self, spoken: Any, database: Database | None, runner: asyncio.Runner) -> None:
        self.store = spoken
        self._database = database
        self._runner = runner

    def let_pass(self, ms: int) -> None:
        """Later on, as the store sees it: on a database everything it knows becomes older instead."""
        if self._database is None:
            CLOCK[0] += ms
            return
        older = (
            f"UPDATE leases SET until = until - {ms}",
            f"UPDATE nodes SET until = until - {ms}, beat = beat - {ms}",
        )
        self._runner.run(run_all(self._database.dsn, *older))


CLOCK = [0]


@pytest.fixture(params=["memory", "postgres"])
def world(request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[World]:
    if request.param == "memory":
        CLOCK[0] = 1_000_000_000
        yield World(Spoken(MemoryStore(now=lambda: CLOCK[0]), runner), None, runner)
        return
    database = request.getfixturevalue("database")
    made: Any = Spoken(runner.run(database.open(payload_max=200)), runner)
    yield World(made, database, runner)
    made.close()


def test_who_beats_is_listed_with_everybody_who_does(world: World) -> None:
    first = world.store.beat(A, LONG)
    (a,) = first.nodes
    assert (a.owner, a.name, a.coordinates, a.queues, a.behind) == ("a", "host-a", True, ("gpu", "cpu"), 0)
    assert a.started == a.beat == first.now
    second = world.store.beat(B, LONG)
    assert [node.owner for node in second.nodes] == ["a", "b"]
    assert (second.nodes[1].coordinates, second.nodes[1].queues, second.nodes[1].behind) == (False, None, 7)
    assert world.store.standing().nodes == second.nodes
    world.let_pass(10)
    again = world.store.beat(Member("a", "host-a", behind=3), LONG)
    assert (again.nodes[0].started, again.nodes[0].behind) == (a.started, 3)
    assert again.nodes[0].beat == again.now >= a.beat


def test_what_a_node_lacks_is_listed_until_it_says_otherwise(world: World) -> None:
    lacks = {"gpu": ("function 'f'", "action kind 'llm'")}
    assert world.store.beat(replace(A, lacks=lacks), LONG).nodes[0].lacks == lacks
    assert world.store.standing().nodes[0].lacks == lacks
    assert world.store.beat(A, LONG).nodes[0].lacks == {}


def test_who_stops_beating_is_not_listed_and_who_leaves_is_gone_at_once(world: World) -> None:
    world.store.beat(A, LONG)
    world.store.beat(B, 3 * LONG)
    world.let_pass(LONG)
    assert [node.owner for node in world.store.standing().nodes] == ["b"]
    assert [node.owner for node in world.store.beat(Member("c", "host-c"), LONG).nodes] == ["b", "c"]
    world.store.leave("b")
    world.store.leave("b")
    assert [node.owner for node in world.store.standing().nodes] == ["c"]
    assert [node.owner for node in world.store.beat(A, LONG).nodes] == ["a", "c"], "back among the living"


def test_a_node_says_which_process_it_is(world: World) -> None:
    assert world.store.beat(replace(A, process="red boot 1 2 3"), LONG).nodes[0].process == "red boot 1 2 3"
    assert world.store.standing().nodes[0].process == "red boot 1 2 3"


def test_what_a_buried_node_held_can_be_taken_at_once_and_it_writes_nothing_after_that(world: World) -> None:
    world.store.beat(A, LONG)
    old, kept = world.store.lease(0, "a", None, LONG), world.store.lease(1, "b", None, LONG)
    world.store.bury("a")
    assert world.store.standing().nodes == []
    heir = world.store.lease(0, "b", None, LONG)
    assert heir is not None and heir.epoch == old.epoch + 1
    with pytest.raises(StoreConflict, match="LEASE_CONFLICT"):
        world.store.commit(begin(), old)
    assert [lease.owner for lease in world.store.standing().leases] == ["b", "b"] and kept is not None
    world.store.bury("nobody")


def test_a_beat_renews_the_leases_of_its_node_and_no_others(world: World) -> None:
    one, two = world.store.lease(0, "a", None, LONG), world.store.lease(1, "b", None, LONG)
    assert (one.epoch, two.epoch) == (1, 1)
    world.let_pass(LONG // 2)
    standing = world.store.beat(A, LONG)
    assert [(lease.shard, lease.owner, lease.epoch) for lease in standing.leases] == [(0, "a", 1), (1, "b", 1)]
    assert standing.leases[0].until == standing.now + LONG
    world.let_pass(LONG // 2)
    assert [lease.shard for lease in world.store.beat(A, LONG).leases] == [0], "what has run out is free"
    assert [lease.shard for lease in world.store.standing().leases] == [0]
    assert world.store.lease(0, "b", None, LONG) is None
    heir = world.store.lease(1, "a", None, LONG)
    assert heir is not None and heir.epoch == 2


def test_a_lease_that_has_run_out_or_was_given_back_is_not_renewed(world: World) -> None:
    fence = world.store.lease(0, "a", None, LONG)
    world.store.release(fence)
    assert world.store.beat(A, LONG).leases == []
    second = world.store.lease(0, "a", None, LONG)
    world.let_pass(LONG)
    assert world.store.beat(A, LONG).leases == []
    heir = world.store.lease(0, "b", None, LONG)
    assert heir.epoch == second.epoch + 1
    with pytest.raises(StoreConflict):
        world.store.commit(begin(), second)


def test_what_waits_is_counted_by_shard(world: World) -> None:
    assert world.store.backlog() == []
    fence = world.store.lease(0, "a", None, LONG)
    now = world.store.standing().now
    world.store.commit(begin(RUN, f.SetTimer(ONE, now - 5_000)), fence)
    world.store.submit(InboxRequest("q", RUN, c.PauseRun(), now - 9_000))
    world.store.submit(InboxRequest("r", RUN, c.PauseRun(), now + LONG))
    (waiting,) = world.store.backlog()
    assert isinstance(waiting, Backlog)
    assert (waiting.shard, waiting.requests, waiting.timers_due) == (0, 2, 1)
    assert 9_000 <= waiting.oldest_request_ms < LONG
    assert 5_000 <= waiting.oldest_timer_ms < LONG


def test_a_beat_beside_commits_makes_nobody_lose_anything(world: World, runner: asyncio.Runner) -> None:
    fence = world.store.lease(0, "a", None, LONG)
    world.store.commit(begin(), fence)
    store = world.store.store

    async def side_by_side() -> None:
        async def walk() -> None:
            for seq in range(1, 60):
                await store.commit(Batch([commit(seq, e.Custom(seq + 1, seq, "x"))]), fence)

        async def beat() -> None:
            for _ in range(60):
                standing = await store.beat(A, LONG)
                assert [(lease.shard, lease.epoch) for lease in standing.leases] == [(0, 1)]

        await asyncio.gather(walk(), beat(), beat())

    runner.run(side_by_side())
    assert len(world.store.history(RUN)) == 60

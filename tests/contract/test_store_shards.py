"""The port's contract for runs of many shards in one batch, for every store that has more than one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contract.making import ONE, WORK, Spoken, begin, commit
from tests.postgres import new_database
from treadle.errors import StoreConflict
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.memory import MemoryStore
from treadle.store.port import Batch, Fence, InboxAnswer, InboxRequest, RunQuery
from treadle.store.postgres import PostgresStore
from treadle.store.rows import shard_of

SHARDS = 4
NAMES = [RunId(f"run-{i}") for i in range(12)]
HOME = {run: shard_of(run, SHARDS) for run in NAMES}
EVERY = range(SHARDS)


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[Any]:
    if request.param == "memory":
        yield Spoken(MemoryStore(SHARDS), runner)
        return
    with new_database() as dsn:
        made = Spoken(runner.run(PostgresStore.open(dsn, shards=SHARDS, connections_max=4)), runner)
        yield made
        assert made.integrity() == []
        made.close()


def fences(store: Any, owner: str = "a", shards: Any = EVERY, **given: Any) -> list[Fence]:
    return [store.lease(shard, owner, 0, 100, **given) for shard in shards]


def all_of_them(*effects: f.Effect) -> Batch:
    return Batch([commit(0, *begin(run).commits[0].events, run=run, effects=effects) for run in NAMES])


def test_the_names_are_spread_over_every_shard() -> None:
    assert set(HOME.values()) == set(EVERY)


def test_a_batch_reaches_over_many_shards(store: Any) -> None:
    assert store.store.shards == SHARDS
    held = fences(store)
    rows = store.commit(all_of_them(WORK, f.SetTimer(ONE, 5)), *held)
    assert [row.run for row in rows] == NAMES
    assert store.outbox(EVERY) == store.outbox(list(reversed(EVERY))) == rows
    for shard in EVERY:
        mine = [run for run in NAMES if HOME[run] == shard]
        assert store.runs(shard=shard) == mine
        assert [row.run for row in store.outbox(shard)] == mine
        assert {row.run for row in store.timers(shard)} == set(mine)
    both = [run for run in NAMES if HOME[run] in (1, 2)]
    assert store.runs(shard=(1, 2)) == both
    assert [row.run for row in store.outbox([2, 1])] == both
    assert [row.run for row in store.outbox([2, 1], limit=3)] == both[:3]
    assert [row.run for row in store.outbox([2, 1], after=store.outbox([1, 2])[1].id)] == both[2:]
    assert len(store.timers((1, 2))) == len(both)
    assert store.outbox([]) == store.timers([]) == store.inbox([]) == []
    steps = [commit(1, e.Custom(2, 1, "x"), run=run) for run in reversed(NAMES)]
    store.commit(Batch(steps, done=[row.id for row in rows[:5]]), *reversed(held))
    assert store.outbox(EVERY) == rows[5:]
    assert [len(store.history(run)) for run in NAMES] == [2] * len(NAMES)


def test_timers_of_many_shards_come_by_due_time(store: Any) -> None:
    held = fences(store)
    dues = {run: 100 - i for i, run in enumerate(NAMES)}
    store.commit(
        Batch(
            [commit(0, *begin(run).commits[0].events, run=run, effects=(f.SetTimer(ONE, dues[run]),)) for run in NAMES]
        ),
        *held,
    )
    assert [row.due for row in store.timers(EVERY)] == sorted(dues.values())
    assert [row.run for row in store.timers(EVERY, until=91)] == NAMES[:-4:-1]
    assert [row.run for row in store.timers(EVERY, limit=2)] == NAMES[:-3:-1]


def test_every_run_of_a_batch_must_be_covered(store: Any) -> None:
    held = fences(store)
    with pytest.raises(StoreConflict) as refused:
        store.commit(all_of_them(WORK), held[0], held[3])
    assert (refused.value.kind, refused.value.shards) == ("LEASE_CONFLICT", (1, 2))
    with pytest.raises(StoreConflict) as refused:
        store.commit(all_of_them(WORK))
    assert refused.value.shards == tuple(EVERY)
    assert store.runs() == store.outbox(EVERY) == []


def test_who_has_lost_some_shards_learns_which_and_has_written_nothing(store: Any) -> None:
    held = fences(store)
    heirs = fences(store, "b", (1, 3), evict=True)
    for batch in (all_of_them(WORK), Batch(), Batch(done=[1])):
        with pytest.raises(StoreConflict) as refused:
            store.commit(batch, *held)
        assert (refused.value.kind, refused.value.shards) == ("LEASE_CONFLICT", (1, 3))
    assert store.runs() == store.outbox(EVERY) == []
    kept = [run for run in NAMES if HOME[run] in (0, 2)]
    store.commit(Batch([begin(run).commits[0] for run in kept]), held[0], held[2])
    assert store.runs() == kept
    step = Batch([commit(1, e.Custom(2, 1, "x"), run=run) for run in kept])
    with pytest.raises(StoreConflict) as refused:
        store.commit(step, *held)
    assert refused.value.shards == (1, 3), "a plain step is fenced off by all that is given as well"
    assert [len(store.history(run)) for run in kept] == [1] * len(kept)
    store.commit(step, held[0], held[2])
    store.commit(Batch([begin(run).commits[0] for run in NAMES if run not in kept]), *heirs)


def test_other_refusals_are_about_no_shard(store: Any) -> None:
    held = fences(store)
    with pytest.raises(StoreConflict) as refused:
        store.commit(Batch([commit(3, e.Custom(4, 0, "x"), run=NAMES[0])]), *held)
    assert (refused.value.kind, refused.value.shards) == ("STALE_VERSION", ())


def test_a_batch_of_nothing_without_a_fence_asks_whether_the_store_can_be_reached(store: Any) -> None:
    assert store.commit(Batch()) == []


def test_what_is_done_is_done_whoever_says_it(store: Any) -> None:
    rows = store.commit(all_of_them(WORK), *fences(store))
    (fence,) = fences(store, "a", [0])
    store.commit(Batch(done=[row.id for row in rows]), fence)
    assert store.outbox(EVERY) == []


def test_requests_wait_in_the_shard_of_their_run(store: Any) -> None:
    held = fences(store)
    requests = [InboxRequest(f"q-{run}", run, c.PauseRun(), i) for i, run in enumerate(NAMES)]
    for request in requests:
        store.submit(request)
    assert store.inbox(EVERY) == requests
    assert store.inbox(EVERY, limit=3) == requests[:3]
    assert store.inbox([3, 1]) == [request for request in requests if HOME[request.run] in (1, 3)]
    store.commit(Batch(answers=[InboxAnswer(request.id, result=request.at) for request in requests[1:]]), *held)
    assert store.inbox(EVERY) == requests[:1]
    assert store.submit(requests[5]) == InboxAnswer(requests[5].id, None, 5)


def test_runs_of_many_shards_are_forgotten_together(store: Any) -> None:
    held = fences(store)
    over = [commit(0, *begin(run).commits[0].events, run=run, status=RunStatus.COMPLETED) for run in NAMES[:10]]
    store.commit(Batch([*over, *begin(NAMES[10]).commits]), *held)
    store.forget(NAMES[:5], held[0])
    store.forget(NAMES[5:], *held, history=False)
    assert store.runs() == NAMES[5:11]
    heir = fences(store, "b", [2], evict=True)
    with pytest.raises(StoreConflict) as refused:
        store.forget(NAMES, *held)
    assert refused.value.shards == (2,)
    store.forget(NAMES, *heir)
    assert store.find_runs(RunQuery()) == store.find_runs(RunQuery(run=NAMES[10]))

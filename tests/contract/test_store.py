"""The port's contract, for every store there is: today the reference store.

A store that waits for something real needs a runner in place of `instantly`; the tests themselves stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from treadle.errors import StoreConflict
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.model.states import RunStatus
from treadle.store.memory import SHARD, MemoryStore
from treadle.store.port import Commit, Fence, Store
from treadle.testing.instant import instantly

RUN = RunId("r1")


def started(run: RunId = RUN, seq: int = 1, key: str | None = None) -> e.RunStarted:
    return e.RunStarted(seq, 0, run, "w", 1, "hash", None, idempotency_key=key)


def commit(seq: int, *events: e.Event, run: RunId = RUN, effects: tuple[f.Effect, ...] = ()) -> Commit:
    return Commit(run, seq, events, effects, RunStatus.RUNNING)


STORES: list[Callable[[], Store]] = [MemoryStore]


@pytest.fixture(params=STORES, ids=lambda made: made.__name__)
def store(request: pytest.FixtureRequest) -> Store:
    made: Store = request.param()
    return made


def held(store: Store) -> Fence:
    """The store's shard, leased for 100 ms from 0."""
    fence = instantly(store.lease(SHARD, "a", 0, 100))
    assert fence is not None
    return fence


def test_the_port_stays_small() -> None:
    verbs = [name for name in vars(Store) if not name.startswith("_")]
    assert len(verbs) <= 15


def test_history_is_what_was_committed_from_any_point_on(store: Store) -> None:
    fence = held(store)
    instantly(store.commit([commit(0, started(), e.RunPaused(2, 5, "ann"))], fence))
    instantly(store.commit([commit(2, e.RunResumed(3, 6, "ann"))], fence))
    assert [event.type for event in instantly(store.history(RUN))] == ["run.started", "run.paused", "run.resumed"]
    assert [event.seq for event in instantly(store.history(RUN, after=1))] == [2, 3]
    assert [event.seq for event in instantly(store.history(RUN, after=1, limit=1))] == [2]
    assert instantly(store.history(RunId("nobody"))) == []


def test_a_decision_on_an_old_version_is_refused_and_writes_nothing(store: Store) -> None:
    fence = held(store)
    other = RunId("r2")
    instantly(store.commit([commit(0, started())], fence))
    stale = commit(0, started())
    with pytest.raises(StoreConflict) as refused:
        instantly(store.commit([commit(0, started(other), run=other), stale], fence))
    assert refused.value.kind == "STALE_VERSION"
    assert instantly(store.find_run(other)) is None


def test_history_cannot_have_a_gap(store: Store) -> None:
    fence = held(store)
    with pytest.raises(StoreConflict, match="cannot follow 1"):
        instantly(store.commit([commit(0, started(), e.RunPaused(3, 5, "ann"))], fence))


def test_a_run_begins_with_its_start(store: Store) -> None:
    fence = held(store)
    with pytest.raises(StoreConflict, match="does not start it"):
        instantly(store.commit([commit(0, e.RunPaused(1, 5, "ann"))], fence))


def test_two_decisions_about_one_run_share_a_transaction(store: Store) -> None:
    fence = held(store)
    instantly(store.commit([commit(0, started()), commit(1, e.RunPaused(2, 0, "ann"))], fence))
    row = instantly(store.find_run(RUN))
    assert row is not None and row.seq == 2


def test_a_zombie_is_fenced_off(store: Store) -> None:
    fence = held(store)
    assert instantly(store.lease(SHARD, "b", 50, 100)) is None
    heir = instantly(store.lease(SHARD, "b", 100, 100))
    assert heir is not None and heir.epoch > fence.epoch
    with pytest.raises(StoreConflict) as refused:
        instantly(store.commit([commit(0, started())], fence))
    assert refused.value.kind == "LEASE_CONFLICT"
    instantly(store.commit([commit(0, started())], heir))


def test_renewing_a_lease_keeps_its_epoch_and_releasing_it_lets_others_in(store: Store) -> None:
    fence = held(store)
    assert instantly(store.lease(SHARD, "a", 90, 100)) == fence
    instantly(store.release(fence))
    heir = instantly(store.lease(SHARD, "b", 91, 100))
    assert heir is not None and heir.epoch == fence.epoch + 1
    instantly(store.release(fence))  # no longer the newest: changes nothing
    assert instantly(store.lease(SHARD, "c", 92, 100)) is None


def test_effects_stay_in_the_outbox_until_they_are_acknowledged(store: Store) -> None:
    fence = held(store)
    work = (f.RunTask(TokenId(1), 1, "a", {}), f.CloseGate(TokenId(2)))
    rows = instantly(store.commit([commit(0, started(), effects=work)], fence))
    assert [row.effect for row in rows] == list(work)
    assert instantly(store.outbox(SHARD)) == rows
    instantly(store.acknowledge([rows[0].id], fence))
    instantly(store.acknowledge([rows[0].id], fence))
    assert instantly(store.outbox(SHARD)) == rows[1:]
    assert instantly(store.outbox(SHARD, after=rows[1].id)) == []


def test_timers_are_found_by_due_time_until_they_fire_or_are_cleared(store: Store) -> None:
    fence = held(store)
    one, two, three = TimerId(1), TimerId(2), TimerId(3)
    effects = (f.SetTimer(one, 30), f.SetTimer(two, 20), f.SetTimer(three, 10), f.SetTimer(three, 40))
    assert instantly(store.commit([commit(0, started(), effects=effects)], fence)) == []
    assert [row.timer for row in instantly(store.timers(SHARD))] == [two, one, three]
    assert [row.timer for row in instantly(store.timers(SHARD, until=20))] == [two]
    fired = commit(1, e.TimerFired(2, 20, two, "wait"), effects=(f.ClearTimer(three),))
    instantly(store.commit([fired], fence))
    assert [row.timer for row in instantly(store.timers(SHARD))] == [one]


def test_an_idempotency_key_names_one_run_of_a_workflow(store: Store) -> None:
    fence = held(store)
    instantly(store.commit([commit(0, started(key="k"))], fence))
    row = instantly(store.find_run_by_key("w", "k"))
    assert row is not None and row.run == RUN
    assert instantly(store.find_run_by_key("other", "k")) is None
    other = RunId("r2")
    with pytest.raises(StoreConflict) as refused:
        instantly(store.commit([commit(0, started(other, key="k"), run=other)], fence))
    assert refused.value.kind == "DUPLICATE"


def test_only_runs_that_may_still_do_something_are_unfinished(store: Store) -> None:
    fence = held(store)
    over = RunId("r2")
    ended = Commit(over, 0, (started(over), e.RunCancelled(2, 0, "ann")), (), RunStatus.CANCELLED)
    instantly(store.commit([commit(0, started()), ended], fence))
    assert [row.run for row in instantly(store.unfinished(SHARD))] == [RUN]


def test_deploying_the_same_again_gives_the_same_version(store: Store) -> None:
    assert instantly(store.put_workflow("w", "h1", {"a": 1})).version == 1
    assert instantly(store.put_workflow("w", "h1", {"a": 1})).version == 1
    assert instantly(store.put_workflow("w", "h2", {"a": 2})).version == 2
    newest = instantly(store.get_workflow("w"))
    first = instantly(store.get_workflow("w", 1))
    assert newest is not None and newest.definition == {"a": 2}
    assert first is not None and first.definition == {"a": 1}
    assert instantly(store.get_workflow("w", 3)) is None
    assert instantly(store.get_workflow("nobody")) is None

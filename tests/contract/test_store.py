"""The port's contract for what an engine commits, for every store there is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.making import ONE, OTHER, RUN, THREE, TWO, WORK, begin, commit, ended, started
from treadle.errors import StoreConflict
from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RUN_OPEN, RunStatus
from treadle.store.port import Batch, Commit, RunQuery, Store
from treadle.store.rows import SHARD


def test_the_port_stays_small() -> None:
    verbs = [name for name in vars(Store) if not name.startswith("_")]
    assert len(verbs) <= 16


def test_history_is_what_was_committed_from_any_point_on(store: Any) -> None:
    fence = store.held()
    store.commit(Batch([commit(0, started(), e.RunPaused(2, 5, "ann"))]), fence)
    store.commit(Batch([commit(2, e.RunResumed(3, 6, "ann"))]), fence)
    assert store.history(RUN) == [started(), e.RunPaused(2, 5, "ann"), e.RunResumed(3, 6, "ann")]
    assert [event.seq for event in store.history(RUN, after=1)] == [2, 3]
    assert [event.seq for event in store.history(RUN, after=1, limit=1)] == [2]
    assert store.history(RunId("nobody")) == []


def test_a_decision_of_thousands_of_events_reads_back_whole_from_any_point_and_trimmed(store: Any) -> None:
    fence = store.held()
    big = "x" * 70_000  # it leaves its block, and comes back
    many = [started(), *(e.Custom(seq, 7, "said", big if seq == 1_500 else {"n": seq}) for seq in range(2, 3_001))]
    end = e.RunCompleted(3_001, 9, None)
    store.commit(Batch([commit(0, *many), commit(3_000, end, status=RunStatus.COMPLETED)]), fence)
    whole = [*many, end]
    assert store.history(RUN) == whole
    assert store.history(RUN, after=1_499, limit=2) == whole[1_499:1_501]
    store.forget([RUN], fence, history=False)
    assert store.history(RUN) == [whole[0], whole[-1]]


def test_a_decision_on_an_old_version_is_refused_and_writes_nothing(store: Any) -> None:
    fence = store.held()
    store.commit(begin(), fence)
    batch = Batch([commit(0, started(OTHER), run=OTHER, effects=(WORK, f.SetTimer(ONE, 5))), commit(0, started())])
    with pytest.raises(StoreConflict, match="run r1 is at 1, the decision saw 0") as refused:
        store.commit(batch, fence)
    assert refused.value.kind == "STALE_VERSION"
    assert store.runs(run=OTHER) == []
    assert store.outbox(SHARD) == store.timers(SHARD) == []


def test_a_stale_step_among_good_ones_undoes_them_all(store: Any) -> None:
    fence = store.held()
    store.commit(Batch([*begin().commits, *begin(OTHER).commits]), fence)
    good = commit(1, e.RunPaused(2, 0, "ann"), run=OTHER, status=RunStatus.PAUSED)
    with pytest.raises(StoreConflict, match="run r1 is at 1, the decision saw 5"):
        store.commit(Batch([good, commit(5, e.RunPaused(6, 0, "ann"))]), fence)
    (row,) = store.find_runs(RunQuery(run=OTHER))
    assert (row.seq, row.status) == (1, RunStatus.RUNNING)


def test_history_cannot_have_a_gap(store: Any) -> None:
    with pytest.raises(StoreConflict, match="cannot follow 1"):
        store.commit(Batch([commit(0, started(), e.RunPaused(3, 5, "ann"))]), store.held())


def test_a_run_begins_with_its_start(store: Any) -> None:
    with pytest.raises(StoreConflict, match="does not start it"):
        store.commit(Batch([commit(0, e.RunPaused(1, 5, "ann"))]), store.held())


def test_a_run_nobody_started_cannot_go_on(store: Any) -> None:
    with pytest.raises(StoreConflict, match="run r1 is at 0, the decision saw 3"):
        store.commit(Batch([commit(3, e.RunPaused(4, 5, "ann"))]), store.held())


def test_two_decisions_about_one_run_share_a_transaction(store: Any) -> None:
    fence = store.held()
    paused = commit(1, e.RunPaused(2, 7, "ann"), status=RunStatus.PAUSED, busy=True)
    store.commit(Batch([commit(0, started()), paused]), fence)
    (row,) = store.find_runs(RunQuery(run=RUN))
    assert (row.seq, row.status, row.busy, row.changed) == (2, RunStatus.PAUSED, True, 7)
    assert [event.seq for event in store.history(RUN)] == [1, 2]


def test_a_decision_without_events_still_has_effects_and_a_status(store: Any) -> None:
    fence = store.held()
    store.commit(begin(at=3), fence)
    (row,) = store.commit(Batch([commit(1, effects=(WORK,), busy=True)]), fence)
    assert row.effect == WORK
    (run,) = store.find_runs(RunQuery(run=RUN))
    assert (run.seq, run.changed, run.busy) == (1, 3, True)


def test_a_run_keeps_its_seq_through_steps_pauses_and_its_end(store: Any) -> None:
    fence = store.held()
    store.commit(begin(busy=True), fence)
    walk = [
        (RunStatus.RUNNING, True),
        (RunStatus.RUNNING, False),
        (RunStatus.PAUSED, False),
        (RunStatus.PAUSED, False),
        (RunStatus.COMPLETED, False),
        (RunStatus.COMPLETED, False),
        (RunStatus.RUNNING, True),
    ]
    for seq, (status, busy) in enumerate(walk, 1):
        store.commit(Batch([commit(seq, e.Custom(seq + 1, seq, "x"), status=status, busy=busy)]), fence)
        (row,) = store.find_runs(RunQuery(run=RUN))
        assert (row.seq, row.status, row.busy, row.changed) == (seq + 1, status, busy, seq)


def test_a_zombie_is_fenced_off(store: Any) -> None:
    fence = store.held()
    assert store.lease(SHARD, "b", 50, 100) is None
    heir = store.lease(SHARD, "b", 100, 100)
    assert heir is not None and heir.epoch > fence.epoch
    for batch in (begin(), Batch(done=[1]), Batch()):
        with pytest.raises(StoreConflict) as refused:
            store.commit(batch, fence)
        assert refused.value.kind == "LEASE_CONFLICT"
    with pytest.raises(StoreConflict):
        store.forget([RUN], fence)
    store.commit(begin(), heir)


def test_a_batch_of_nothing_asks_whether_the_store_works(store: Any) -> None:
    assert store.commit(Batch(), store.held()) == []


def test_renewing_a_lease_keeps_its_epoch_and_releasing_it_lets_others_in(store: Any) -> None:
    fence = store.held()
    assert store.lease(SHARD, "a", 90, 100) == fence
    store.release(fence)
    heir = store.lease(SHARD, "b", 91, 100)
    assert heir is not None and heir.epoch == fence.epoch + 1
    store.release(fence)  # no longer the newest: changes nothing
    assert store.lease(SHARD, "c", 92, 100) is None


def test_who_knows_that_the_holder_is_gone_evicts_it(store: Any) -> None:
    fence = store.held()
    heir = store.lease(SHARD, "b", 1, 100, evict=True)
    assert heir is not None and heir.epoch == fence.epoch + 1
    again = store.lease(SHARD, "b", 2, 100, evict=True)
    assert again.epoch == heir.epoch + 1, "its own earlier life is gone as well"
    with pytest.raises(StoreConflict):
        store.commit(begin(), heir)


def test_shards_are_leased_one_by_one(store: Any) -> None:
    fence = store.held()
    other = store.lease(7, "b", 0, 100)
    assert other is not None and other.shard == 7
    store.commit(begin(RUN, WORK), fence)
    assert store.outbox(7) == store.timers(7) == store.inbox(7) == []
    assert store.runs(shard=7) == []


def test_effects_stay_in_the_outbox_until_they_are_done(store: Any) -> None:
    fence = store.held()
    work = (WORK, f.StopTask(TokenId(2), 1), f.Publish("x", {"y": [1, 2.5, None]}))
    rows = store.commit(begin(RUN, *work), fence)
    assert [row.effect for row in rows] == list(work)
    assert [row.run for row in rows] == [RUN] * 3
    assert store.outbox(SHARD) == rows
    store.commit(Batch(done=[rows[0].id]), fence)
    store.commit(Batch(done=[rows[0].id]), fence)
    assert store.outbox(SHARD) == rows[1:]
    assert store.outbox(SHARD, limit=1) == rows[1:2]
    assert store.outbox(SHARD, after=rows[2].id) == []


def test_an_id_of_the_outbox_is_never_given_twice(store: Any) -> None:
    fence = store.held()
    (first,) = store.commit(begin(RUN, WORK), fence)
    (second,) = store.commit(Batch([commit(1, effects=(WORK,))], done=[first.id]), fence)
    assert second.id > first.id
    store.commit(Batch(done=[first.id]), fence)
    assert store.outbox(SHARD) == [second]


def test_a_parked_row_waits_until_it_is_revived(store: Any) -> None:
    fence = store.held()
    one, two = store.commit(begin(RUN, WORK, f.Publish("x")), fence)
    store.commit(Batch(parked=[(one.id, "410 Gone")]), fence)
    assert store.outbox(SHARD) == [two]
    (dead,) = store.outbox(SHARD, parked=True)
    assert (dead.id, dead.effect, dead.parked) == (one.id, WORK, "410 Gone")
    store.commit(Batch(revived=[one.id]), fence)
    assert store.outbox(SHARD) == [one, two]
    store.commit(Batch(parked=[(one.id, "again")]), fence)
    store.commit(Batch(done=[one.id], parked=[(99, "unknown")], revived=[98]), fence)
    assert store.outbox(SHARD, parked=True) == []


def test_timers_are_found_by_due_time_until_they_fire_or_are_cleared(store: Any) -> None:
    fence = store.held()
    effects = (f.SetTimer(ONE, 30), f.SetTimer(TWO, 20), f.SetTimer(THREE, 10), f.SetTimer(THREE, 40))
    assert store.commit(begin(RUN, *effects), fence) == []
    assert [row.timer for row in store.timers(SHARD)] == [TWO, ONE, THREE]
    assert [row.timer for row in store.timers(SHARD, until=20)] == [TWO]
    assert [row.timer for row in store.timers(SHARD, limit=2)] == [TWO, ONE]
    store.commit(Batch([commit(1, e.TimerFired(2, 20, TWO, "wait"), effects=(f.ClearTimer(THREE),))]), fence)
    assert [(row.run, row.timer, row.due) for row in store.timers(SHARD)] == [(RUN, ONE, 30)]


def test_a_timer_set_by_the_decision_that_fired_it_lives(store: Any) -> None:
    fence = store.held()
    store.commit(begin(RUN, f.SetTimer(ONE, 30)), fence)
    store.commit(Batch([commit(1, e.TimerFired(2, 30, ONE, "wait"), effects=(f.SetTimer(ONE, 60),))]), fence)
    assert [row.due for row in store.timers(SHARD)] == [60]
    again = (f.ClearTimer(ONE), f.SetTimer(ONE, 70), f.ClearTimer(ONE))
    store.commit(Batch([commit(2, e.Custom(3, 0, "x"), effects=again)]), fence)
    assert store.timers(SHARD) == []


def test_the_timers_of_a_paused_run_stand_still(store: Any) -> None:
    fence = store.held()
    store.commit(Batch([*begin(RUN, f.SetTimer(ONE, 5)).commits, *begin(OTHER, f.SetTimer(ONE, 9)).commits]), fence)
    store.commit(Batch([commit(1, e.RunPaused(2, 1, "ann"), status=RunStatus.PAUSED)]), fence)
    assert [row.run for row in store.timers(SHARD)] == [OTHER]
    moved = commit(2, e.RunResumed(3, 8, "ann", 7), effects=(f.SetTimer(ONE, 12),))
    store.commit(Batch([moved]), fence)
    assert [(row.run, row.due) for row in store.timers(SHARD)] == [(OTHER, 9), (RUN, 12)]


def test_an_idempotency_key_names_one_run_of_a_workflow(store: Any) -> None:
    fence = store.held()
    store.commit(begin(key="k"), fence)
    assert store.runs(workflow="w", idempotency_key="k") == [RUN]
    assert store.runs(workflow="other", idempotency_key="k") == []
    with pytest.raises(StoreConflict) as refused:
        store.commit(begin(OTHER, key="k"), fence)
    assert refused.value.kind == "DUPLICATE"
    third = RunId("r3")
    with pytest.raises(StoreConflict) as refused:
        store.commit(Batch([*begin(OTHER, key="l").commits, *begin(third, key="l").commits]), fence)
    assert refused.value.kind == "DUPLICATE"
    store.commit(Batch([*begin(OTHER, key="k", workflow="v").commits, *begin(third).commits]), fence)
    assert store.runs() == [RUN, OTHER, third]


def test_only_runs_that_may_still_do_something_are_open(store: Any) -> None:
    fence = store.held()
    store.commit(begin(), fence)
    store.commit(ended(OTHER, RunStatus.CANCELLED), fence)
    assert store.runs(statuses=RUN_OPEN, shard=SHARD) == [RUN]


def test_many_decisions_come_back_in_their_order(store: Any) -> None:
    fence = store.held()
    names = [RunId(f"run-{i}") for i in range(50)]
    rows = store.commit(Batch([commit(0, started(name), run=name, effects=(WORK,)) for name in names]), fence)
    assert [row.run for row in rows] == names
    steps = [Commit(name, 1, [e.Custom(2, 1, "x", {"n": name})], (), RunStatus.RUNNING) for name in reversed(names)]
    store.commit(Batch(steps, done=[row.id for row in rows]), fence)
    assert store.runs(limit=100) == names
    assert store.history(names[7])[1] == e.Custom(2, 1, "x", {"n": names[7]})
    assert store.outbox(SHARD) == []

"""Runs are counted by workflow and status; a commit tells the numbers of runs it has created; a dead letter is dropped
by saying that it is done with."""

from __future__ import annotations

from typing import Any

from tests.contract.making import OTHER, RUN, WORK, begin, ended
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, CommitRows, RunQuery
from treadle.store.rows import SHARD
from treadle.store.service import RunCount


def test_runs_are_counted_by_workflow_and_status_since_an_instant(store: Any) -> None:
    fence = store.held()
    assert store.count_runs() == []
    store.commit(begin(RUN, workflow="a"), fence)
    store.commit(ended(OTHER, RunStatus.CANCELLED, workflow="b"), fence)
    one, other = RunCount("a", RunStatus.RUNNING, 1), RunCount("b", RunStatus.CANCELLED, 1)
    assert store.count_runs() == [one, other]
    assert store.count_runs("b") == [other]
    assert store.count_runs("a", 0) == [one]
    assert store.count_runs("a", 1) == []


def test_a_dead_letter_that_is_done_with_is_gone(store: Any) -> None:
    fence = store.held()
    (row,) = store.commit(begin(RUN, WORK), fence)
    store.commit(Batch(parked=[(row.id, "nobody answers")]), fence)
    assert [letter.id for letter in store.outbox(SHARD, parked=True)] == [row.id]
    store.commit(Batch(done=[row.id]))
    assert store.outbox(SHARD, parked=True) == []


def test_a_commit_tells_the_numbers_of_the_runs_it_has_created_or_nothing(store: Any) -> None:
    fence = store.held()
    first = store.commit(Batch([*begin(RUN, WORK, tags=("a", "b")).commits, *begin(OTHER, tags=("a",)).commits]), fence)
    second = store.commit(begin(RunId("r3")), fence)
    for told, runs in ((first, [RUN, OTHER]), (second, [RunId("r3")])):
        known = told.numbers if isinstance(told, CommitRows) else {}
        assert known in ({}, {run: store.find_runs(RunQuery(run=run))[0].number for run in runs})
    assert [row.effect for row in first] == [WORK]

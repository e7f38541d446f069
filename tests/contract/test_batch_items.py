"""Starts that became items of a batch (6.7): they and their keys lead to the batch's run, for as long as it is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.making import OTHER, RUN, begin, commit, started
from treadle.errors import StoreConflict
from treadle.model import events as e
from treadle.model.effects import NoteItem
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.store.port import Batch, Commit, Fence

SECOND, THIRD = RunId("s2"), RunId("s3")


def joined(seq: int, start: RunId, key: str | None, run: RunId = RUN, workflow: str = "w") -> Commit:
    """A start becomes an item of a run."""
    event = e.RunQueued(seq + 1, 5, run, workflow, 1, "hash", {}, idempotency_key=key, alias=start)
    return commit(seq, event, run=run, effects=(NoteItem(start, workflow, key),), status=RunStatus.QUEUED)


@pytest.fixture
def fence(store: Any) -> Fence:
    held: Fence = store.held()
    store.commit(begin(key="k1"), held)
    return held


def test_an_item_and_its_key_lead_to_the_run_of_the_batch(store: Any, fence: Fence) -> None:
    rows = store.commit(Batch([joined(1, SECOND, "k2"), joined(2, THIRD, None)]), fence)
    assert not rows, "nobody has to be told"
    assert store.runs(workflow="w", idempotency_key="k1") == [RUN]
    assert store.runs(workflow="w", idempotency_key="k2") == [RUN]
    assert store.runs(idempotency_key="k2") == [RUN]
    assert store.runs(workflow="other", idempotency_key="k2") == []
    assert store.runs(item=SECOND) == store.runs(item=THIRD) == [RUN]
    assert store.runs(item=RUN) == store.runs(run=SECOND) == [], "an item is no run"


def test_a_key_of_an_item_is_taken(store: Any, fence: Fence) -> None:
    store.commit(Batch([joined(1, SECOND, "k2")]), fence)
    for refused in (
        begin(OTHER, key="k2"),
        Batch([joined(2, THIRD, "k2")]),
        Batch([joined(2, THIRD, "k1")]),
        Batch([joined(2, THIRD, "k3"), joined(3, RunId("s4"), "k3")]),
        Batch([commit(0, started(OTHER, key="k3"), run=OTHER), joined(2, THIRD, "k3")]),
    ):
        with pytest.raises(StoreConflict, match="DUPLICATE"):
            store.commit(refused, fence)
    assert store.runs() == [RUN] and store.runs(item=THIRD) == []
    store.commit(begin(OTHER, key="k2", workflow="other"), fence)
    assert sorted(store.runs(idempotency_key="k2")) == [RUN, OTHER], "of two workflows"
    assert store.runs(workflow="other", idempotency_key="k2") == [OTHER]


def test_items_are_kept_as_long_as_their_run(store: Any, fence: Fence) -> None:
    store.commit(Batch([joined(1, SECOND, "k2")]), fence)
    store.commit(Batch([commit(2, e.RunCancelled(3, 9, "me", ""), status=RunStatus.CANCELLED)]), fence)
    store.forget([RUN], fence, history=False)
    assert store.runs(item=SECOND) == store.runs(workflow="w", idempotency_key="k2") == [RUN], "it is still listed"
    store.forget([RUN], fence)
    assert store.runs(item=SECOND) == store.runs(workflow="w", idempotency_key="k2") == []
    store.commit(begin(OTHER, key="k2"), fence)
    assert store.runs(workflow="w", idempotency_key="k2") == [OTHER], "the key is free again"


def test_items_are_among_the_rows_beside_a_run(store: Any, fence: Fence) -> None:
    store.commit(Batch([joined(1, SECOND, "k2"), joined(2, THIRD, None)]), fence)
    assert store.beside([RUN]).items == {RUN: {SECOND: "k2", THIRD: None}}

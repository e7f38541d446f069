"""Entries of logs that are written with decisions: there if and only if the decisions are, in one chain with others."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.making import OTHER, RUN, begin
from treadle.errors import StoreConflict
from treadle.store.port import Batch, Entry
from treadle.store.service import Changes


def entry(text: str, log: str = "audit") -> Entry:
    return Entry(log, text[:1], {"text": text}, 5)


def heard(store: Any, log: str = "audit") -> list[tuple[int, str]]:
    return [(one.id, one.body["text"]) for one in store.entries(log)]


def test_entries_of_a_batch_continue_the_chain(store: Any) -> None:
    fence = store.held()
    store.write(Changes(entries=[entry("before")]))
    store.commit(replace(begin(), entries=[entry("one"), entry("sent", "delivery:hook"), entry("two")]), fence)
    store.write(Changes(entries=[entry("after")]))
    assert heard(store) == [(4, "after"), (3, "two"), (2, "one"), (1, "before")]
    assert [text for _, text in heard(store, "delivery:hook")] == ["sent"]
    assert store.verify_log("audit").problems == []
    assert store.runs(run=RUN) == [RUN]


def test_a_batch_of_entries_alone_is_written(store: Any) -> None:
    fence = store.held()
    assert store.commit(Batch(entries=[entry("alone")]), fence) == []
    assert heard(store) == [(1, "alone")]


def test_entries_of_a_refused_batch_are_not_there(store: Any) -> None:
    fence = store.held()
    store.commit(begin(), fence)
    refused = Batch([*begin(OTHER).commits, *begin().commits], entries=[entry("no")])
    with pytest.raises(StoreConflict, match="STALE_VERSION"):
        store.commit(refused, fence)
    assert heard(store) == []
    assert store.verify_log("audit").count == 0


def test_an_entry_that_cannot_be_packed_leaves_nothing(store: Any) -> None:
    fence = store.held()
    with pytest.raises((TypeError, OverflowError)):
        store.commit(replace(begin(), entries=[Entry("audit", "x", object(), 5)]), fence)
    assert store.runs(run=RUN) == []
    assert heard(store) == []

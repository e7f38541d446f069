"""The port's contract for requests and their answers, for every store there is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.making import OTHER, RUN, begin, commit, request
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.errors import Rejection
from treadle.store.port import KEPT, Batch, InboxAnswer, InboxRequest
from treadle.store.rows import SHARD


def test_a_request_waits_until_it_is_answered(store: Any) -> None:
    fence = store.held()
    start = InboxRequest("b", OTHER, c.StartRun(OTHER, {"x": 1}, tags=("t",)), 7, "w")
    assert store.submit(request("a")) is None
    assert store.submit(start) is None
    assert store.submit(request("a")) is None, "asking again is harmless"
    assert store.inbox(SHARD) == [request("a"), start]
    assert store.inbox(SHARD, limit=1) == [request("a")]
    refused = InboxAnswer("a", Rejection("NOT_FOUND", "no such run"))
    store.commit(Batch(answers=[refused]), fence)
    assert store.inbox(SHARD) == [start]
    assert store.submit(request("a")) == refused
    store.commit(Batch(begin(OTHER).commits, answers=[InboxAnswer("b", result={"run": "r2"})]), fence)
    assert store.inbox(SHARD) == []
    assert store.submit(start) == InboxAnswer("b", None, {"run": "r2"})


def test_an_answer_is_read_and_a_request_that_got_lost_is_asked_again(store: Any) -> None:
    fence = store.held()
    store.submit(request("a"))
    assert store.answer(request("a")) is None
    store.commit(Batch(answers=[InboxAnswer("a", result=1)]), fence)
    assert store.answer(request("a")) == InboxAnswer("a", result=1)
    assert store.answer(request("b")) is None
    assert [waiting.id for waiting in store.inbox(SHARD)] == ["b"]


def test_the_first_answer_is_kept_and_unknown_requests_have_none(store: Any) -> None:
    fence = store.held()
    store.submit(request("a"))
    store.commit(
        Batch(answers=[InboxAnswer("a", result=1), InboxAnswer("a", result=2), InboxAnswer("z", result=3)]), fence
    )
    store.commit(Batch(answers=[InboxAnswer("a", result=4)]), fence)
    assert store.submit(request("a")) == InboxAnswer("a", result=1)
    assert store.submit(request("z")) is None


def test_requests_whose_sender_found_no_engine_are_listed_with_their_answers(store: Any) -> None:
    fence = store.held()
    ids = [f"{KEPT}1", f"{KEPT}2", "3", f"{KEPT}4"]
    for id in ids:
        store.submit(request(id, OTHER if id.endswith("4") else RUN))
    refused = InboxAnswer(f"{KEPT}1", Rejection("INVALID_STATE", "the run has ended"))
    store.commit(Batch(answers=[refused, InboxAnswer(f"{KEPT}4", result=1)]), fence)
    assert store.kept() == [
        (request(f"{KEPT}4", OTHER), InboxAnswer(f"{KEPT}4", result=1)),
        (request(f"{KEPT}2"), None),
        (request(f"{KEPT}1"), refused),
    ]
    assert [asked.id for asked, _ in store.kept(RUN)] == [f"{KEPT}2", f"{KEPT}1"]
    assert [asked.id for asked, _ in store.kept(limit=1)] == [f"{KEPT}4"]
    assert store.kept(request="3") == [(request("3"), None)], "whoever knows an id may ask for it"
    assert store.kept(request="5") == []


def test_a_refused_batch_answers_nothing(store: Any) -> None:
    fence = store.held()
    store.submit(request("a"))
    stale = commit(3, e.RunPaused(4, 0, "ann"))
    with pytest.raises(Exception, match="STALE_VERSION"):
        store.commit(Batch([stale], answers=[InboxAnswer("a", result=1)]), fence)
    assert store.inbox(SHARD) == [request("a")]


def test_a_request_for_a_dead_letter_waits_like_any_other(store: Any) -> None:
    wish = InboxRequest("q", RUN, None, 5, None, 7)
    assert store.submit(wish) is None
    assert store.inbox(SHARD) == [wish]

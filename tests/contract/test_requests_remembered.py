"""Answers to commands that are given again, for every store there is: kept with the decision, found, kept by time."""

from __future__ import annotations

from typing import Any

from tests.contract.making import OTHER, RUN, begin, commit, ended
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.errors import Rejection
from treadle.model.states import RunStatus
from treadle.store.port import Batch, InboxAnswer, InboxRequest, KnownRequest
from treadle.store.rows import SHARD


def asked(id: str, at: int = 0, print: str = "f") -> InboxRequest:
    return InboxRequest(id, RUN, None, at, fingerprint=print)


def answered(id: str, at: int = 0, result: Any = "done", rejection: Rejection | None = None) -> InboxAnswer:
    return InboxAnswer(id, rejection, result, RUN, asked(id, at))


def test_an_answer_is_kept_with_its_decision_though_nobody_put_the_request_into_the_inbox(store: Any) -> None:
    fence = store.held()
    started = begin()
    store.commit(Batch(started.commits, answers=[answered("a")]), fence)
    assert store.find_request(RUN, "a") == KnownRequest(InboxAnswer("a", None, "done"), "f")
    assert store.inbox(SHARD) == []
    assert store.find_request(RUN, "b") is None
    again = InboxRequest("a", RUN, c.PauseRun("no"), 5, fingerprint="f")
    assert store.submit(again) == InboxAnswer("a", None, "done"), "another node finds it, too"
    assert store.answer(again) == InboxAnswer("a", None, "done")


def test_a_rejection_is_kept_without_a_decision(store: Any) -> None:
    fence = store.held()
    refused = Rejection("NOT_FOUND", "no such run")
    store.commit(Batch(answers=[answered("a", result=None, rejection=refused)]), fence)
    known = store.find_request(RUN, "a")
    assert (known.answer.rejection, known.fingerprint) == (refused, "f")


def test_the_first_answer_counts(store: Any) -> None:
    fence = store.held()
    store.commit(Batch(answers=[answered("a", result=1)]), fence)
    store.commit(Batch(answers=[answered("a", result=2)]), fence)
    assert store.find_request(RUN, "a").answer.result == 1


def test_a_request_that_came_into_the_inbox_meanwhile_is_answered_by_it(store: Any) -> None:
    fence = store.held()
    wish = InboxRequest("a", RUN, c.PauseRun("no"), 5, fingerprint="f")
    assert store.submit(wish) is None
    assert store.find_request(RUN, "a") == KnownRequest(None, "f")
    assert store.inbox(SHARD) == [wish]
    store.commit(Batch(answers=[answered("a")]), fence)
    assert store.inbox(SHARD) == []
    assert store.submit(wish) == InboxAnswer("a", None, "done")


def test_a_batch_has_answers_of_both_kinds(store: Any) -> None:
    fence = store.held()
    store.commit(begin(OTHER), fence)
    store.submit(InboxRequest("plain", OTHER, c.PauseRun("no"), 5))
    paused = commit(1, e.RunPaused(2, 3, "x"), run=OTHER, status=RunStatus.PAUSED)
    plain = InboxAnswer("plain", None, "p", OTHER)
    store.commit(Batch([paused], answers=[plain, answered("a"), answered("b", result=[1])]), fence)
    assert store.find_request(OTHER, "plain") == KnownRequest(InboxAnswer("plain", None, "p"), None)
    assert [store.find_request(RUN, id).answer.result for id in "ab"] == ["done", [1]]


def test_a_refused_batch_leaves_no_answer(store: Any) -> None:
    fence = store.held()
    store.commit(begin(), fence)
    stale = commit(7, e.RunPaused(8, 3, "x"), status=RunStatus.PAUSED)
    try:
        store.commit(Batch([stale], answers=[answered("a")]), fence)
    except Exception as problem:
        assert "STALE_VERSION" in str(problem)
    else:
        raise AssertionError("the batch was made on another state")
    assert store.find_request(RUN, "a") is None


def test_remembered_answers_outlive_their_run_and_are_dropped_by_time(store: Any) -> None:
    fence = store.held()
    store.commit(Batch(ended().commits, answers=[answered("old", at=10), answered("new", at=20)]), fence)
    store.submit(InboxRequest("plain", RUN, c.PauseRun("no"), 5))
    store.commit(Batch(answers=[InboxAnswer("plain", None, "p", RUN)]), fence)
    store.submit(InboxRequest("waits", OTHER, c.PauseRun("no"), 1, fingerprint="f"))
    store.forget([RUN], fence)
    assert store.find_request(RUN, "plain") is None
    assert store.find_request(RUN, "old") is not None
    assert store.drop_notes(20) == 1
    assert store.find_request(RUN, "old") is None
    assert store.find_request(RUN, "new") is not None
    assert [request.id for request in store.inbox(SHARD)] == ["waits"], "what is not answered stays"

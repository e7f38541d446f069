"""Starts that wait for one another, where a scenario cannot show it: deliveries that come twice, and books by hand."""

from __future__ import annotations

from tests.driving import RUN, TASK, Driven, graph_of
from treadle.graph.execution_graph import GraphFlow
from treadle.kernel.admission import arrive
from treadle.kernel.book import StartBook
from treadle.kernel.start_place import StartKeys, StartPlace
from treadle.model import commands as c
from treadle.model.definition import Debounce, RunBatch, RunConcurrency, RunRate
from treadle.model.ids import RunId
from treadle.model.references import EntityRef

KEYS = StartKeys("", "", "", "")


def place(run: str, due: int | None = None, **limits: object) -> StartPlace:
    fields = dict.fromkeys(("concurrency", "rate", "debounce", "batch"), None) | limits
    flow = GraphFlow(**fields, concurrency_key=None, rate_key=None, group_key=None)
    return StartPlace(RunId(run), 1, flow, KEYS, due=due)


def test_a_start_that_is_delivered_twice_is_one_item() -> None:
    driven = Driven(graph_of({"batch": {"size": 3, "within_ms": 100}, "nodes": {"a": TASK}}))
    driven.do(c.StartRun(RUN, {"id": 1}, queued="batch", due=1_100))
    for _ in range(2):
        driven.do(c.JoinBatch(c.StartRun(RunId("run-2"), {"id": 2})))
    driven.do(c.JoinBatch(c.StartRun(RUN, {"id": 1})))
    assert driven.state.items == [{"id": 1}, {"id": 2}]


def test_a_start_with_the_key_of_an_item_is_no_further_item() -> None:
    driven = Driven(graph_of({"batch": {"size": 9, "within_ms": 100}, "nodes": {"a": TASK}}))
    driven.do(c.StartRun(RUN, 1, idempotency_key="first", queued="batch", due=1_100))
    for number, key in enumerate(("first", "second", "second", None, None), 2):
        driven.do(c.JoinBatch(c.StartRun(RunId(f"run-{number}"), number, idempotency_key=key)))
    assert driven.state.items == [1, 3, 5, 6]


def test_the_entity_of_a_queued_run_is_not_moved() -> None:
    driven = Driven(graph_of({"concurrency": {"limit": 1}, "nodes": {"a": TASK}}))
    driven.do(c.StartRun(RUN, {}, queued="concurrency", entity=EntityRef("e", "order")))
    refused = driven.do(c.MoveEntity(section="inbox")).rejection
    assert refused is not None and "its entity enters when the run starts" in refused.message


def test_a_start_that_is_being_written_counts_although_older_ones_expire() -> None:
    book, rate = StartBook(), RunRate(limit=1, per_ms=100)
    book.start(place("a", rate=rate), 1_000)
    book.rates.marked("", 1_100, row=1)
    book.start(place("b", rate=rate), 1_100)
    assert book.rates.expire(1_100) == [1]
    assert book.next_start(place("c", rate=rate), 1_100) == 1_200


def test_a_batch_takes_as_many_starts_as_it_has_places_for_also_while_they_are_being_written() -> None:
    book, batch = StartBook(), RunBatch(size=3, within_ms=100)
    first = place("a", 1_100, batch=batch)
    book.queue(first)
    verdicts = []
    for name in "bcd":
        verdicts.append(arrive(book, place(name, batch=batch), 1_010).outcome)
        book.join(first)
    assert verdicts == ["join", "join", "queue"]


def test_a_batch_is_full_when_its_items_are_written_whoever_came_meanwhile() -> None:
    book, batch = StartBook(), RunBatch(size=2, within_ms=100)
    first, second = place("a", 1_100, batch=batch), place("b", 1_120, batch=batch)
    book.queue(first)
    book.join(first)
    book.queue(second)
    assert book.joined(first, 2)


def test_the_last_of_a_flurry_starts_after_those_it_replaces_have_ended() -> None:
    book, flurry = StartBook(), Debounce(key="$.k", ms=100)
    first, second, third = (place(name, 1_100 + at, debounce=flurry) for at, name in enumerate("abc"))
    for one in (first, second, third):
        book.queue(one)
    assert book.take_due(1_200) is None and book.wake_at() is None
    book.leave(second.run)
    assert book.take_due(1_200) is None
    book.leave(first.run)
    assert book.wake_at() == third.due
    assert book.take_due(1_200) is third and book.take_due(1_200) is None


def test_nobody_waits_for_a_replaced_run_that_cannot_be_ended() -> None:
    book, flurry = StartBook(), Debounce(key="$.k", ms=100)
    first, second = place("a", 1_100, debounce=flurry), place("b", 1_150, debounce=flurry)
    book.queue(first)
    book.queue(second)
    assert book.stays(first.run) and not book.stays(first.run) and not book.stays(second.run)
    assert book.take_due(1_200) is second


def test_what_a_later_start_replaces_gives_way_when_the_book_is_read_again() -> None:
    book, flurry = StartBook(), Debounce(key="$.k", ms=100)
    for name, due in (("a", 1_100), ("b", 1_150)):
        book.queue(place(name, due, debounce=flurry))
    assert [gone.run for gone in book.superseded()] == ["a"]
    crowd, limit = StartBook(), RunConcurrency(limit=1, on_limit="cancel_oldest")
    crowd.hold(place("live", concurrency=limit))
    crowd.queue(place("waits", concurrency=limit))
    assert crowd.crowded_out() == ["live"]


def test_runs_that_were_chosen_and_start_late_are_never_more_than_their_rate_allows() -> None:
    book, rate = StartBook(), RunRate(limit=1, per_ms=100)
    book.queue(place("a", rate=rate))
    book.queue(place("b", rate=rate))
    assert book.take_next(1_000) is not None
    assert book.take_next(1_500) is None, "a was chosen long ago, but has not started"
    book.admitted(RunId("a"), 1_500)
    assert book.take_next(1_599) is None
    assert book.take_next(1_600) is not None


def test_a_bucket_is_there_when_a_run_starts_long_after_it_was_chosen() -> None:
    book, rate = StartBook(), RunRate(limit=1, per_ms=100, burst=1)
    book.start(place("a", rate=rate), 1_000)
    book.rates.marked("", 1_101, row=1)
    book.queue(place("b", rate=rate))
    assert book.take_next(1_100) is not None
    assert book.rates.expire(1_300) == [1]
    book.admitted(RunId("b"), 1_300)
    assert book.rates.level("") == 0


def test_a_run_that_was_chosen_and_does_not_start_makes_room_in_its_rate() -> None:
    book, rate = StartBook(), RunRate(limit=1, per_ms=100)
    book.queue(place("a", rate=rate))
    book.queue(place("b", rate=rate))
    assert book.take_next(1_000) is not None
    assert book.take_next(1_010) is None
    book.leave(RunId("a"))
    assert book.take_next(1_020) is not None


def test_a_run_that_has_ended_before_it_gives_way_counts_when_it_is_retried() -> None:
    book, one = StartBook(), RunConcurrency(limit=1)
    book.start(place("a", concurrency=one), 1_000)
    assert book.oldest("", 1) == ("a",)
    book.leaving(RunId("a"))
    assert book.oldest("", 1) == (), "it has been told already"
    for _ in range(2):
        book.leave(RunId("a"))
        book.leaving(RunId("a"))
    book.reopen(place("a", concurrency=one))
    assert book.oldest("", 1) == ("a",)


def test_the_order_names_runs_that_wait_for_a_limit_before_those_that_collect_starts() -> None:
    book, batch, one = StartBook(), RunBatch(size=2, within_ms=100), RunConcurrency(limit=1)
    for name, due in (("late", 1_200), ("early", 1_100), ("full", None)):
        keys = StartKeys("", "", "", name)
        book.queue(StartPlace(RunId(name), 1, place(name, batch=batch, concurrency=one).flow, keys, due=due))
    assert [queued.run for queued in book.order()] == ["full", "early", "late"]

"""Starts that wait for one another, where a scenario cannot show it: deliveries that come twice, and books by hand."""

from __future__ import annotations

from tests.driving import RUN, TASK, Driven, graph_of
from treadle.graph.execution_graph import GraphFlow
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


def test_the_entity_of_a_queued_run_is_not_moved() -> None:
    driven = Driven(graph_of({"concurrency": {"limit": 1}, "nodes": {"a": TASK}}))
    driven.do(c.StartRun(RUN, {}, queued="concurrency", entity=EntityRef("e", "order")))
    refused = driven.do(c.MoveEntity(section="inbox")).rejection
    assert refused is not None and "its entity enters when the run starts" in refused.message


def test_a_start_that_is_being_written_counts_although_older_ones_expire() -> None:
    book, rate = StartBook(), RunRate(limit=1, per_ms=100)
    book.start(place("a", rate=rate), 1_000)
    book.marked("", 1_100, row=1)
    book.start(place("b", rate=rate), 1_100)
    assert book.expire(1_100) == [1]
    assert book.next_start(place("c", rate=rate), 1_100) == 1_200


def test_a_batch_is_full_when_its_items_are_written_whoever_came_meanwhile() -> None:
    book, batch = StartBook(), RunBatch(size=2, within_ms=100)
    first, second = place("a", 1_100, batch=batch), place("b", 1_120, batch=batch)
    book.queue(first)
    book.join(first)
    book.queue(second)
    assert book.joined(first, 2)


def test_what_a_later_start_replaces_gives_way_when_the_book_is_read_again() -> None:
    book, flurry = StartBook(), Debounce(key="$.k", ms=100)
    for name, due in (("a", 1_100), ("b", 1_150)):
        book.queue(place(name, due, debounce=flurry))
    assert [gone.run for gone in book.superseded()] == ["a"]
    crowd, limit = StartBook(), RunConcurrency(limit=1, on_limit="cancel_oldest")
    crowd.hold(place("live", concurrency=limit))
    crowd.queue(place("waits", concurrency=limit))
    assert crowd.crowded_out() == ["live"]

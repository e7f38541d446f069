"""The queue of a workflow with flow control chooses whom a plain search through all queued runs would choose (6.7)."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from treadle.graph.execution_graph import GraphFlow
from treadle.kernel.book import StartBook
from treadle.kernel.start_place import StartKeys, StartPlace
from treadle.kernel.start_queue import SERVED_MAX, StartQueue
from treadle.model.definition import RunConcurrency, RunRate
from treadle.model.ids import RunId

KEYS = ("", '"a"', '"b"', '"c"')


def flow_of(limit: int | None, rate: RunRate | None = None) -> GraphFlow:
    """Limits whose keys the tests give themselves."""
    concurrency = RunConcurrency(limit=limit) if limit is not None else None
    return GraphFlow(concurrency, rate, None, None, None, None, None)


class Choosing(RuleBasedStateMachine):
    """Starts come, runs end, time goes by; the book and a plain list are asked who is next. Those that were chosen
    start some time later, and never more of them in a window than the rate allows."""

    @initialize(
        limits=st.lists(st.integers(1, 3) | st.none(), min_size=1, max_size=2),
        rate=st.none() | st.builds(RunRate, limit=st.integers(1, 2), per_ms=st.integers(1, 20)),
        keyed=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    )
    def begin(self, limits: list[int | None], rate: RunRate | None, keyed: tuple[bool, bool, bool]) -> None:
        self.book = StartBook()
        self.flows = [flow_of(one, rate) for one in limits]
        self.keyed = keyed
        self.now = 0
        self.served: dict[str, int] = {}
        self.turn = self.number = 0
        self.queued: list[StartPlace] = []
        self.live: list[StartPlace] = []
        self.chosen: list[StartPlace] = []
        self.starts: dict[str, list[int]] = {}

    @rule(
        key=st.sampled_from(KEYS[1:]), other=st.sampled_from(KEYS[1:]), priority=st.integers(-1, 1), flow=st.integers(0)
    )
    def come(self, key: str, other: str, priority: int, flow: int) -> None:
        concurrency, rate, group = (
            one if is_keyed else "" for one, is_keyed in zip((key, other, key), self.keyed, strict=True)
        )
        fair = concurrency or rate or group
        self.number += 1
        place = StartPlace(
            RunId(f"run{self.number}"),
            1,
            self.flows[flow % len(self.flows)],
            StartKeys(concurrency, rate, fair, group),
            priority,
            number=self.number,
        )
        self.book.queue(place)
        self.queued.append(place)

    @rule(at=st.integers(0))
    @precondition(lambda self: self.live or self.queued or self.chosen)
    def end(self, at: int) -> None:
        every = self.live + self.queued + self.chosen
        place = every[at % len(every)]
        for those in (self.live, self.queued, self.chosen):
            if place in those:
                those.remove(place)
        self.book.leave(place.run)

    @rule(at=st.integers(0))
    @precondition(lambda self: self.chosen)
    def start(self, at: int) -> None:
        place = self.chosen.pop(at % len(self.chosen))
        self.book.admitted(place.run, self.now)
        rate = place.flow.rate
        if rate is not None:
            starts = self.starts.setdefault(place.keys.rate, [])
            starts.append(self.now)
            assert sum(at > self.now - rate.per_ms for at in starts) <= rate.limit, starts

    @rule(ms=st.integers(1, 15))
    def go_by(self, ms: int) -> None:
        self.now += ms
        self.book.rates.expire(self.now)

    @rule()
    def choose(self) -> None:
        while True:
            able = [one for one in self.queued if self.book.has_room(one) and self.book.may_start(one, self.now)]
            expected = min(able, key=self.rank, default=None)
            found = self.book.take_next(self.now)
            assert found is expected, (found and found.run, expected and expected.run)
            if found is None:
                return
            self.turn += 1
            self.served[found.keys.fair] = self.turn
            self.queued.remove(found)
            self.chosen.append(found)
            if found.flow.concurrency is not None:
                self.live.append(found)

    @invariant()
    def nobody_is_forgotten(self) -> None:
        if not hasattr(self, "book"):
            return
        assert {place.run for place in self.book.order()} == {place.run for place in self.queued}
        at = self.book.wake_at()
        assert at is None or self.queued

    def rank(self, place: StartPlace) -> tuple[int, int, int]:
        return -place.priority, self.served.get(place.keys.fair, 0), place.number


TestChoosing = Choosing.TestCase


def place_of(number: int, key: str, flow: GraphFlow) -> StartPlace:
    return StartPlace(RunId(f"run{number}"), 1, flow, StartKeys("", key, key, ""), number=number)


def test_the_turns_of_keys_with_queued_runs_are_never_forgotten() -> None:
    flow = flow_of(1, RunRate(limit=1, per_ms=1))
    places: dict[RunId, StartPlace] = {}
    queue = StartQueue(places)
    for number, key in enumerate(("old", "young"), 1):
        place = place_of(number, key, flow)
        places[place.run] = place
        queue.add(place)
    queue.serve("young")
    queue.serve("old")
    for number in range(2 * SERVED_MAX):
        queue.serve(f"other{number}")
    assert [place.keys.fair for place in queue.order()] == ["young", "old"]


@pytest.mark.parametrize(("others", "order"), [(SERVED_MAX - 1, ["new", "old"]), (2 * SERVED_MAX, ["old", "new"])])
def test_the_turn_of_a_key_without_queued_runs_is_remembered_as_long_as_few_others_come(
    others: int, order: list[str]
) -> None:
    places: dict[RunId, StartPlace] = {}
    queue = StartQueue(places)
    for key in ("old", *(f"other{number}" for number in range(others))):
        queue.serve(key)
    for number, key in enumerate(("old", "new"), 1):
        place = place_of(number, key, flow_of(1))
        places[place.run] = place
        queue.add(place)
    assert [place.keys.fair for place in queue.order()] == order


def test_an_empty_queue_keeps_nothing_of_the_keys_it_had() -> None:
    book = StartBook()
    flow = flow_of(1)
    for number in range(1_000):
        key = f'"{number % 100}"'
        place = StartPlace(RunId(f"run{number}"), 1, flow, StartKeys(key, "", key, ""), number=number + 1)
        book.queue(place)
    started = 0
    while (found := book.take_next(0)) is not None:
        started += 1
        book.leave(found.run)
    queue = book.queued
    assert started == 1_000
    assert not (queue._lanes or queue._rooms or queue._full or queue._later or book.places or book.live)


def test_a_run_that_was_chosen_waits_again_if_a_retry_takes_its_room() -> None:
    book, flow, keys = StartBook(), flow_of(1, RunRate(limit=1, per_ms=100)), StartKeys("", "", "", "")
    for name in ("first", "second"):
        book.queue(StartPlace(RunId(name), 1, flow, keys))
    first = book.take_next(0)
    assert first is not None
    book.reopen(StartPlace(RunId("retried"), 1, flow, keys))
    assert (list(book.live[""]), list(book.chosen)) == (["retried"], [])
    assert book.take_next(0) is None
    book.leave(RunId("retried"))
    assert book.take_next(0) is first, "it has kept its place before the second"


def test_a_run_that_was_chosen_stays_chosen_if_a_retry_leaves_it_its_room() -> None:
    book, flow, keys = StartBook(), flow_of(2), StartKeys("", "", "", "")
    book.queue(StartPlace(RunId("first"), 1, flow, keys))
    assert book.take_next(0) is not None
    book.reopen(StartPlace(RunId("retried"), 1, flow, keys))
    assert (list(book.live[""]), list(book.chosen)) == (["first", "retried"], ["first"])

"""What a process remembers of the lines it claims from: never for long, and never across a gap."""

from __future__ import annotations

from random import Random

import pytest

from treadle.store.fairness import Lane
from treadle.store.postgres import claim_memory
from treadle.store.postgres.claim_memory import BELIEVED_S, FIRST, LANES, VIEW_S, Head, Position, QueueLine


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(claim_memory, "time", made)
    return made


def _page(first: int, position: int, count: int = LANES) -> list[tuple[Position, int]]:
    return [((1, f"k{number:03}"), position + number) for number in range(first, first + count)]


def _head(key: str, position: int, ready: int = 1, priority: int = 1) -> Head:
    return Head(Lane(priority, key, ready), position)


def _drawn(line: QueueLine, limit: int = 1) -> list[str] | None:
    drawn = line.draw(limit, {}, Random(1))
    return None if drawn is None else [turn.key for turn in drawn[1]]


def test_lines_begin_at_the_lowest_of_their_heads_for_a_while(clock: Clock) -> None:
    line = QueueLine()
    line.looked(FIRST, 0, [((1, "a"), 70), ((2, "b"), 50)])
    assert line.begin_at() == 50
    clock.now += BELIEVED_S
    assert line.begin_at() == 0


def test_the_mark_rises_with_every_look_and_is_forgotten_at_its_time(clock: Clock) -> None:
    line = QueueLine()
    line.looked(FIRST, 0, [((1, "a"), 50)])
    clock.now += BELIEVED_S / 2
    line.looked(FIRST, 50, [((1, "a"), 60)])
    assert line.begin_at() == 60
    clock.now += BELIEVED_S / 2
    assert line.begin_at() == 0


def test_where_many_keys_wait_the_mark_is_known_when_all_were_seen(clock: Clock) -> None:
    line = QueueLine()
    line.looked(FIRST, 0, _page(0, 1_000))
    assert line.begin_at() == 0
    line.looked((1, "k015"), 0, _page(16, 500, 4))
    assert line.begin_at() == 516


@pytest.mark.parametrize(
    ("after", "begin_at"), [((1, "k020"), 0), ((1, "k015"), 7)], ids=["a gap", "hidden by an older mark"]
)
def test_lanes_that_were_not_seen_may_begin_anywhere(clock: Clock, after: Position, begin_at: int) -> None:
    line = QueueLine()
    line.looked(FIRST, 0, _page(0, 1_000))
    line.looked(after, begin_at, _page(21, 1_000, 4))
    assert line.begin_at() == 0


def test_what_was_seen_is_drawn_from_for_a_moment(clock: Clock) -> None:
    line = QueueLine()
    line.keep([_head("a", 5), _head("later", 1, priority=2)], 1)
    assert [_drawn(line) for _ in range(3)] == [["a"]] * 3
    clock.now += VIEW_S
    assert _drawn(line) is None


def test_nothing_is_drawn_of_lines_that_were_shorter_than_what_is_asked_for(clock: Clock) -> None:
    line = QueueLine()
    line.keep([_head("a", 5, ready=8), _head("b", 6, ready=2)], 8)
    assert _drawn(line, 8) is None
    assert _drawn(line, 2) is not None


def test_of_many_keys_each_group_begins_as_much_as_it_has_lanes(clock: Clock) -> None:
    line = QueueLine()
    line.keep([_head(f"k{number}", number) for number in range(LANES)], 1)
    assert sum(_drawn(line) is not None for _ in range(LANES)) == LANES - 1


def test_who_missed_looks_for_a_moment(clock: Clock) -> None:
    line = QueueLine()
    line.keep([_head("a", 5)], 1)
    line.missed()
    line.keep([_head("a", 5)], 1)
    assert _drawn(line) is None
    clock.now += VIEW_S
    line.keep([_head("a", 5)], 1)
    assert _drawn(line) == ["a"]


def test_a_line_goes_on_behind_what_was_taken(clock: Clock) -> None:
    line = QueueLine()
    line.keep([_head("a", 5)], 1)
    drawn = line.draw(1, {}, Random(1))
    assert drawn is not None
    view, _ = drawn
    view.took("a", 9)
    view.took("a", 7)
    assert view.begin == {"a": 10}

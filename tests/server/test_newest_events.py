"""The newest events in memory, as streams take them: in blocks, each written once for all followers of a filter."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.server import newest_events as memory
from treadle.server.newest_events import NewestEvents, StreamedEvent, StreamFilter, pieces, portion_of

ALL = StreamFilter()


def test_messages_are_sent_in_few_writes_of_a_bounded_size_and_in_their_order() -> None:
    messages = [
        bytes([65 + number % 26]) * size for number, size in enumerate([10, 20, memory.PIECE, 5, memory.PIECE + 1])
    ]
    assert list(pieces(messages)) == [messages[0] + messages[1], messages[2], messages[3], messages[4]]
    assert list(pieces([])) == []


def streamed(number: int, workflow: str = "w", kind: str = "token.created") -> StreamedEvent:
    return StreamedEvent(str(number), f"run-{number}", workflow, None, kind, b"%d;" % number)


def heard(newest: NewestEvents, position: str, wanted: StreamFilter) -> str:
    """Everything that a follower gets from memory, from a position to the end."""
    found = b""
    while (portion := newest.behind(position, wanted)) is not None and portion.count:
        found, position = found + b"".join(portion.pieces), portion.position
    assert portion is not None, "it is all in memory"
    return found.decode()


@pytest.mark.parametrize("at_once", [1, 7, 1_000])
def test_a_follower_gets_the_same_from_memory_wherever_blocks_begin(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(memory, "AT_ONCE", at_once)
    newest = NewestEvents()
    newest.begin_at("0")
    for first, size in ((1, 1), (2, 3), (5, 1), (6, 4)):
        newest.keep([streamed(number, "even" if number % 2 == 0 else "odd") for number in range(first, first + size)])
    for begin in range(10):
        rest = range(begin + 1, 10)
        assert heard(newest, str(begin), ALL) == "".join(f"{one};" for one in rest)
        even = StreamFilter(workflow="even")
        assert heard(newest, str(begin), even) == "".join(f"{one};" for one in rest if one % 2 == 0)


def test_each_event_is_looked_at_once_for_all_followers_of_one_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = NewestEvents()
    looked: list[str] = []
    newest.begin_at("0")
    for number in range(1, 31, 3):
        newest.keep([streamed(number), streamed(number + 1), streamed(number + 2)])
    of = portion_of

    def counted(events: Any, wanted: StreamFilter) -> Any:
        looked.extend(event.position for event in events)
        return of(events, wanted)

    monkeypatch.setattr(memory, "portion_of", counted)
    for begin in (0, 3, 0, 27, 6):
        assert heard(newest, str(begin), StreamFilter(types=frozenset({"token.created"})))
    assert len(looked) == len(set(looked)) == 30


def test_blocks_are_written_anew_for_each_follower_once_they_take_too_much_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "SHARED_BYTES", 500)
    newest = NewestEvents()
    newest.begin_at("0")
    newest.keep([streamed(1), streamed(2)])
    for number in range(50):
        wanted = StreamFilter(workflow=f"w{number}")
        assert heard(newest, "0", wanted) == ""
    assert newest._shared <= 500
    monkeypatch.setattr(memory, "KEPT", 0)
    newest.keep([streamed(3)])
    assert newest._shared == 0 and newest.behind("0", ALL) is None, "what is forgotten takes nothing"


@pytest.mark.parametrize(
    ("wanted", "wants"),
    [
        (ALL, True),
        (StreamFilter(workflow="w"), True),
        (StreamFilter(workflow="v"), False),
        (StreamFilter(types=frozenset({"token.created"})), True),
        (StreamFilter(types=frozenset({"run.started"})), False),
        (StreamFilter(family="token."), True),
        (StreamFilter(family="gate."), False),
        (StreamFilter(entity=("order/1", "1")), False),
        (StreamFilter(seen=("w", "x/*")), True),
        (StreamFilter(seen=("x/*",)), False),
    ],
)
def test_a_filter_wants_what_fits_all_of_it(wanted: StreamFilter, wants: bool) -> None:
    assert wanted.wants(streamed(1)) is wants

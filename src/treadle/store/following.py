"""All events of all runs in one order: the port that streams read.

Owns the verbs, and the form of a position in that order. Promises nothing by itself; `tests/contract` is run on every
store. Must not know what an event means.

Theory of operation
    A store gives every block of history a number, and the numbers grow. Events are read in the order of the numbers,
    within a block in the order of the run. A position says how far a reader has come: which log of events it was, the
    number of the block, and the event within the block if there are more behind it. A reader that continues at a
    position gets every event behind it once. A number is not given to a reader while a smaller one may still be
    committed.

    Runs are forgotten. A reader that has not yet read what was forgotten must be told so: it raises `PositionGone`. A
    store therefore counts how often it has forgotten, and keeps for each time the greatest number that was dropped
    (only while no later time has dropped a greater one). A position carries the count of the moment it was read: only
    what was forgotten later, and lies behind it, is missed. A reader that begins at the beginning gets what is kept.

Invariants
    1. Readers that begin at the beginning see the events of each run in the order of their numbers, without a gap
       (but for what was shortened before they began).
    2. No event is given twice to a reader that continues where it was, also after a restart, on another node, and
       while others commit. None is left out without `PositionGone`.
    3. A position of another log, of a store that was moved or made anew, raises `PositionGone`; so does one ahead of
       the log, of a store that was restored from a backup and has not come as far again.
"""

from __future__ import annotations

from datetime import date
from typing import Protocol, runtime_checkable

from msgspec import Struct

from treadle.errors import PositionGone
from treadle.model.events import Event
from treadle.model.ids import RunId

POSITION_MAX = 100
"""Characters of a position; longer ones are not looked at."""
DAY_MAX = date.max.toordinal()
NO_POSITION = "this is no position in the stream of events"


class FollowedEvent(Struct, frozen=True):
    """One event of one run, and where it is in the order of all events."""

    position: str
    run: RunId
    workflow: str
    entity: str | None
    event: Event


class EventPosition(Struct, frozen=True):
    """How far a reader has come. Texts of it are opaque to everybody else."""

    log: str
    forgets: int
    """How often the store had forgotten runs when the position was read."""
    number: int
    seq: int = 0
    """The last event of the block that was read, if there are more in it; 0: the block was read completely."""
    day: int = 0
    """In PostgreSQL: the day of the block, as an ordinal; only blocks of the day before it and later are searched."""

    def __str__(self) -> str:
        return f"{self.log}-{self.forgets}-{self.number}-{self.seq}-{self.day}"

    @classmethod
    def read(cls, text: str) -> EventPosition:
        """Raises ValueError for a text that is no position."""
        log, *numbers = text[:POSITION_MAX].split("-")
        if len(numbers) != 4 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in numbers):
            raise ValueError(NO_POSITION)
        position = cls(log, *map(int, numbers))
        if position.day > DAY_MAX:
            raise ValueError(NO_POSITION)
        return position

    def is_behind(self, number: int) -> bool:
        """Whether events of this block are still to be read."""
        return number > self.number or (number == self.number and self.seq > 0)

    def check(self, log: str, dropped: int, last: int) -> None:
        """Raises PositionGone if the position is of another log, if something behind it is gone (`dropped` is the
        greatest number that was dropped since the position was read, 0 if none was), or if it is ahead of the log:
        `last` is the greatest number that was given."""
        if log != self.log:
            raise PositionGone("this position is of another store, or of one that was moved or restored")
        if dropped and self.is_behind(dropped):
            raise PositionGone("events behind this position have been forgotten")
        if self.number > last:
            raise PositionGone("this position is ahead of the store, which may have been restored")


def positions(
    log: str, forgets: int, number: int, day: int, events: list[Event], after: EventPosition | None
) -> list[tuple[str, Event]]:
    """The events of a block that are behind a position, each with its own."""
    seen = after.seq if after is not None and after.number == number else 0
    last = events[-1].seq
    return [
        (str(EventPosition(log, forgets, number, 0 if event.seq == last else event.seq, day)), event)
        for event in events
        if event.seq > seen
    ]


def shortened(first: int, begin: Event, last: int, end: Event) -> dict[int, list[Event]]:
    """The first and the last event of a run as blocks, each under the number it had: a number is of one block."""
    kept: dict[int, list[Event]] = {first: [begin]}
    if begin.seq != end.seq:
        kept.setdefault(last, []).append(end)
    return kept


@runtime_checkable
class EventStore(Protocol):
    """The port. Every verb is one read of one moment."""

    async def events_after(self, position: str | None, limit: int = 1_000) -> list[FollowedEvent]:
        """Events behind a position, in order; None is the beginning. Fewer than `limit` may be given although there
        are more: only an empty answer means that there are none yet. Raises PositionGone, and ValueError for a text
        that is no position."""

    async def last_position(self) -> str:
        """A position behind everything that is committed now, and before everything that is committed later."""

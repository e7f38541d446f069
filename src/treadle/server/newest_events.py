"""The newest events of all runs in memory, for streams: in blocks, each written once for all who want the same of it.

Owns the blocks, which are what the reader of all events has read at once, and how much memory they take. A follower
takes whole blocks, as they were cut when they were read: so five hundred followers of one filter cost one look at each
event, wherever each of them stands. Must not wait, read a store or know a connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from treadle.server.who import is_within

KEPT, KEPT_BYTES = 5_000, 32 * 1024 * 1024
"""Newest events in memory, and what they may have in all. A follower that is further behind reads the store itself."""
SHARED_BYTES = 32 * 1024 * 1024
"""What the written blocks may have in all. Beyond that a follower writes its own each time, which takes longer."""
AT_ONCE = 1024 * 1024
"""Bytes that a follower should hold at a time: a reader that does not take them costs so much memory, and a short piece
of work is a short delay for others."""
PIECE = 128 * 1024
"""Bytes of one write: most pages of events have fewer. A reader that takes longer for a write than a slow one may
(`stream_slow_s`) is cut off, so a line of 26 KB/s is fast enough."""


class StreamedEvent(Struct, frozen=True):
    """An event as streams send it."""

    position: str
    run: str
    workflow: str
    entity: str | None
    type: str
    message: bytes
    """The event with its run as a server-sent event."""


class StreamFilter(Struct, frozen=True):
    """Which events a stream wants. Streams with equal filters share their work."""

    seen: tuple[str, ...] | None = None
    """Patterns of the workflows that the caller may see; None: all."""
    workflow: str | None = None
    types: frozenset[str] = frozenset()
    """Empty: all of them."""
    family: str = ""
    """How the type begins."""
    entity: tuple[str, ...] | None = None
    """Every way in which the entity is written."""

    def wants(self, event: StreamedEvent) -> bool:
        return (
            (self.workflow is None or event.workflow == self.workflow)
            and (not self.types or event.type in self.types)
            and event.type.startswith(self.family)
            and (self.entity is None or event.entity in self.entity)
            and (self.seen is None or is_within(event.workflow, self.seen))
        )


class Portion(Struct, frozen=True):
    """What a follower gets next."""

    position: str
    """Of the last event that was looked at."""
    pieces: Sequence[bytes]
    """Messages of the events that are wanted, as few writes."""
    count: int
    """Events that were looked at."""
    size: int
    """What their messages have in all."""


def pieces(messages: Iterable[bytes]) -> Iterator[bytes]:
    """Messages as few writes, none of more than PIECE bytes unless one message has more."""
    held: list[bytes] = []
    size = 0
    for message in messages:
        if held and size + len(message) > PIECE:
            yield b"".join(held)
            held, size = [], 0
        held.append(message)
        size += len(message)
    if held:
        yield held[0] if len(held) == 1 else b"".join(held)


def portion_of(events: Sequence[StreamedEvent], wanted: StreamFilter) -> Portion:
    """What a follower gets of some events, at least one."""
    found = tuple(pieces([event.message for event in events if wanted.wants(event)]))
    return Portion(events[-1].position, found, len(events), sum([len(event.message) for event in events]))


class _Block:
    """Events that were read at once."""

    __slots__ = ("events", "size", "written")

    def __init__(self, events: Sequence[StreamedEvent], size: int) -> None:
        self.events = events
        self.size = size
        self.written: dict[StreamFilter, Portion] = {}


def _blocks(events: Sequence[StreamedEvent]) -> Iterator[_Block]:
    """Events in blocks of AT_ONCE bytes at most, unless one event has more."""
    begin, size = 0, 0
    for at, event in enumerate(events):
        if at > begin and size + len(event.message) > AT_ONCE:
            yield _Block(events[begin:at], size)
            begin, size = at, 0
        size += len(event.message)
    if events:
        yield _Block(events[begin:], size)


class NewestEvents:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._blocks: deque[_Block] = deque()
        self._first = 0
        """The number of the oldest block."""
        self._places: dict[str, tuple[int, int]] = {}
        """Position of an event → number of its block, and its place there."""
        self._count = self._size = self._shared = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, position: str) -> bool:
        return position in self._places

    def begin_at(self, position: str) -> None:
        """Forgets everything: the next event is the one behind this position."""
        self._first += len(self._blocks)
        self._blocks.clear()
        self._count = self._size = self._shared = 0
        self._places = {position: (self._first - 1, 0)}

    def keep(self, events: Sequence[StreamedEvent]) -> None:
        """Adds events that were read at once, and forgets the oldest."""
        for block in _blocks(events):
            number = self._first + len(self._blocks)
            self._blocks.append(block)
            for at, event in enumerate(block.events):
                self._places[event.position] = number, at
            self._count += len(block.events)
            self._size += block.size
        while self._blocks and (self._count > KEPT or self._size > KEPT_BYTES):
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        oldest = self._blocks.popleft()
        self._first += 1
        self._count -= len(oldest.events)
        self._size -= oldest.size
        self._shared -= sum(_bytes(portion) for portion in oldest.written.values())
        for event in oldest.events:
            self._places.pop(event.position, None)

    def events_behind(self, position: str) -> Sequence[StreamedEvent] | None:
        """The events behind a position up to the end of a block; none: there is none yet. None: they are not here."""
        number, at = self._places.get(position, (-2, 0))
        if number < self._first - 1:
            return None
        if number >= self._first:
            rest = self._blocks[number - self._first].events[at + 1 :]
            if rest:
                return rest
        following = number + 1 - self._first
        return self._blocks[following].events if following < len(self._blocks) else ()

    def behind(self, position: str, wanted: StreamFilter) -> Portion | None:
        """What a follower gets behind a position, with AT_ONCE bytes at most unless one event has more. None: events
        behind it are not here; a portion of no events: there are none yet."""
        first = self.events_behind(position)
        if first is None:
            return None
        if not first:
            return Portion(position, (), 0, 0)
        number = self._places[first[0].position][0] - self._first
        block = self._blocks[number]
        begun = self._written(block, wanted) if len(first) == len(block.events) else portion_of(first, wanted)
        if begun.size >= AT_ONCE or number + 1 == len(self._blocks):
            return begun
        found, last, count, size = list(begun.pieces), begun.position, begun.count, begun.size
        for block in _from(self._blocks, number + 1):
            if size + block.size > AT_ONCE:
                break
            portion = self._written(block, wanted)
            found += portion.pieces
            last, count, size = portion.position, count + portion.count, size + portion.size
        return Portion(last, tuple(pieces(found)), count, size)

    def _written(self, block: _Block, wanted: StreamFilter) -> Portion:
        portion = block.written.get(wanted)
        if portion is None:
            portion = portion_of(block.events, wanted)
            if self._shared + _bytes(portion) <= SHARED_BYTES:
                block.written[wanted] = portion
                self._shared += _bytes(portion)
        return portion


def _from(blocks: deque[_Block], begin: int) -> Iterator[_Block]:
    for number in range(begin, len(blocks)):
        yield blocks[number]


def _bytes(portion: Portion) -> int:
    """What it takes of memory, roughly: a filter that wants nothing takes a little, too."""
    return sum(map(len, portion.pieces)) + 200

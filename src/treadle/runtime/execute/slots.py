"""Lines with a limited number of places: first come, first served.

Owns who holds a place and who waits for one: attempts in an engine, in a queue and in a `concurrency` slot across runs,
work in the pools of threads and processes. Promises O(1) for every operation, leaving the middle of a line included. In
memory only: an engine that recovers hands all work out again and fills the places anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from treadle.model.effects import Slot

T = TypeVar("T")


class Line(Generic[T]):
    """`limit` places and the line before them. Each holder of a place gives it back with `leave`, exactly once."""

    __slots__ = ("_waiting", "held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._waiting: OrderedDict[T, None] = OrderedDict()

    def enter(self, who: T) -> bool:
        """Whether `who` has a place now; if not, `turns` will name it."""
        if self.held < self.limit and not self._waiting:
            self.held += 1
            return True
        self._waiting[who] = None
        return False

    def leave(self) -> bool:
        """Gives one place back. True: others wait for it, and `turns` names them."""
        assert self.held > 0, "a place was given back twice"
        self.held -= 1
        return bool(self._waiting)

    def turns(self) -> Iterator[T]:
        """Gives the free places to the next in line and yields them."""
        while self._waiting and self.held < self.limit:
            self.held += 1
            yield self._waiting.popitem(last=False)[0]

    def withdraw(self, who: T) -> bool:
        """Leaves the line; False if `who` was not waiting."""
        return self._waiting.pop(who, self) is None

    @property
    def idle(self) -> bool:
        """Nobody holds a place and nobody waits."""
        return self.held == 0 and not self._waiting


class Slots(Generic[T]):
    """The lines of `concurrency: {limit, key?}`, one per name and key (1.2)."""

    def __init__(self) -> None:
        self._lines: dict[bytes, Line[T]] = {}

    def line(self, slot: Slot) -> Line[T]:
        """The line of a slot, with the newest limit: a newer version of a workflow may have changed it."""
        key = msgspec.json.encode([slot.name, slot.key])
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Line(slot.limit)
        line.limit = slot.limit
        return line

    def forget(self, slot: Slot) -> None:
        """Drops the line if it is idle: keys are data, so there may be millions of lines."""
        key = msgspec.json.encode([slot.name, slot.key])
        line = self._lines.get(key)
        if line is not None and line.idle:
            del self._lines[key]

    def __len__(self) -> int:
        return len(self._lines)

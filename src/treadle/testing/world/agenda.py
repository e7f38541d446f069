"""What is going to happen and when, on a virtual clock.

Owns the order of things. Promises that time never goes back, and that what is due at one instant happens in
the order in which it was scheduled, timers last: an answer that arrives at its deadline is in time. Given a
seed, things of one instant happen in an order drawn from it instead, timers included; whatever an engine
promises must hold under every order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

Happening = Callable[[], None]


class Entry:
    """Something scheduled; it can still be called off."""

    __slots__ = ("cancelled", "happening")

    def __init__(self, happening: Happening) -> None:
        self.happening = happening
        self.cancelled = False


class Agenda:
    """A queue by instant."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random
        self._order = count()
        self._heap: list[tuple[int, float, int, Entry]] = []

    def at(self, instant: int, happening: Happening, *, last: bool = False) -> Entry:
        """Schedules; `last` things yield to everything else of their instant."""
        rank = self._random.random() if self._random else float(last)
        entry = Entry(happening)
        heapq.heappush(self._heap, (instant, rank, next(self._order), entry))
        return entry

    def next_instant(self) -> int | None:
        """When the next thing happens."""
        while self._heap and self._heap[0][3].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> Happening:
        """Takes the next thing off; ask `next_instant` first."""
        return heapq.heappop(self._heap)[3].happening

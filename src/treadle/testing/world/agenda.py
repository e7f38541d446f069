"""The agenda of a virtual world: what happens at which instant.

Owns the order. Promises that time never goes back, and that entries of one instant happen in the order in which they
were scheduled, timers last: an answer that arrives at its deadline is in time. Given a seed, entries of one instant
happen in an order drawn from it instead, timers included; the promises of an engine must hold under every order.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random

Happening = Callable[[], None]


class Appointment:
    """A scheduled happening; it can still be cancelled."""

    __slots__ = ("cancelled", "happening")

    def __init__(self, happening: Happening) -> None:
        self.happening = happening
        self.cancelled = False


class Agenda:
    """A queue ordered by instant."""

    def __init__(self, random: Random | None = None) -> None:
        self._random = random
        self._order = count()
        self._heap: list[tuple[int, float, int, Appointment]] = []

    def at(self, instant: int, happening: Happening, *, last: bool = False) -> Appointment:
        """Schedules a happening; with `last` it comes after everything else of its instant."""
        rank = self._random.random() if self._random else float(last)
        entry = Appointment(happening)
        heapq.heappush(self._heap, (instant, rank, next(self._order), entry))
        return entry

    def next_instant(self) -> int | None:
        """The instant of the next happening."""
        while self._heap and self._heap[0][3].cancelled:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop(self) -> Happening:
        """Removes the next happening; ask `next_instant` first."""
        return heapq.heappop(self._heap)[3].happening

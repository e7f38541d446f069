"""Durable timers: the store has them all, this keeps the next ones in memory and says when one is due.

Owns no truth: whatever is here can be forgotten and read again. Promises that a timer the store gives is reported at
its due time, once per arming, and that a world without timers is never woken up.

    now ────────────── horizon ─────────────────────►
     │  in the heap       │  only in the store; `_beyond` is the earliest of them
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from treadle.model.ids import RunId, TimerId
from treadle.runtime.ports import Alarm, Clock
from treadle.store.port import Store

WINDOW_MS = 600_000
"""How far ahead timers are held in memory: long enough that reading them is rare, short enough that a million timers
spread over a year are a handful here."""
PAGE = 10_000
"""Timers read at a time; a window that holds more ends at the last one read."""
FIRED_AT_ONCE = 500
"""An avalanche is let through in portions: between them other work gets its turn."""

Due = Callable[[RunId, TimerId], None]


class Timers:
    """See the module's docstring."""

    def __init__(self, store: Store, shard: int, clock: Clock, due: Due) -> None:
        self._store = store
        self._shard = shard
        self._clock = clock
        self._report = due
        self._armed: dict[tuple[RunId, TimerId], int] = {}
        self._heap: list[tuple[int, RunId, TimerId]] = []
        self._horizon = 0
        self._beyond: int | None = None
        self._alarm: Alarm | None = None
        self._alarm_at: int | None = None
        self._wants_page: Callable[[], None] | None = None

    async def open(self, wants_page: Callable[[], None]) -> None:
        """Reads the first window. `wants_page` is called when `turn_page` should be."""
        self._wants_page = wants_page
        await self.turn_page()

    async def turn_page(self) -> None:
        """Reads the timers of the next window; those known already are read again and make no difference."""
        until = self._clock.now() + WINDOW_MS
        rows = await self._store.timers(self._shard, until, PAGE)
        self._horizon = rows[-1].due if len(rows) == PAGE else until
        for row in rows:
            self._keep(row.run, row.timer, row.due)
        if len(rows) == PAGE:
            self._beyond = self._horizon
        else:
            later = await self._store.timers(self._shard, None, len(rows) + 1)
            self._beyond = later[-1].due if len(later) > len(rows) else None
        self._arm()

    def set(self, run: RunId, timer: TimerId, due: int) -> None:
        """A timer was committed."""
        if due > self._horizon:
            self._armed.pop((run, timer), None)
            if self._beyond is None or due < self._beyond:
                self._beyond = due
        else:
            self._keep(run, timer, due)
        self._arm()

    def clear(self, run: RunId, timer: TimerId) -> None:
        """It will not be reported. Its place in the heap goes when it comes to the top."""
        self._armed.pop((run, timer), None)

    def close(self) -> None:
        """Nothing is reported any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._armed.clear()
        self._heap.clear()
        self._beyond = None

    def _keep(self, run: RunId, timer: TimerId, due: int) -> None:
        if self._armed.get((run, timer)) != due:
            self._armed[run, timer] = due
            heappush(self._heap, (due, run, timer))

    def _arm(self) -> None:
        while self._heap and self._armed.get(self._heap[0][1:]) != self._heap[0][0]:
            heappop(self._heap)
        first = self._heap[0][0] if self._heap else None
        wanted = min((due for due in (first, self._beyond) if due is not None), default=None)
        if wanted == self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = wanted
        self._alarm = self._clock.call_at(wanted, self._ring) if wanted is not None else None

    def _ring(self) -> None:
        self._alarm, self._alarm_at = None, None
        now = self._clock.now()
        for _ in range(FIRED_AT_ONCE):
            if not self._heap or self._heap[0][0] > now:
                break
            due, run, timer = heappop(self._heap)
            if self._armed.get((run, timer)) == due:
                del self._armed[run, timer]
                self._report(run, timer)
        if self._beyond is not None and now >= min(self._beyond, self._horizon):
            self._beyond = None
            assert self._wants_page is not None, "open() comes first"
            self._wants_page()
        self._arm()

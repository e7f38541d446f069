"""Durable timers: the store has all of them; this module keeps the next ones in memory and reports each when it is due.

Owns only copies: everything here can be dropped and read again. Promises that a timer of the store is reported at its
due time, once each time it is set, and that a process without timers is never woken up.

    now ────────────── horizon ─────────────────────►
     │  in the heap       │  only in the store; `_beyond` is the earliest of them
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from treadle.model.ids import RunId, TimerId
from treadle.runtime.surroundings.ports import Alarm, Clock
from treadle.store.port import Store

WINDOW_MS = 600_000
"""How far ahead timers are held in memory: long enough that reading them is rare, short enough that a million timers
spread over a year are a handful here."""
PAGE = 10_000
"""Timers read at a time; a window that holds more ends at the last one read."""
FIRED_AT_ONCE = 500
"""If many timers are due they are reported in portions: between them other work gets its turn."""
REPORTED_MAX = 2_000
"""Timers that may be reported and not yet fired durably. Further due timers wait in the heap or in the store."""

AGAIN_MS = 1_000
"""Pause between two readings made because a reported timer was not due after all: a wrong row must not keep the store
busy."""

Due = Callable[[RunId, TimerId], None]


class Timers:
    """See the module's docstring."""

    def __init__(self, store: Store, shards: Callable[[], Sequence[int]], clock: Clock, due: Due) -> None:
        self._store = store
        self._shards = shards
        """Returns the shards whose timers are reported."""
        self._clock = clock
        self._report = due
        self._armed: dict[tuple[RunId, TimerId], int] = {}
        self._heap: list[tuple[int, RunId, TimerId]] = []
        self._horizon = 0
        self._beyond: int | None = None
        self._alarm: Alarm | None = None
        self._alarm_at: int | None = None
        self._wants_page: Callable[[], None] | None = None
        self._looked = 0
        self._looking: Alarm | None = None
        """`_looked`: when timers were last read because one was not due after all; `_looking`: the alarm for the next
        time."""
        self._turning = asyncio.Lock()
        self._meanwhile: dict[tuple[RunId, TimerId], int | None] | None = None
        """Timers set (due time) and cleared (None) while a page is being read; they are newer than the page."""
        self._reported: set[tuple[RunId, TimerId]] = set()
        """Timers that were reported and are not known to have fired durably: the store may still have them."""

    async def open(self, wants_page: Callable[[], None]) -> None:
        """Reads the first window. `wants_page` is called whenever `turn_page` should be called."""
        self._wants_page = wants_page
        await self.turn_page()

    async def turn_page(self) -> None:
        """Reads the timers of the next window. Reading a known timer again makes no difference."""
        async with self._turning:
            meanwhile: dict[tuple[RunId, TimerId], int | None] = {}
            self._meanwhile = meanwhile
            try:
                await self._read_page()
            finally:
                self._meanwhile = None
            for (run, timer), due in meanwhile.items():
                if due is None:
                    self.clear(run, timer)
                else:
                    self.set(run, timer, due)
            self._arm()

    async def _read_page(self) -> None:
        until = self._clock.now() + WINDOW_MS
        shards = self._shards()
        rows = await self._store.timers(shards, until, PAGE) if shards else []
        is_full = len(rows) == PAGE
        later = rows if is_full or not shards else await self._store.timers(shards, None, len(rows) + 1)
        self._horizon = rows[-1].due if is_full else until
        for row in rows:
            if (row.run, row.timer) not in self._reported:
                self._keep(row.run, row.timer, row.due)
        self._beyond = self._first_beyond([row.due for row in later], is_full or len(later) > len(rows))

    def _first_beyond(self, dues: list[int], more: bool) -> int | None:
        """The earliest due time beyond the horizon. Timers may be set and cleared between the two readings; if none is
        found although there are more, the store is read again at the horizon."""
        return next((due for due in dues if due > self._horizon), self._horizon if more else None)

    def set(self, run: RunId, timer: TimerId, due: int) -> None:
        """Keeps a timer that was committed, and reports it when it is due."""
        if self._meanwhile is not None:
            self._meanwhile[run, timer] = due
        self._reported.discard((run, timer))
        if due > self._horizon:
            self._armed.pop((run, timer), None)
            if self._beyond is None or due < self._beyond:
                self._beyond = due
        else:
            self._keep(run, timer, due)
        self._arm()

    def clear(self, run: RunId, timer: TimerId) -> None:
        """Forgets a timer: it will not be reported. Its heap entry is removed when it comes to the top."""
        if self._meanwhile is not None:
            self._meanwhile[run, timer] = None
        self._armed.pop((run, timer), None)

    def settled(self, run: RunId, timer: TimerId, too_early: bool) -> None:
        """A reported timer was answered. `too_early`: it is not due yet, since the clock was set back; timers are read
        again."""
        was_full = self._is_full
        self._reported.discard((run, timer))
        if too_early and self._looking is None and self._wants_page is not None:
            now = self._clock.now()
            pause = min(max(self._looked + AGAIN_MS - now, 0), AGAIN_MS)
            self._looking = self._clock.call_at(now + pause, self._look_again)
        if was_full and not self._is_full:
            self._arm()

    def _look_again(self) -> None:
        self._looking, self._looked = None, self._clock.now()
        if self._wants_page is not None:
            self._wants_page()

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Forgets timers of the other runs: their new owner reports them. Heap entries are removed at the top."""
        for key in [key for key in self._armed if not is_kept(key[0])]:
            del self._armed[key]
        self._reported = {key for key in self._reported if is_kept(key[0])}
        if self._meanwhile is not None:
            self._meanwhile.update({key: None for key in self._meanwhile if not is_kept(key[0])})
        self._arm()

    def close(self) -> None:
        """Reports nothing from now on."""
        self._wants_page = None
        for alarm in (self._alarm, self._looking):
            if alarm is not None:
                alarm.cancel()
        self._armed.clear()
        self._heap.clear()
        self._beyond = None

    def _keep(self, run: RunId, timer: TimerId, due: int) -> None:
        if self._armed.get((run, timer)) != due:
            self._armed[run, timer] = due
            heappush(self._heap, (due, run, timer))

    @property
    def _is_full(self) -> bool:
        # A page must have room for more than the reported timers, or it would show no others.
        return len(self._reported) >= min(REPORTED_MAX, PAGE // 2)

    def _arm(self) -> None:
        while self._heap and self._armed.get(self._heap[0][1:]) != self._heap[0][0]:
            heappop(self._heap)
        first = self._heap[0][0] if self._heap else None
        wanted = min((due for due in (first, self._beyond) if due is not None), default=None)
        if self._is_full or self._wants_page is None:
            wanted = None
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
            if not self._heap or self._heap[0][0] > now or self._is_full:
                break
            due, run, timer = heappop(self._heap)
            if self._armed.get((run, timer)) == due:
                self.clear(run, timer)
                self._reported.add((run, timer))
                self._report(run, timer)
        has_more = bool(self._heap) and self._heap[0][0] <= now
        if self._beyond is not None and now >= min(self._beyond, self._horizon) and not has_more:
            self._beyond = None
            assert self._wants_page is not None, "open() comes first"
            self._wants_page()
        self._arm()

"""The starts of a workflow that count for its rate, by key (6.7).

Owns the counts. `kernel.book` has them beside the runs that are live and queued; `admission` has the rules. Every
method is a function of the counts and its arguments.

Theory of operation
    A start counts from the moment its event has. A run that was chosen may start much later than it was chosen: it is
    read first, and the store may be away. Until its start is decided it is *expected*: it counts as a start that
    happens now, at whatever time somebody asks. Otherwise runs that were chosen in different windows could start
    together in one.

    Of a rate without `burst` the times are kept, of a bucket its level. Durable marks (`MarkStart`) count until their
    window is over or their bucket is full again; then nobody needs to know them, and their rows are removed.
"""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush

from msgspec import Struct

from treadle.model.definition import RunRate
from treadle.model.ids import RunId


class Starts(Struct):
    """The starts of one rate key."""

    times: list[int] = []
    """Of a rate without `burst`: the starts that still count, in order."""
    level: int = 0
    """Of a bucket: its level at `at`, in parts of 1 / `per_ms`."""
    at: int | None = None
    counting: int = 0
    """Durable marks that count still."""
    until: int = 0
    """When the last start counts no longer, be it durable or not."""


class StartRates:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._starts: dict[str, Starts] = {}
        self._expected: dict[str, set[RunId]] = {}
        """Runs that are about to start."""
        self._marks: list[tuple[int, int, str]] = []
        """(when it counts no longer, row, key) of durable marks."""
        self._known: set[int] = set()

    def next_start(self, key: str, rate: RunRate, now: int) -> int:
        """The first time from now on at which the rate allows a start, if those that are expected happen now. If they
        happen later, it is not before that time either."""
        starts, expected = self._starts.get(key), len(self._expected.get(key, ()))
        if starts is None and not expected:
            return now
        starts = starts or Starts()
        if rate.burst is not None:
            missing = rate.per_ms * (1 + expected) - level_at(starts, rate, rate.burst, now)
            return now if missing <= 0 else now - (-missing // rate.limit)
        if expected >= rate.limit:
            return now + rate.per_ms
        back = rate.limit - expected
        return now if len(starts.times) < back else max(now, starts.times[-back] + rate.per_ms)

    def expect(self, key: str, run: RunId) -> None:
        """A run is about to start."""
        self._expected.setdefault(key, set()).add(run)

    def expect_no_more(self, key: str, run: RunId) -> bool:
        """The run starts now, or will not start. Returns whether it was about to."""
        expected = self._expected.get(key, set())
        if run not in expected:
            return False
        expected.remove(run)
        if not expected:
            del self._expected[key]
        return True

    def count(self, key: str, rate: RunRate, at: int, level: int | None = None) -> None:
        """A run has started. `level`: the bucket after its start, if that is known."""
        starts = self._starts.setdefault(key, Starts())
        if rate.burst is None:
            insort(starts.times, at)
            gone = at - rate.per_ms
            while starts.times[0] <= gone:
                del starts.times[0]
        elif level is None:
            starts.level, starts.at = level_at(starts, rate, rate.burst, at) - rate.per_ms, at
        else:
            starts.level, starts.at = level, at
        starts.until = max(starts.until, counts_until(rate, at, starts.level))

    def level(self, key: str) -> int:
        """The level of a bucket after its last start."""
        return self._starts[key].level

    def marked(self, key: str, until: int, row: int) -> None:
        """A start is durable: it counts until then. Hearing of it again changes nothing."""
        if row in self._known:
            return
        self._known.add(row)
        self._starts.setdefault(key, Starts()).counting += 1
        heappush(self._marks, (until, row, key))

    def expire(self, now: int) -> list[int]:
        """Forget starts that count no longer. Returns their rows."""
        rows = []
        while self._marks and self._marks[0][0] <= now:
            _, row, key = heappop(self._marks)
            rows.append(row)
            self._known.discard(row)
            starts = self._starts[key]
            starts.counting -= 1
            if not starts.counting and starts.until <= now:
                del self._starts[key]
        return rows


def level_at(starts: Starts, rate: RunRate, burst: int, now: int) -> int:
    """The level of a bucket, in parts of 1 / `per_ms`; full at the beginning."""
    full = burst * rate.per_ms
    if starts.at is None:
        return full
    return min(full, starts.level + max(0, now - starts.at) * rate.limit)


def counts_until(rate: RunRate, at: int, level: int | None) -> int:
    """When a start counts no longer: at the end of its window, or when its bucket is full again."""
    if rate.burst is None or level is None:
        return at + rate.per_ms
    return at - (level - rate.burst * rate.per_ms) // rate.limit + 1

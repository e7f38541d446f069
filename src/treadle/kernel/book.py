"""The book of a workflow with flow control: its live and queued runs, and its last starts (6.7).

Owns the counts by key; `start_queue` has the order of those that wait, `admission` has the rules. A book is no history:
it is made again from the places that its runs hold in the store (`HoldPlace`, `MarkStart`). Every method is a function
of the book and its arguments.

    queued     runs that wait for a limit (`start_queue`)
    collecting queued runs that wait for further starts of their flurry or batch, by key
    live       runs that have started, or were chosen to start, by concurrency key
    starts     the starts that still count for a rate, by key
"""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush

from msgspec import Struct

from treadle.kernel.start_place import StartPlace
from treadle.kernel.start_queue import StartQueue
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


class StartBook:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.places: dict[RunId, StartPlace] = {}
        self.live: dict[str, dict[RunId, None]] = {}
        self.queued = StartQueue(self.places)
        self.collecting: dict[str, StartPlace] = {}
        self.starts: dict[str, Starts] = {}
        self.chosen: dict[RunId, StartPlace] = {}
        """Runs that were chosen to start and whose start is not decided yet."""
        self._dues: list[tuple[int, int, RunId]] = []
        self._marks: list[tuple[int, int, str]] = []
        """(when it counts no longer, row, key) of durable marks."""
        self._known: set[int] = set()
        self._numbers = 0
        self._leaving: set[RunId] = set()

    # Limits

    def has_room(self, place: StartPlace) -> bool:
        """Whether another run of its concurrency key may be live."""
        limit = place.flow.concurrency
        return limit is None or len(self.live.get(place.keys.concurrency, ())) < limit.limit

    def may_start(self, place: StartPlace, now: int) -> bool:
        """Whether its rate allows a start now."""
        return place.flow.rate is None or self.next_start(place, now) <= now

    def next_start(self, place: StartPlace, now: int) -> int:
        """The first time from now on at which its rate allows a start."""
        rate, starts = place.flow.rate, self.starts.get(place.keys.rate)
        if rate is None or starts is None:
            return now
        if rate.burst is not None:
            missing = rate.per_ms - level_at(starts, rate, rate.burst, now)
            return now if missing <= 0 else now - (-missing // rate.limit)
        if len(starts.times) < rate.limit:
            return now
        return max(now, starts.times[-rate.limit] + rate.per_ms)

    def oldest(self, key: str, limit: int) -> tuple[RunId, ...]:
        """The runs of a concurrency key that give way to one more: the oldest of those that are live or queued for
        it."""
        every = [run for run in (*self.live.get(key, ()), *self.queued.of_key(key)) if run not in self._leaving]
        return tuple(every[: max(0, len(every) + 1 - limit)])

    def superseded(self) -> list[StartPlace]:
        """Queued runs that wait for further starts although a later one of their flurry does."""
        return [
            place
            for place in self.places.values()
            if place.flow.debounce is not None and self._collects(place.run) and not self._is_newest(place)
        ]

    def _is_newest(self, place: StartPlace) -> bool:
        return self.collecting.get(place.keys.group) is place

    def crowded_out(self) -> list[RunId]:
        """The runs that must give way because others of their concurrency key are queued (`cancel_oldest`)."""
        limits = {
            place.keys.concurrency: place.flow.concurrency
            for place in self.places.values()
            if place.started is None and place.due is None
        }
        return [
            run
            for key, concurrency in limits.items()
            if concurrency is not None and concurrency.on_limit == "cancel_oldest"
            for run in self.oldest(key, concurrency.limit + 1)
        ]

    # Changes

    def queue(self, place: StartPlace) -> None:
        """Enter a run that waits: for further starts until it is due, else for a limit."""
        if not place.number:
            place.number = self._numbers + 1
        self._numbers = max(self._numbers, place.number)
        self.places[place.run] = place
        if place.due is not None:
            self.collecting[place.keys.group] = place
            heappush(self._dues, (place.due, place.number, place.run))
        else:
            self.queued.add(place)

    def start(self, place: StartPlace, at: int) -> None:
        """Enter a run that starts."""
        self.hold(place)
        place.started = at
        if place.flow.rate is not None:
            self.mark(place.keys.rate, place.flow.rate, at)

    def hold(self, place: StartPlace) -> None:
        """Enter a run that is live, without a start: it was before, or it is retried."""
        place.started = place.since
        self.queued.serve(place.keys.fair)
        if place.flow.concurrency is None:
            self.places.pop(place.run, None)
            return
        self.places[place.run] = place
        self.live.setdefault(place.keys.concurrency, {})[place.run] = None

    def mark(self, key: str, rate: RunRate, at: int, level: int | None = None) -> None:
        """Count a start. `level`: the bucket after it, if that is known."""
        starts = self.starts.setdefault(key, Starts())
        if rate.burst is None:
            insort(starts.times, at)
            gone = at - rate.per_ms
            while starts.times[0] <= gone:
                del starts.times[0]
        elif level is None:
            starts.level, starts.at = level_at(starts, rate, rate.burst, at) - rate.per_ms, at
        elif starts.at is None or at >= starts.at:
            starts.level, starts.at = level, at
        starts.until = max(starts.until, counts_until(rate, at, starts.level))

    def marked(self, key: str, until: int, row: int) -> None:
        """A mark is durable: it counts until then. Hearing of it again changes nothing."""
        if row in self._known:
            return
        self._known.add(row)
        self.starts.setdefault(key, Starts()).counting += 1
        heappush(self._marks, (until, row, key))

    def expire(self, now: int) -> list[int]:
        """Forget starts that count no longer. Returns their rows."""
        rows = []
        while self._marks and self._marks[0][0] <= now:
            _, row, key = heappop(self._marks)
            rows.append(row)
            self._known.discard(row)
            starts = self.starts[key]
            starts.counting -= 1
            if not starts.counting and starts.until <= now:
                del self.starts[key]
        return rows

    def started_at(self, place: StartPlace, at: int) -> None:
        """A chosen run has started a little later than it was chosen: windows count from there."""
        starts = self.starts.get(place.keys.rate)
        if starts is not None and place.started in starts.times:
            starts.times.remove(place.started)
            insort(starts.times, at)
            starts.until = max(starts.until, starts.until + at - place.started)
        if starts is not None and starts.at is not None and starts.at == place.started:
            starts.at, starts.until = at, starts.until + at - starts.at
        place.started = at

    def leave(self, run: RunId) -> StartPlace | None:
        """Forget a run that has ended. Its entry in a lane is dropped when it comes to the head."""
        chosen = self.chosen.pop(run, None)
        place = self.places.pop(run, None) or chosen
        self._leaving.discard(run)
        if place is None:
            return None
        live = self.live.get(place.keys.concurrency)
        if live is not None and run in live:
            del live[run]
            if not live:
                del self.live[place.keys.concurrency]
            self.queued.freed(place.keys.concurrency)
        elif place.due is None:
            self.queued.left(place)
        if self.collecting.get(place.keys.group) is place:
            del self.collecting[place.keys.group]
        return place

    def find(self, run: RunId) -> StartPlace | None:
        """The place of a run that is queued, chosen or live."""
        return self.places.get(run) or self.chosen.get(run)

    def leaving(self, run: RunId) -> None:
        """The run was told to give way; it counts until it has ended."""
        if run in self.places:
            self._leaving.add(run)

    def join(self, place: StartPlace) -> None:
        """One more start is about to join a batch."""
        place.joining += 1

    def joined(self, place: StartPlace, items: int) -> bool:
        """A start has joined a batch, which has so many items now; it may have been there before. Returns whether the
        batch is full and has waited for this."""
        assert place.flow.batch is not None
        place.count, place.joining = items, max(place.joining - 1, 0)
        return items >= place.flow.batch.size and place.due is not None

    def collected(self, place: StartPlace) -> None:
        """The run waits for no further starts."""
        if self.collecting.get(place.keys.group) is place:
            del self.collecting[place.keys.group]
        place.due = None

    # Choosing

    def take_due(self, now: int) -> StartPlace | None:
        """The next run whose time to wait for further starts is over."""
        while self._dues and self._dues[0][0] <= now:
            _, _, run = heappop(self._dues)
            place = self.places.get(run)
            if place is not None and place.due is not None and (place.flow.batch is not None or self._is_newest(place)):
                self.collected(place)
                return place
        return None

    def take_next(self, now: int) -> StartPlace | None:
        """Choose the next run that may start, and count it as started."""
        place = self.queued.take(now, self.has_room, self.next_start)
        if place is not None:
            self.chosen[place.run] = place
            self.start(place, now)
        return place

    def wake_at(self) -> int | None:
        """The next time at which a queued run may go on although nothing else happens."""
        while self._dues and not self._collects(self._dues[0][2]):
            heappop(self._dues)
        later = self.queued.wake_at()
        if not self._dues:
            return later
        return self._dues[0][0] if later is None else min(later, self._dues[0][0])

    def order(self) -> list[StartPlace]:
        """All queued runs in the order in which they will start, as far as it can be known: those that wait for a
        limit, then those that wait for further starts."""
        return self.queued.order() + sorted(self.collecting.values(), key=lambda place: (place.due or 0, place.number))

    def _collects(self, run: RunId) -> bool:
        place = self.places.get(run)
        return place is not None and place.due is not None


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

"""The book of a workflow with flow control: its live and queued runs, and its last starts (6.7).

Owns the counts by key; `start_queue` has the order of those that wait, `start_rates` the starts that count for a rate,
`admission` has the rules. A book is no history: it is made again from the places that its runs hold in the store
(`HoldPlace`, `MarkStart`). Every method is a function of the book and its arguments.

    queued     runs that wait for a limit (`start_queue`)
    collecting queued runs that wait for further starts of their flurry or batch, by key
    live       runs that have started, or were chosen to start, by concurrency key
    rates      the starts that still count for a rate, by key (`start_rates`)
"""

from __future__ import annotations

from heapq import heappop, heappush

from treadle.kernel.start_place import StartPlace
from treadle.kernel.start_queue import StartQueue
from treadle.kernel.start_rates import StartRates
from treadle.model.ids import RunId


class StartBook:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.places: dict[RunId, StartPlace] = {}
        self.live: dict[str, dict[RunId, None]] = {}
        self.queued = StartQueue(self.places)
        self.collecting: dict[str, StartPlace] = {}
        self.rates = StartRates()
        self.chosen: dict[RunId, StartPlace] = {}
        """Runs that were chosen to start and whose start is not decided yet."""
        self._dues: list[tuple[int, int, RunId]] = []
        self._numbers = 0
        self._leaving: set[RunId] = set()
        self._replaced: dict[str, set[RunId]] = {}
        """By key of a flurry: runs that a later start has replaced and that have not ended. The later one may start
        only after them: once it has started, nothing in the store says that they were replaced."""

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
        rate = place.flow.rate
        return now if rate is None else self.rates.next_start(place.keys.rate, rate, now)

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
            self._replace(place)
            heappush(self._dues, (place.due, place.number, place.run))
        else:
            self.queued.add(place)

    def _replace(self, place: StartPlace) -> None:
        group = place.keys.group
        before = self.collecting.get(group)
        is_flurry = before is not None and before.flow.debounce is not None and place.flow.debounce is not None
        if before is not None and before is not place and is_flurry:
            self._replaced.setdefault(group, set()).add(before.run)
        self.collecting[group] = place

    def start(self, place: StartPlace, at: int) -> None:
        """Enter a run that starts."""
        self.hold(place)
        self._count(place, at)

    def hold(self, place: StartPlace) -> None:
        """Enter a run that is live, without a start: it was before, or it is retried."""
        place.started = place.since
        self.queued.serve(place.keys.fair)
        if place.flow.concurrency is None:
            self.places.pop(place.run, None)
            return
        self.places[place.run] = place
        self.live.setdefault(place.keys.concurrency, {})[place.run] = None

    def admitted(self, run: RunId, at: int) -> StartPlace:
        """A chosen run starts. Its rate counts it from now on."""
        place = self.chosen.pop(run)
        self.rates.expect_no_more(place.keys.rate, run)
        self._count(place, at)
        return place

    def not_admitted(self, run: RunId) -> StartPlace | None:
        """A chosen run does not start: those that wait for its rate are looked at again."""
        place = self.chosen.pop(run, None)
        if place is not None and self.rates.expect_no_more(place.keys.rate, run):
            self.queued.look_again()
        return place

    def reopen(self, place: StartPlace) -> None:
        """A run is live again by a retry, which no limit refuses. Runs that were chosen to start and have no room now
        wait again, those that were chosen last first."""
        self.hold(place)
        live = self.live.get(place.keys.concurrency, {})
        for other in [self.chosen[run] for run in reversed(live) if run in self.chosen]:
            limit = other.flow.concurrency
            if limit is not None and len(live) > limit.limit:
                del live[other.run]
                self.not_admitted(other.run)
                other.started = None
                self.queue(other)

    def _count(self, place: StartPlace, at: int) -> None:
        place.started = at
        if place.flow.rate is not None:
            self.rates.count(place.keys.rate, place.flow.rate, at)

    def leave(self, run: RunId) -> StartPlace | None:
        """Forget a run that has ended. Its entry in a lane is dropped when it comes to the head."""
        chosen = self.not_admitted(run)
        place = self.places.pop(run, None) or chosen
        self._leaving.discard(run)
        if place is None:
            return None
        self._gone(place)
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

    def _gone(self, place: StartPlace) -> bool:
        """Nobody waits for the end of a replaced run any more. Returns whether anybody has."""
        group = place.keys.group
        replaced = self._replaced.get(group)
        if replaced is None or place.run not in replaced:
            return False
        replaced.discard(place.run)
        if not replaced:
            del self._replaced[group]
            newest = self.collecting.get(group)
            if newest is not None and newest.due is not None:
                heappush(self._dues, (newest.due, newest.number, newest.run))  # `take_due` may have passed it over
        return True

    def stays(self, run: RunId) -> bool:
        """A run that was told to give way cannot be ended, for instance because it cannot be read. It cannot start
        either, so nobody waits for it. Returns whether anybody has."""
        place = self.places.get(run)
        return place is not None and self._gone(place)

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
            if place is None or place.due is None:
                continue
            if place.flow.batch is not None or (self._is_newest(place) and place.keys.group not in self._replaced):
                self.collected(place)
                return place
        return None

    def take_all_due(self, now: int) -> list[StartPlace]:
        """The runs whose time to wait for further starts is over, in the order in which they are lined up."""
        found = list(iter(lambda: self.take_due(now), None))
        return sorted(found, key=lambda place: (-place.priority, place.number))

    def take_next(self, now: int) -> StartPlace | None:
        """Choose the next run that may start. It counts as live, and its rate expects it."""
        place = self.queued.take(now, self.has_room, self.next_start)
        if place is not None:
            self.chosen[place.run] = place
            self.hold(place)
            place.started = now
            if place.flow.rate is not None:
                self.rates.expect(place.keys.rate, place.run)
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

"""The queue of a workflow with flow control: runs that wait for a limit, and which of them is next (6.7).

Owns the order: the largest priority, then the key that was served longest ago, then arrival. `kernel.book` owns the
limits and says whether a run may start; `admission` has the rules. Every method is a function of the queue and its
arguments.

Theory of operation
    Runs that share all their limits and take turns as one key are in one *lane*: whether its head may start says the
    same of all behind it. Lanes that share a place under a limit on concurrency are one *room*. Only the best lane of a
    room with a free place is looked at, so that choosing takes a time that grows with the logarithm of the numbers of
    rooms and lanes:

        rooms ──► open     by the rank of their best lane; the first that may start is next
          │   └─► full     until a run of that key ends
          └ lanes ─► ready    by the rank of their head
                 └─► later    their rate allows no start before that time

    A rank gets worse when its key is served, never better by itself. Therefore a rank in a heap is corrected only when
    it comes to the front. If all starts share one rate, nothing is looked at before it allows the next.

Invariant
    Every lane with a run in it is `ready` in its room, and then its rank is not None, or it is in `later`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush

from msgspec import Struct

from treadle.graph.execution_graph import GraphFlow
from treadle.kernel.start_place import StartKeys, StartPlace
from treadle.model.ids import RunId

Rank = tuple[int, int, int]
"""(minus priority, turn in which its key was served last, number): the smallest is next."""
Entry = tuple[int, int, RunId]
"""(minus priority, number, run): the smallest of a lane is its head."""

SERVED_MAX = 10_000
"""Keys whose last turn is remembered beside those that have queued runs. A key that is forgotten counts as one that was
never served."""
AHEAD, AHEAD_ALL = 16, 1_000
"""How many of the next runs of a lane, and of all lanes together, are worth having in memory before their turn comes.
The first 15 entries of a heap have its four smallest among them."""


class StartLane(Struct):
    """The queued runs that share all their limits."""

    keys: StartKeys
    room: RoomKey
    entries: list[Entry]
    rank: Rank | None = None
    """Its rank among the ready lanes of its room; None: it is not ready."""


class StartRoom(Struct):
    """The lanes that share a place under a limit on concurrency."""

    ready: list[tuple[Rank, LaneKey]]
    rank: Rank | None = None
    """Its rank among the open rooms; None: it is not open."""
    is_full: bool = False


RoomKey = tuple[str, int]
"""(concurrency key, limit): a limit may differ from version to version."""
LaneKey = tuple[RoomKey, str, str]


class StartQueue:
    """See the module's docstring. `places`: all runs of the book; one that is not there any more, or has started, does
    not wait."""

    def __init__(self, places: Mapping[RunId, StartPlace]) -> None:
        self._places = places
        self._lanes: dict[LaneKey, StartLane] = {}
        self._rooms: dict[RoomKey, StartRoom] = {}
        self._open: list[tuple[Rank, RoomKey]] = []
        self._full: dict[str, list[RoomKey]] = {}
        self._later: list[tuple[int, LaneKey]] = []
        self._flow: GraphFlow | None = None
        """The limits that all runs have had so far, if these were the same."""
        self._closed_until: int | None = None
        """Until then the rate that all starts share allows none."""
        self._served: dict[str, int] = {}
        self._served_max = SERVED_MAX
        self._turn = 0

    def add(self, place: StartPlace) -> None:
        """Enter a run that waits for a limit."""
        if not self._lanes:
            self._flow = place.flow
        elif self._flow is not place.flow:
            self._flow = self._closed_until = None
        key = _lane_of(place)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = StartLane(place.keys, key[0], [])
        elif lane.keys == place.keys:
            place.keys = lane.keys  # a hundred thousand runs share one
        entry = (-place.priority, place.number, place.run)
        heappush(lane.entries, entry)
        if lane.entries[0] == entry:  # compiled, a tuple is not the same object afterwards
            self._look_at(key)

    def serve(self, fair: str) -> None:
        """A run of this key has started: its next turn is after all others'."""
        self._turn += 1
        self._served[fair] = self._turn
        if len(self._served) > self._served_max:
            self._forget_turns()

    def freed(self, concurrency: str) -> None:
        """A run of this concurrency key has ended."""
        for key in self._full.pop(concurrency, ()):
            room = self._rooms[key]
            room.is_full = False
            self._offer(key, room)

    def left(self, place: StartPlace) -> None:
        """A queued run has ended. Its entry is dropped when it comes to the head of its lane."""
        key = _lane_of(place)
        if key in self._lanes:
            self._look_at(key)

    def look_again(self) -> None:
        """A rate allows starts sooner than it was thought."""
        self._closed_until = None
        later, self._later = self._later, []
        for _at, key in later:
            self._look_at(key)

    def take(
        self, now: int, has_room: Callable[[StartPlace], bool], next_start: Callable[[StartPlace, int], int]
    ) -> StartPlace | None:
        """Remove and return the next run that may start."""
        if self._closed_until is not None:
            if now < self._closed_until:
                return None
            self._closed_until = None
        while self._later and self._later[0][0] <= now:
            self._look_at(heappop(self._later)[1])
        while self._open:
            rank, key = heappop(self._open)
            room = self._rooms.get(key)
            if room is None or room.rank != rank:
                continue  # it was offered again since
            lane = self._best(room)
            room.rank = None
            if lane is None or room.ready[0][0] > rank:
                self._offer(key, room)
            elif not has_room(place := self._places[lane.entries[0][2]]):
                room.is_full = True
                self._full.setdefault(key[0], []).append(key)
            elif (at := next_start(place, now)) > now:
                if self._flow is not None and not place.keys.rate:
                    self._closed_until = at
                    self._offer(key, room)
                    return None
                lane.rank = None
                heappush(self._later, (at, heappop(room.ready)[1]))
                self._offer(key, room)
            else:
                lane.rank = None
                heappop(lane.entries)
                self._look_at(heappop(room.ready)[1])
                self._offer(key, room)
                return place
        return None

    def wake_at(self) -> int | None:
        """The next time at which a rate may allow a start."""
        if self._closed_until is not None:
            return self._closed_until if self._lanes else None
        while self._later and self._is_idle(self._later[0][1]):
            heappop(self._later)
        return self._later[0][0] if self._later else None

    def behind(self, place: StartPlace) -> list[RunId]:
        """Runs that come soon after this one, the next of its lane among them."""
        lane = self._lanes.get(_lane_of(place))
        share = min(AHEAD, AHEAD_ALL // max(1, len(self._lanes)))
        return [run for _, _, run in lane.entries[:share]] if lane is not None else []

    def of_key(self, concurrency: str) -> list[RunId]:
        """The queued runs of a concurrency key, as they came."""
        lanes = (lane for lane in self._lanes.values() if lane.keys.concurrency == concurrency)
        lined = sorted(entry[1:] for lane in lanes for entry in lane.entries if self._waits(entry))
        return [run for _, run in lined]

    def order(self) -> list[StartPlace]:
        """All of them in the order in which they will start, as if each had a free place in turn."""
        served, turn = dict(self._served), self._turn
        lanes = [sorted(filter(self._waits, lane.entries)) for lane in self._lanes.values()]
        heads = [(*self._ranked(lane[0], served), at, 0) for at, lane in enumerate(lanes) if lane]
        heapify(heads)
        found: list[StartPlace] = []
        while heads:
            _minus, was, _number, lane, at = heappop(heads)
            place = self._places[lanes[lane][at][2]]
            if served.get(place.keys.fair, 0) != was:  # another lane of its key was served meanwhile
                heappush(heads, (*self._ranked(lanes[lane][at], served), lane, at))
                continue
            found.append(place)
            turn += 1
            served[place.keys.fair] = turn
            if at + 1 < len(lanes[lane]):
                heappush(heads, (*self._ranked(lanes[lane][at + 1], served), lane, at + 1))
        return found

    def _look_at(self, key: LaneKey) -> None:
        """The head of a lane may be another one, or may start now."""
        lane = self._lanes.get(key)
        if lane is None:
            return
        head = self._head(lane)
        if head is None:
            del self._lanes[key]
            return
        rank = self._ranked(head, self._served)
        if lane.rank != rank:
            lane.rank = rank
            room = self._rooms.get(lane.room)
            if room is None:
                room = self._rooms[lane.room] = StartRoom([])
            heappush(room.ready, (rank, key))
            self._offer(lane.room, room)

    def _offer(self, key: RoomKey, room: StartRoom) -> None:
        """The best lane of a room may be another one."""
        if room.is_full:
            return
        if not room.ready:
            del self._rooms[key]
            return
        rank = room.ready[0][0]
        if room.rank != rank:
            room.rank = rank
            heappush(self._open, (rank, key))

    def _best(self, room: StartRoom) -> StartLane | None:
        """The lane of a room whose head is next."""
        while room.ready:
            rank, key = room.ready[0]
            lane = self._lanes.get(key)
            if lane is not None and lane.rank == rank:
                head = self._head(lane)
                if head is not None and self._ranked(head, self._served) <= rank:
                    return lane
                lane.rank = None
                heappop(room.ready)
                self._look_at(key)
            else:
                heappop(room.ready)  # it was looked at again since
        return None

    def _head(self, lane: StartLane) -> Entry | None:
        while lane.entries and not self._waits(lane.entries[0]):
            heappop(lane.entries)
        return lane.entries[0] if lane.entries else None

    def _waits(self, entry: Entry) -> bool:
        place = self._places.get(entry[2])
        return place is not None and place.started is None and place.due is None

    def _is_idle(self, key: LaneKey) -> bool:
        """Whether a lane is empty, or is looked at anyway."""
        lane = self._lanes.get(key)
        return lane is None or lane.rank is not None or self._head(lane) is None

    def _ranked(self, entry: Entry, served: Mapping[str, int]) -> Rank:
        minus, number, run = entry
        return minus, served.get(self._places[run].keys.fair, 0), number

    def _forget_turns(self) -> None:
        waiting = {lane.keys.fair for lane in self._lanes.values()}
        newest = sorted(self._served.items(), key=lambda item: item[1])[-SERVED_MAX // 2 :]
        self._served = {key: turn for key, turn in self._served.items() if key in waiting} | dict(newest)
        self._served_max = len(self._served) + SERVED_MAX


def _lane_of(place: StartPlace) -> LaneKey:
    keys, limit = place.keys, place.flow.concurrency
    return (keys.concurrency, limit.limit if limit is not None else 0), keys.rate, keys.fair

"""The arithmetic of queues that stores share: which key's work is next, and how much of it may begin.

Owns the choice between lanes and the filling of buckets. Promises: smaller priorities first; within one, every start is
drawn between the keys that have work, in proportion to their weights, however long their lines are. Must not know where
work is kept, nor a clock.

Theory of operation
    A lottery (Waldspurger and Weihl, 1994). Each claim draws for itself, so no turn has to be written down, and 64
    claims at the same moment do not all choose the same key (decision 0015). Starts of
    one claim are drawn together (systematic sampling): each key gets its share of them, rounded up or down. Over many
    claims shares differ from the weights by chance only: of two keys each gets one of the next 20 starts in all but
    one of a million cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from random import Random

from msgspec import Struct


class Lane(Struct):
    """The waiting work of one priority and key of a queue."""

    priority: int
    key: str
    ready: int
    """Number of waiting offers, counted up to the number that is needed."""
    room: int | None = None
    """How many of the key may begin now, over all priorities; None: no limit."""


class LaneShare(Struct, frozen=True):
    """How many offers of a lane begin."""

    priority: int
    key: str
    count: int


def share(lanes: Sequence[Lane], limit: int, weights: Mapping[str, float], random: Random) -> list[LaneShare]:
    """The offers that begin, by lane, in order of priority: `limit` altogether, or all if there are fewer."""
    rooms = {lane.key: lane.room for lane in lanes if lane.room is not None}
    turns: list[LaneShare] = []
    for _, same in groupby(sorted(lanes, key=lambda lane: lane.priority), key=lambda lane: lane.priority):
        for lane, count in _draw(list(same), limit, weights, rooms, random):
            turns.append(LaneShare(lane.priority, lane.key, count))
            limit -= count
            if lane.key in rooms:
                rooms[lane.key] -= count
    return turns


def _draw(
    lanes: list[Lane], limit: int, weights: Mapping[str, float], rooms: Mapping[str, int], random: Random
) -> list[tuple[Lane, int]]:
    """Draws the starts of one priority. Starts that a lane cannot use go to the others, in another round."""
    left = [max(0, min(lane.ready, rooms.get(lane.key, lane.ready))) for lane in lanes]
    counts = [0] * len(lanes)
    while limit > 0 and any(left):
        tickets = [weights.get(lane.key, 1.0) if left[number] else 0.0 for number, lane in enumerate(lanes)]
        step, draws = sum(tickets) / limit, limit
        first, passed, all_drawn = random.random(), 0.0, 0
        last = max(number for number, ticket in enumerate(tickets) if ticket)
        for number, ticket in enumerate(tickets):
            passed += ticket
            # All that is left falls to the last one: sums of floats may end a little before the last draw does.
            drawn = draws - all_drawn if number == last else 0
            while number < last and all_drawn + drawn < draws and (first + all_drawn + drawn) * step < passed:
                drawn += 1
            all_drawn += drawn
            drawn = min(drawn, left[number])
            counts[number] += drawn
            left[number] -= drawn
            limit -= drawn
    return [(lane, count) for lane, count in zip(lanes, counts, strict=True) if count]


class Rate(Struct, frozen=True):
    """A rate limit in starts per second: a bucket that holds the starts of one second, at least one."""

    per_s: float

    @property
    def burst(self) -> float:
        return max(1.0, self.per_s)

    def filled(self, tokens: float | None, passed_ms: int) -> float:
        """The content of the bucket after some time. None: it was never used and is full. A clock that steps back adds
        nothing."""
        if tokens is None:
            return self.burst
        return min(self.burst, tokens + self.per_s * max(0, passed_ms) / 1_000)

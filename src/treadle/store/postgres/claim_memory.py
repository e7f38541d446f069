"""A process's memory of the lines it claims from, so that the next claim need not look at everything again.

It is only a cache: everything here may be old or lost, which costs one more look. Promises that nothing it hides stays
hidden for longer than BELIEVED_S. Must not know SQL.

    cursor   where the next claim of a queue with very many keys continues
    mark     no line begins before this position: rows before it were claimed, and are skipped inside the index
    view     lanes as seen a moment ago: the next claims draw between them without looking
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from random import Random

from msgspec import Struct

from treadle.store.fairness import Lane, LaneShare, share

LANES = 16
"""Keys between which a claim draws: looking at them takes about a third of a millisecond."""
BELIEVED_S = 2.0
"""How long the beginning of a line is believed: work that was given back may wait this long behind newer work."""
VIEW_S = 0.5
"""How long lanes are believed: work of a new key may wait this long for its first turn. Better priorities do not wait:
a claim that takes without looking takes nothing if there is one."""
ENDLESS = 1 << 30
NOWHERE = 1 << 63
"""Behind every position."""

Position = tuple[int, str]
FIRST: Position = (-(1 << 31), "")


class Head(Struct, frozen=True):
    """A lane, as a claim that looked has found it."""

    lane: Lane
    position: int
    """The position of the first row that waits."""


class LaneView(Struct):
    """Lanes of one priority."""

    priority: int
    lanes: list[Lane]
    begin: dict[str, int]
    """By key: where the line begins."""
    starts: int
    """Starts that the view is still good for. If more keys wait than one view has, the others follow after them."""
    until: float

    def took(self, key: str, position: int) -> None:
        self.begin[key] = max(self.begin[key], position + 1)


class _Round(Struct):
    """A round over all lanes, group by group, from the first on."""

    begin_at: int
    begun: float
    seen_to: Position = FIRST
    lowest: int = NOWHERE


class QueueLine:
    """The memory of one queue's line."""

    def __init__(self) -> None:
        self.cursor = FIRST
        self._mark = 0
        self._mark_until = 0.0
        self._round: _Round | None = None
        self._view: LaneView | None = None
        self._missed_until = 0.0

    def begin_at(self) -> int:
        """The mark: positions before it need not be looked at."""
        return self._mark if time.monotonic() < self._mark_until else 0

    def looked(self, after: Position, begin_at: int, heads: Sequence[tuple[Position, int]]) -> None:
        """Updates the mark: once all lanes were seen, no line begins before the lowest of their heads. The mark rises
        with every round, and is forgotten BELIEVED_S after a round that began at the very beginning."""
        if after == FIRST:
            self._round = _Round(begin_at, time.monotonic())
        so_far, self._round = self._round, None
        if so_far is None or so_far.begin_at != begin_at or after > so_far.seen_to:
            return
        so_far.lowest = min([so_far.lowest, *(position for _, position in heads)])
        if len(heads) >= LANES:
            so_far.seen_to = max(so_far.seen_to, heads[-1][0])
            self._round = so_far
            return
        self._mark = so_far.lowest if so_far.lowest < NOWHERE else 0
        if not begin_at:
            self._mark_until = so_far.begun + BELIEVED_S

    def keep(self, heads: Sequence[Head], limit: int) -> None:
        """Remembers the lanes that were seen, unless lines were too short for that a moment ago. `limit` rows are drawn
        now."""
        now = time.monotonic()
        self._view = None
        if not heads or now < self._missed_until:
            return
        best = min(head.lane.priority for head in heads)
        drawn = [head for head in heads if head.lane.priority == best]
        starts = LANES - limit if len(heads) >= LANES else ENDLESS
        begin = {head.lane.key: head.position for head in drawn}
        self._view = LaneView(best, [head.lane for head in drawn], begin, starts, now + VIEW_S)

    def draw(self, limit: int, weights: Mapping[str, float], random: Random) -> tuple[LaneView, list[LaneShare]] | None:
        """Draws between the remembered lanes. None: look."""
        view = self._view
        if view is None or view.starts < limit or time.monotonic() >= view.until:
            return None
        if any(lane.ready < limit for lane in view.lanes):
            return None
        view.starts -= limit
        return view, share(view.lanes, limit, weights, random)

    def missed(self) -> None:
        """The drawn rows were not there: another claim took them, lines are short, or a better priority waits."""
        self._view = None
        self._missed_until = time.monotonic() + VIEW_S


class Lines(dict[str, QueueLine]):
    """The lines of a process, by queue."""

    sweep_at = 0.0
    """The time of the next search for idle buckets."""

    def __missing__(self, queue: str) -> QueueLine:
        self[queue] = line = QueueLine()
        return line

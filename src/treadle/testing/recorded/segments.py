"""The lives of a recorded run: a fork has those of its forebears before its own (6.3).

Owns the times of a play. A fork begins its own life where it left that of its origin, so the time between the point and
the fork does not pass in a play, unless the clocks of the run went on meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from treadle.model import events as e
from treadle.testing.recorded.past import RecordedRun


@dataclass(slots=True)
class Segment:
    """A part of a history that one run has lived: the events after number `after`."""

    name: str | None
    """The name of that run in the scenario; None: the run under test, which is the oldest of them."""
    after: int
    offset: int
    """What is taken from a recorded time to get a time of the play."""
    forked: e.RunForked | None = None
    is_now: bool = False
    """The fork was made of the run as it was then, with the clocks as they were."""

    @property
    def plain(self) -> bool:
        """Whether a fork has nothing but its input from the other run: it is played as an ordinary run."""
        changes = (self.forked.changes or {}) if self.forked is not None else {}
        return self.forked is not None and not self.forked.point and not changes.get("state")


def segments_of(recorded: RecordedRun) -> list[Segment]:
    """The lives of a run, the oldest first."""
    found = [Segment(None, 0, recorded.began)]
    history, forks = recorded.history, 0
    for event in history:
        if not isinstance(event, e.RunForked):
            continue
        before = history[event.seq - 2]
        gap = event.at - before.at
        is_now = gap > 0 and event.shift_ms == 0 and _runs(history[: event.seq - 1])
        segment = Segment(found[-1].name, event.seq, found[-1].offset + (0 if is_now else gap), event, is_now)
        if not segment.plain:
            forks += 1
            segment.name = f"fork {forks}" if forks > 1 else "fork"
        found.append(segment)
    return found


def segment_at(segments: Sequence[Segment], seq: int) -> Segment:
    """The segment that an event lies in."""
    return next(segment for segment in reversed(segments) if seq > segment.after or segment.after == 0)


Order = tuple[int, ...]
"""Of events at one instant: what a child did lies between its start and whatever its parent did next."""


@dataclass(slots=True)
class FamilyMember:
    """A run of a family, with its place in the time of a play."""

    run: RecordedRun
    segments: list[Segment]
    started: Order = ()
    """Where its parent has called it; of the first run nothing."""
    ended: tuple[int, Order] | None = None
    """Where its parent has heard of its end: the time, and the place before it."""

    def offset(self, seq: int) -> int:
        """What is taken from the recorded time of an event."""
        return segment_at(self.segments, seq).offset

    def order(self, seq: int) -> Order:
        """The place of an event among those of the family at the same instant."""
        if self.ended is not None and self.run.history[seq - 1].at == self.ended[0]:
            return (*self.ended[1], seq)
        return (*self.started, seq)


def timed_family(recorded: RecordedRun) -> list[FamilyMember]:
    """The run and everything below it. A child belongs to the life of its parent in which it was called; what it did
    beyond that is left out."""
    return _below(FamilyMember(recorded, segments_of(recorded)))


def _below(member: FamilyMember) -> list[FamilyMember]:
    recorded, segments, found = member.run, member.segments, [member]
    nodes = {event.token: event.node for event in recorded.history if isinstance(event, e.TokenCreated)}
    mocked = recorded.without_child()
    calls = {
        event.run: event.seq
        for event in recorded.history
        if isinstance(event, e.ChildStarted) and nodes[event.token] not in mocked
    }
    for child in recorded.children:
        if child.run not in calls:
            continue  # it was called in what is left out, or its call is mocked
        called = segment_at(segments, calls[child.run])
        later = next((segment for segment in segments if segment.after > called.after), None)
        if later is not None:
            until = recorded.history[later.after - 2].at
            child = replace(child, history=[event for event in child.history if event.at <= until])
        if child.history:
            ends = [event for event in recorded.history if isinstance(event, e.ChildEnded) and event.run == child.run]
            ended = (ends[0].at, member.order(ends[0].seq - 1)) if ends else None
            lived = [Segment(None, 0, called.offset)]
            found += _below(FamilyMember(child, lived, member.order(calls[child.run]), ended))
    return found


def _runs(history: Sequence[e.Event]) -> bool:
    from treadle.testing.world.projection import Projection

    projection = Projection()
    projection.apply(history)
    return projection.status.value in ("running", "compensating")

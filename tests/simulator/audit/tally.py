"""What a join of a group has to do, counted from scratch: the naive half of the join rules (2.5, 2.16, A10).

A branch is live (something in it can still get to the join, or has not begun yet), arrived, failed or ended; from
these four and the definition follows one of fire, fail, dead, wait.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

from tests.simulator.audit.record import Arrival, Group, JoinRecord, Record
from treadle.model.ids import Frames


class Tally(NamedTuple):
    """The branches of a group, as one of its joins sees them."""

    live: set[int]
    arrived: set[int]
    cursor: int
    """Branches that do not exist yet and could arrive."""

    @property
    def coming(self) -> int:
        return len(self.live) + self.cursor


def tally(record: Record, group: Group, join: JoinRecord) -> Tally:
    """Count, from scratch."""
    members = record.chart.members(join.site)
    live: set[int] = set()
    waiting: set[int] = set()
    for unit in record.units():
        place = place_of(unit.frames, group.id)
        if place is None or is_abandoned(record, unit.frames[place + 1 :]):
            continue
        branch = unit.frames[place][1]
        if not isinstance(unit, Arrival):
            if unit.node in members:
                live.add(branch)
        elif unit.group == group.id and unit.target == join.site.target:
            waiting.add(branch)
        elif not _leaves(unit, place) and unit.target in members:
            live.add(branch)
    live |= _cursors_inside(record, group, join)
    return Tally(live, waiting - live, _cursor(record, group, join))


def _cursors_inside(record: Record, group: Group, join: JoinRecord) -> set[int]:
    """Branches in which a lazy group is under way: what it has not begun yet will come, too."""
    found: set[int] = set()
    for inner in record.groups.values():
        if inner.max_in_flight is None or len(inner.seen) == inner.total or inner.id == group.id:
            continue
        place = place_of(inner.frames, group.id)
        if place is None or is_abandoned(record, inner.frames[place + 1 :]):
            continue
        busy = any(frame[0] == inner.id for unit in record.units() for frame in unit.frames)
        if busy and _cursor(record, inner, join):
            found.add(inner.frames[place][1])
    return found


def place_of(frames: Frames, group: int) -> int | None:
    """Where in a stack a group's frame is."""
    return next((place for place, frame in enumerate(frames) if frame[0] == group), None)


def _leaves(arrival: Arrival, place: int) -> bool:
    """Whether the join it waits at takes off the frame at `place`."""
    own = place_of(arrival.frames, arrival.group) if arrival.group is not None else None
    return own is not None and own <= place


def is_abandoned(record: Record, inner: Frames) -> bool:
    """Whether a join inside went on without this: stragglers count for nobody further out."""
    return any(index in record.groups[group].abandoned for group, index in inner)


def _cursor(record: Record, group: Group, join: JoinRecord) -> int:
    if is_decided(group):
        return 0
    if not any(record.chart.leads_to(record.transition(t), join.site) for t in group.transitions):
        return 0
    return group.total - len(group.seen)


def is_decided(group: Group) -> bool:
    """Whether what has not begun yet never will: withdrawn, or nobody waits for it and nobody lets it pass."""
    passes = [join.site.sync.on_early_complete == "pass_through" for join in group.joins if join.status == "fired"]
    return group.withdrawn or not all(passes) or any(join.status == "failed" for join in group.joins)


Verdict = tuple[str, frozenset[str]]
"""(fire | fail | dead | wait, the error kinds that would be right)"""
FIRE: Verdict = ("fire", frozenset())
DEAD: Verdict = ("dead", frozenset())
WAIT: Verdict = ("wait", frozenset())


def _fail(*kinds: str) -> Verdict:
    return "fail", frozenset(kinds)


def verdict(record: Record, group: Group, join: JoinRecord, seen: Tally) -> Verdict:
    """What the join has to do, by 2.5 and 2.16."""
    sync = join.site.sync
    arrived, failed, coming = len(seen.arrived), len(group.failed), seen.coming
    if group.total == 0 and not _is_for_the_empty(record, group, join):
        return WAIT if len(group.joins) > 1 else DEAD
    if failed and sync.on_branch_failure == "fail":
        return _fail("BRANCH_FAILED")
    kind = sync.strategy.kind
    if kind == "all":
        if coming:
            return WAIT
        if arrived or not group.total or (failed and sync.on_branch_failure == "include_errors"):
            return FIRE
        if failed:
            return _fail("NO_SUCCESSFUL_BRANCH")
        return FIRE if group.empties else DEAD
    if kind == "cel":
        return _computed(group, sync.strategy.expr or "", arrived, failed, coming)
    if kind == "percent":
        return _percentage(group, sync.strategy.count, arrived, failed, coming)
    need = 1 if kind == "any" else sync.strategy.count
    if group.total and arrived >= need:
        return FIRE
    if (group.total and arrived + coming >= need) or (coming and group.open):
        return WAIT
    if group.total >= need and not arrived and not failed:
        return WAIT if coming else DEAD  # if the rest route away, too, nothing has failed
    return _fail("QUORUM_UNREACHABLE", "NO_SUCCESSFUL_BRANCH")


def _percentage(group: Group, percent: int, arrived: int, failed: int, coming: int) -> Verdict:
    """A10: the total may still grow, so nothing is lost before the last branch is in."""
    if group.total and arrived >= ceil(percent * group.total / 100):
        return FIRE
    if coming:
        return WAIT
    return DEAD if group.total and not arrived and not failed else _fail("QUORUM_UNREACHABLE", "NO_SUCCESSFUL_BRANCH")


class Facts(NamedTuple):
    """What a computed join sees."""

    arrived: int
    failed: int
    live: int
    total: int


COMPUTED: dict[str, Callable[[Facts], bool]] = {
    "arrived * 2 >= total": lambda f: f.arrived * 2 >= f.total,
    "arrived >= 1 && failed == 0": lambda f: f.arrived >= 1 and f.failed == 0,
    "succeeded + failed >= total": lambda f: f.arrived + f.failed >= f.total,
    "live == 0 && arrived > 0": lambda f: f.live == 0 and f.arrived > 0,
}
"""What the generator's computed joins mean."""


def _computed(group: Group, expr: str, arrived: int, failed: int, coming: int) -> Verdict:
    if coming and not arrived and not failed:
        return WAIT
    if COMPUTED[expr](Facts(arrived, failed, coming, group.total)):
        return FIRE
    if coming:
        return WAIT
    return DEAD if not arrived and not failed and group.total else _fail("QUORUM_UNREACHABLE")


def _is_for_the_empty(record: Record, group: Group, join: JoinRecord) -> bool:
    for name in group.transitions:
        foreach = record.transition(name).foreach
        if foreach is not None and foreach.on_empty is not None:
            return join.site.target == foreach.on_empty
    ahead = [
        other
        for other in group.joins
        if any(record.chart.leads_to(record.transition(t), other.site) for t in group.transitions)
    ]
    return ahead == [join]

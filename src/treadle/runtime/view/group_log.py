"""The groups of a run, those that have ended included: which branches have arrived, failed, are live or have gone.

Owns the record of one group and its fold; `visit_log` calls it. One byte a branch: a fan-out may have 100,000. Must not
decide anything: whether a join fires is the kernel's.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct, field

from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import ArrivalId, Frames, GroupId, TokenId

BranchStatus = Literal["failed", "live", "arrived", "ended", "pending"]
SiteStatus = Literal["open", "fired", "failed", "dead"]
OF_RUN = -1
"""The run's own failure, as `because` of events names it; other failures have the number of their event."""


class SiteRecord(Struct):
    """One join of a group, and what became of it."""

    target: str
    status: SiteStatus = "open"
    arrivals: int = 0
    """Tokens that have arrived, of all branches together."""
    decided: int | None = None
    why: str | None = None
    error: Error | None = None
    met: int = 0
    """Branches that had arrived when it was decided."""


class ArrivalRecord(Struct, gc=False):
    """One arrival at a join of a group. A branch may have several: its visits fork, and each comes to the join."""

    group: GroupId
    branch: int
    target: str
    token: TokenId
    """The visit that waits as this arrival; 0: it stands alone."""
    held: bool = True
    """False while it is withdrawn; an operator's retry of the failure that took it down brings it back."""


class GroupRecord(Struct):
    """One firing of a fan-out."""

    group: GroupId
    names: list[str]
    node: str
    path: str
    origin: TokenId
    frames: Frames
    total: int
    open: bool
    transitions: list[str]
    opened: int
    opened_seq: int
    grown: list[int]
    """The numbers of the events that added branches; each has the items of its branches."""
    known_as: tuple[str, ...] = ()
    """Its names as the history has them: `name:x`, `transition:t`, `node:n`."""
    replicated: bool = False
    withdrawn: bool = False
    closed: int | None = None
    began: bytearray = field(default_factory=bytearray)
    """Branch → 1 once it has begun."""
    live: dict[int, int] = {}
    """Branch → its live visits."""
    first: array[int] = field(default_factory=lambda: array("q"))
    """Branch → its first visit; 0: it has none."""
    arrived: dict[int, int] = {}
    """Branch → how many of its arrivals a join holds or has used."""
    failed: dict[int, Error] = {}
    turns: dict[int, list[int]] = {}
    """Branch → the events at which it failed, was brought back, failed again, … in turn."""
    sites: dict[str, SiteRecord] = {}

    def entered(self, branch: int, visit: TokenId) -> None:
        """A visit of a branch begins to exist."""
        self._begin(branch)
        if not self.first[branch]:
            self.first[branch] = visit
        self.live[branch] = self.live.get(branch, 0) + 1

    def _begin(self, branch: int) -> None:
        if branch >= len(self.began):
            more = branch + 1 - len(self.began)
            self.began.extend(bytes(more))
            self.first.extend([0] * more)
        self.began[branch] = 1

    def came_back(self, branch: int, seq: int) -> None:
        """A visit of a branch lives again: an operator retries a failure."""
        self.live[branch] = self.live.get(branch, 0) + 1
        self.recovered(branch, seq)

    def fell(self, branch: int, error: Error, seq: int) -> None:
        """The branch has failed."""
        if branch not in self.failed:
            self.turns.setdefault(branch, []).append(seq)
        self.failed[branch] = error

    def recovered(self, branch: int, seq: int) -> None:
        """The failure of the branch was taken back."""
        if self.failed.pop(branch, None) is not None:
            self.turns[branch].append(seq)

    def failed_at(self, seq: int) -> list[int]:
        """The branches that had failed at an event, by index."""
        return sorted(b for b, turns in self.turns.items() if sum(1 for turn in turns if turn <= seq) % 2)

    def left(self, branch: int) -> None:
        """A visit of a branch has ended."""
        if (left := self.live.get(branch, 0) - 1) > 0:
            self.live[branch] = left
        else:
            self.live.pop(branch, None)

    def brought(self, branch: int) -> None:
        """The branch has an arrival more at a join. Its transition may lead to the join itself: then no visit of the
        branch was before."""
        self._begin(branch)
        self.arrived[branch] = self.arrived.get(branch, 0) + 1

    def withdrew(self, branch: int) -> None:
        """One arrival of the branch was taken back."""
        if (left := self.arrived[branch] - 1) > 0:
            self.arrived[branch] = left
        else:
            del self.arrived[branch]

    def status(self, branch: int) -> BranchStatus:
        """A branch with an arrival has arrived, even if its visit counts as live while the join holds it."""
        if branch in self.failed:
            return "failed"
        if branch in self.arrived:
            return "arrived"
        if branch in self.live:
            return "live"
        if branch < len(self.began) and self.began[branch]:
            return "ended"
        return "ended" if self.withdrawn else "pending"


def _opened(log: Any, event: e.GroupOpened) -> None:
    log.groups[event.group] = GroupRecord(
        group=event.group,
        names=[name.partition(":")[2] for name in event.names],
        node=event.node,
        path=event.path,
        origin=event.origin,
        frames=event.frames,
        total=event.total,
        open=event.open,
        transitions=list(event.transitions),
        opened=event.at,
        opened_seq=event.seq,
        grown=[],
        known_as=tuple(event.names),
        replicated=event.replicated,
    )


def _grew(log: Any, event: e.GroupGrew) -> None:
    group = log.groups[event.group]
    group.total = event.total
    group.grown.append(event.seq)


def _closed(log: Any, event: e.GroupClosed) -> None:
    group = log.groups[event.group]
    if event.because:
        log.closed_by.setdefault(event.because, []).append((group, group.open, group.withdrawn, group.closed))
    group.open, group.closed = False, event.at
    group.withdrawn = event.withdrawn or group.withdrawn


def take_back(log: Any, failure: int) -> None:
    """A failure is retried: the groups that it closed go on."""
    for group, was_open, was_withdrawn, closed in reversed(log.closed_by.pop(failure, [])):
        group.open, group.withdrawn, group.closed = was_open, was_withdrawn, closed


def _site(group: GroupRecord, target: str) -> SiteRecord:
    if target not in group.sites:
        group.sites[target] = SiteRecord(target)
    return group.sites[target]


def _arrived(log: Any, event: e.JoinArrived) -> None:
    group = log.groups.get(event.group) if event.group is not None else None
    if group is None:
        return
    branch = next((index for identity, index in event.frames if identity == group.group), 0)
    group.brought(branch)
    _site(group, event.target).arrivals += 1
    if not event.absorbed:
        log.arrivals[event.arrival] = ArrivalRecord(group.group, branch, event.target, event.token)
        _give(log, event.token, event.arrival)


def _give(log: Any, visit: TokenId, arrival: ArrivalId) -> None:
    if visit:
        log.waiting_as[visit] = (*log.waiting_as.get(visit, ()), arrival)


def _met(log: Any, group: GroupRecord, target: str) -> int:
    """Branches that wait at a join now. A group mostly has one: then its own count is that of the join."""
    if len(group.sites) == 1:
        return len(group.arrived)
    here = (one for one in log.arrivals.values() if one.held and one.group == group.group and one.target == target)
    return len({one.branch for one in here})


def _decided(status: SiteStatus) -> Callable[[Any, Any], None]:
    def read(log: Any, event: Any) -> None:
        group = log.groups.get(event.group) if event.group is not None else None
        if group is None:
            return
        site = _site(group, event.target)
        site.status, site.decided = status, event.at
        site.why = getattr(event, "why", None)
        site.error = getattr(event, "error", None)
        site.met = max(_met(log, group, event.target), getattr(event, "arrived", 0))
        fails = getattr(event, "fails", None)
        if fails is not None and site.error is not None:
            log.groups[fails[0]].fell(fails[1], site.error, event.seq)

    return read


def _resumed(log: Any, event: e.RunResumed) -> None:
    if event.reopened:
        take_back(log, OF_RUN)


def _reopened(log: Any, event: e.JoinReopened) -> None:
    take_back(log, event.failure)
    group = log.groups.get(event.group) if event.group is not None else None
    if group is not None:
        site = _site(group, event.target)
        site.status, site.decided, site.why, site.error, site.met = "open", None, None, None, 0
        for identity, branch in group.frames:
            log.groups[identity].recovered(branch, event.seq)


def withdraw(log: Any, number: ArrivalId) -> None:
    """One arrival is withdrawn by its own number. A visit that waits as others, too, waits on."""
    arrival = log.arrivals.get(number)
    if arrival is not None:  # None: it was at a node's own join
        log.waiting_as[arrival.token] = tuple(n for n in log.waiting_as.get(arrival.token, ()) if n != number)
        _take_back(log, arrival)


def withdraw_all(log: Any, visit: TokenId) -> None:
    """A visit ends without its joins having used it: every arrival that it waits as is withdrawn."""
    for number in log.waiting_as.get(visit, ()):
        _take_back(log, log.arrivals[number])


def _take_back(log: Any, arrival: ArrivalRecord) -> None:
    group = log.groups[arrival.group]
    if arrival.held and group.sites[arrival.target].status != "fired":
        arrival.held = False
        group.withdrew(arrival.branch)


def forget(log: Any, visit: TokenId) -> None:
    """A visit has completed: its joins have used the arrivals that it waited as."""
    for number in log.waiting_as.pop(visit, ()):
        del log.arrivals[number]


def hold_again(log: Any, number: ArrivalId) -> None:
    """One arrival that was withdrawn by its own number waits at its join again."""
    arrival = log.arrivals.get(number)
    if arrival is not None:
        _give(log, arrival.token, number)
        _bring_back(log, arrival)


def hold_all_again(log: Any, visit: TokenId) -> None:
    """A visit waits at its joins again, as the arrivals that were withdrawn when it ended."""
    for number in log.waiting_as.get(visit, ()):
        _bring_back(log, log.arrivals[number])


def _bring_back(log: Any, arrival: ArrivalRecord) -> None:
    if not arrival.held:
        arrival.held = True
        log.groups[arrival.group].brought(arrival.branch)


def group_readers() -> dict[type[e.Event], Callable[[Any, Any], None]]:
    """Type of event → its fold, for `visit_log`."""
    return {
        e.GroupOpened: _opened,
        e.GroupGrew: _grew,
        e.GroupClosed: _closed,
        e.JoinArrived: _arrived,
        e.JoinFired: _decided("fired"),
        e.JoinFailed: _decided("failed"),
        e.JoinDead: _decided("dead"),
        e.JoinReopened: _reopened,
        e.RunResumed: _resumed,
    }

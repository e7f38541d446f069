"""One run as its events tell it: the auditor's own fold, kept apart from the kernel's.

Owns visits, groups, arrivals, timers and the like, as plain records with everything that ever was (the kernel forgets
what has ended; the auditor does not). `rules` look at it before each event is taken in and after each commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.simulator.audit.budgets import Purse
from tests.simulator.audit.chart import Chart, Site
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.commands import Command
from treadle.model.definition import Node, Transition
from treadle.model.ids import Frame, Frames, RunId
from treadle.model.states import Mode

LIVE = frozenset({"pending", "dispatched", "executing", "waiting"})
Path = tuple[str | int, ...]


@dataclass(slots=True)
class Visit:
    """One visit, from its creation to long after its end."""

    id: int
    node: str
    path: str
    frames: Frames
    via: str | None
    origin: int | None
    compensation: bool
    record: int | None = None
    state: str = "pending"
    attempt: int = 0
    recovery: int = 0
    reason: str | None = None
    detail: Any = None
    worker: str | None = None
    loops: dict[str, int] = field(default_factory=dict)
    held: bool = False
    """It stands at joins as its arrivals, no longer at its node."""
    timers: set[int] = field(default_factory=set)
    gate: str | None = None
    holder: str | None = None
    """Who has claimed its gate."""
    quorum: tuple[int, int] | None = None
    """Of a gate for several people: how many answer, and how many equal answers are enough."""
    said: dict[str, Any] = field(default_factory=dict)
    """The answers of these people, by name, in order."""
    child: str | None = None
    waiting_since: int = 0
    begun: bool = False
    routed: bool = False
    """Its work has succeeded and what follows from it was started."""
    deferred: Any = None
    """A result that came while the run was paused: (output, error)."""
    deferred_attempt: int = 0
    skipped: tuple[Any] | None = None
    """The output that an operator has completed it with."""
    given: tuple[Any] | None = None
    """The input that an operator has set for its next attempts."""
    failure: int = 0
    """The failure it has died of, if that can be taken back."""
    because: int = 0
    """The failure it went down with; 0: it was cancelled for another reason, or not at all."""
    brought: list[Arrival] = field(default_factory=list)
    """What it held at joins when it went down."""

    @property
    def live(self) -> bool:
        return self.state in LIVE


@dataclass(slots=True)
class Arrival:
    """A presence at a join."""

    id: int
    token: int
    target: str
    via: str
    path: str
    frames: Frames
    group: int | None
    item: Frame | None
    value: Any
    loops: dict[str, int]


@dataclass(slots=True)
class JoinRecord:
    """A join of one group instance."""

    site: Site
    status: str = "open"
    because: int = 0
    """Of a dead one: the failure it went down with."""


@dataclass(slots=True)
class Group:
    """One firing of a fan-out."""

    id: int
    names: list[str]
    origin: int
    node: str
    path: str
    frames: Frames
    total: int
    transitions: list[str]
    replicated: bool
    isolating: bool
    open: bool
    max_in_flight: int | None
    joins: list[JoinRecord]
    seen: set[int] = field(default_factory=set)
    """Branches that have begun to exist."""
    failed: set[int] = field(default_factory=set)
    abandoned: set[int] = field(default_factory=set)
    revived: set[int] = field(default_factory=set)
    """Branches an operator has set going again after another had taken their place in flight."""
    withdrawn: bool = False
    """Cancelled as a group: what was not spawned never will be."""
    empties: int = 0
    """Fan-outs inside it that came to nothing: an `all` join that waits for nothing else is satisfied by them."""

    def join_at(self, target: str) -> JoinRecord | None:
        return next((join for join in self.joins if join.site.target == target), None)


@dataclass(slots=True)
class Timer:
    """A durable timer."""

    due: int
    purpose: str
    token: int | None
    group: int | None
    target: str | None


@dataclass(slots=True)
class Doing:
    """The commit being looked at: all its events, and what those taken in so far have done."""

    cause: Command | None
    now: int
    """The store's clock at the commit."""
    seq: int = 0
    fired: dict[int, list[str]] = field(default_factory=dict)
    """By origin: the transitions its end has started."""
    owed: list[tuple[str, Frames]] = field(default_factory=list)
    """Continuations that joins have promised: (target, frames)."""
    ended: list[int] = field(default_factory=list)
    """Visits that have ended, or left their node for a join."""
    orphans: list[str] = field(default_factory=list)
    """Children whose visit no longer waits for them."""
    withdrawn: list[Frames] = field(default_factory=list)
    """Where something was cancelled: visits, and arrivals that stood alone."""
    timers_fired: list[Timer] = field(default_factory=list)
    events: list[e.Event] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    """Failures that an operator's retry takes back."""
    jumps: list[tuple[str, Frames]] = field(default_factory=list)
    """Visits that an operator's jump has promised: (node, frames)."""
    jumped: int = 0
    """The visit that jumps."""
    fell: set[int] = field(default_factory=set)  # visits that have gone down
    back: list[tuple[int, int]] = field(default_factory=list)
    """What has come back: (visit or 0, the failure it had gone down with)."""


class Record:
    """See the module's docstring."""

    def __init__(self, run: RunId, chart: Chart, charts: Callable[[int], Chart] | None = None) -> None:
        self.run = run
        self.chart = chart
        self.chart_of = charts or (lambda _version: chart)
        """The charts of all versions."""
        self.version = 1
        self.is_fork = False
        self.stands: str | None = None
        """Of a fork that waits for its start: the status it has at its point."""
        self.queued_at = 0
        self.overdue = False
        """It is paused because its time is up."""
        self.asked: Any = None
        """The input that its first start was asked for with."""
        self.began = 0
        """The sequence number behind which its start nodes are visited."""
        self.budget = Purse()
        self.own_children: set[str] = set()
        """Children that it has started itself."""
        self.undo_calls: set[int] = set()
        """Compensation records of child runs."""
        self.status = "created"
        self.seq = 0
        self.started: e.Beginning | None = None
        self.callers: list[tuple[str, int, str | None]] = []
        """Who waits for it: run, visit, and under which name it was called (an item of a batch has its own)."""
        self.visits: dict[int, Visit] = {}
        self.arrivals: dict[int, Arrival] = {}
        self.groups: dict[int, Group] = {}
        self.timers: dict[int, Timer] = {}
        self.store_timers: dict[int, int] = {}
        """What the store was told: timer → due."""
        self.node_joins: dict[tuple[str, Frame | None], list[int]] = {}
        """Arrivals held at a node's own join, in order."""
        self.signals: dict[int, e.SignalReceived] = {}
        """Not yet taken."""
        self.undo: dict[int, str] = {}
        """Compensation records and their status, in order of completion."""
        self.children: dict[str, e.ChildEnded | None] = {}
        self.scopes: dict[Frame | None, dict[Path, Any]] = {None: {}}
        self.entity: e.EntityMoved | None = None
        self.written: set[str] = set()
        """Names of artifacts that the run itself wrote last."""
        self.ends: list[e.Event] = []
        self.forward_visits = 0
        self.failures: dict[int, Frame | None] = {}
        """Failures nothing has handled → the branch that died of each."""
        self.fallen: dict[int, tuple[int, Arrival]] = {}
        """Arrivals that went down without their visit, and with which failure."""
        self.closed: list[tuple[int, int, bool, bool]] = []
        """Groups that a failure has closed: (failure, group, whether it was open, whether withdrawn)."""
        self.doing = Doing(None, 0)
        self.complaints: list[tuple[str, str]] = []
        self.rounds: dict[tuple[str, Frame | None], set[str]] = {}
        """{inbound: M}: transitions used or absorbed in the round that has fired."""

    def complain(self, rule: str, text: str) -> None:
        """Something is wrong here; the commit is looked at to its end all the same."""
        self.complaints.append((rule, f"#{self.doing.seq} {text}"))

    def expect(self, holds: bool, rule: str, text: str) -> None:
        """Complain unless it holds."""
        if not holds:
            self.complain(rule, text)

    def node(self, ref: str) -> Node:
        return self.chart.workflow.nodes[ref]

    def transition(self, identity: str) -> Transition:
        return self.chart.transitions[identity]

    def live_visits(self) -> list[Visit]:
        return [visit for visit in self.visits.values() if visit.state in LIVE]

    def isolating_frame(self, frames: Frames) -> Frame | None:
        """The branch whose overlay somebody with these frames writes."""
        return next((frame for frame in reversed(frames) if self.groups[frame[0]].isolating), None)

    def item(self, frames: Frames) -> Frame | None:
        """A0: the innermost branch of a replicated group that some synchronization names, or the run."""
        for frame in reversed(frames):
            group = self.groups[frame[0]]
            if group.joins and group.replicated:
                return frame
        return None

    def join_item(self, frames: Frames) -> Frame | None:
        """Whose instance of a node's join somebody meets: the item's; stragglers of an early join meet one another."""
        item = self.item(frames)
        inside = frames[frames.index(item) + 1 :] if item is not None else frames
        return next((frame for frame in inside if frame[1] in self.groups[frame[0]].abandoned), item)

    def units(self) -> Iterator[Visit | Arrival]:
        """Everything a join could wait for: visits at their nodes, and arrivals held at joins."""
        for visit in self.visits.values():
            if visit.state in LIVE and not visit.held and not visit.compensation:
                yield visit
        yield from self.arrivals.values()

    def take_effect(self, effect: x.Effect) -> None:
        if isinstance(effect, x.SetTimer):
            self.store_timers[effect.timer] = effect.due
        elif isinstance(effect, x.ClearTimer):
            self.store_timers.pop(effect.timer, None)

    def new_visit(self, event: e.TokenCreated) -> Visit:
        visit = Visit(
            event.token,
            event.node,
            event.path,
            event.frames,
            event.via,
            event.origin,
            event.mode is not Mode.FORWARD,
            event.record,
            loops=event.loops or {},
        )
        self.visits[event.token] = visit
        return visit

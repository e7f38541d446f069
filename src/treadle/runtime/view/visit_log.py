"""Every visit and every group of a run, those that have ended included, as one incremental fold of its history.

`kernel.state` keeps only what decisions need: an ended visit is one byte there. This fold keeps a small record of each,
so that lists, counts and durations need no second reading of the history. Inputs and outputs are not kept: a record
knows the numbers of its events, and the few that one visit has are read again when somebody asks for it.

Promises to use nothing but the events, in their order, in any number of pieces. Must not decide anything.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, field

from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import ArrivalId, Frames, GroupId, RecordId, RunId, TokenId
from treadle.model.states import Mode, TokenState, Waiting
from treadle.runtime.view import group_log
from treadle.runtime.view.group_log import ArrivalRecord, GroupRecord, group_readers

Json = Any

LIVE = (TokenState.PENDING, TokenState.DISPATCHED, TokenState.EXECUTING, TokenState.WAITING)
"""The states of a visit that has not ended."""


class Spent(Struct, gc=False):
    """Milliseconds of a visit by what it did: in a queue, waiting, at work, and held at a join after its work."""

    queue_ms: int = 0
    wait_ms: int = 0
    run_ms: int = 0
    held_ms: int = 0


class VisitRecord(Struct, gc=False):
    """One visit. Instants are milliseconds since 1970."""

    visit: TokenId
    node: str
    path: str
    frames: Frames
    created: int
    created_seq: int
    via: str | None = None
    origin: TokenId | None = None
    why: str | None = None
    compensation: bool = False
    record: RecordId | None = None
    status: TokenState = TokenState.PENDING
    waiting: Waiting | None = None
    since: int = 0
    """When its present state began."""
    attempt: int = 0
    attempts: int = 0
    retries: int = 0
    """How often it was tried again, by itself or by an operator."""
    started: int | None = None
    ended: int | None = None
    worked_seq: int = 0
    """The last event before its work ended: it saw the data as they were then. 0: it is not over."""
    error: Error | None = None
    queue: str | None = None
    worker: str | None = None
    child: RunId | None = None
    cost: float = 0.0
    reported: bool = False
    """Whether its attempts report what they spend; what its output says is then not counted again."""
    answered: bool = False
    """Its answer came while the run was paused, and is not applied yet."""
    inherited: bool = False
    """It had ended when the run was forked: what it took and cost belongs to the other run."""
    spent: Spent = field(default_factory=Spent)
    seqs: array[int] = field(default_factory=lambda: array("q"))
    """The numbers of the events about it, in order."""

    @property
    def live(self) -> bool:
        return self.status in LIVE


class VisitLog:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.visits: dict[TokenId, VisitRecord] = {}
        self.groups: dict[GroupId, GroupRecord] = {}
        self.arrivals: dict[ArrivalId, ArrivalRecord] = {}
        """The arrivals at joins of groups that may still be withdrawn or come back."""
        self.waiting_as: dict[TokenId, tuple[ArrivalId, ...]] = {}
        """Visit → the arrivals that it waits as; of one that went down with a failure: those it would wait as again."""
        self.closed_by: dict[int, list[tuple[GroupRecord, bool, bool, int | None]]] = {}
        """Failure → the groups it closed, with `open`, `withdrawn` and `closed` as they were before."""
        self.paused = False
        self.seq = 0
        self.changed = 0

    def apply(self, events: Iterable[e.Event]) -> None:
        """Folds in the next events."""
        for event in events:
            self.seq, self.changed = event.seq, event.at
            token = getattr(event, "token", None)
            reader = READERS.get(type(event))
            if reader is not None:
                reader(self, event)
            if token and (visit := self.visits.get(token)) is not None:
                visit.seqs.append(event.seq)


def move(visit: VisitRecord, at: int, status: TokenState, waiting: Waiting | None = None) -> None:
    """The visit enters its next state; the time in the one before is added up."""
    spend(visit.spent, visit.status, visit.waiting, at - visit.since)
    visit.status, visit.waiting, visit.since = status, waiting, at
    if status in LIVE:
        visit.ended = None


def spend(spent: Spent, status: TokenState, waiting: Waiting | None, ms: int) -> None:
    """Adds the time in a state. A visit that waits its turn is in a queue, with or without a name."""
    if status is TokenState.EXECUTING:
        spent.run_ms += ms
    elif waiting is Waiting.SIBLINGS:
        spent.held_ms += ms
    elif status is TokenState.WAITING and waiting is not Waiting.QUEUE:
        spent.wait_ms += ms
    elif status in LIVE:
        spent.queue_ms += ms


def _created(log: VisitLog, event: e.TokenCreated) -> None:
    log.visits[event.token] = VisitRecord(
        event.token,
        event.node,
        event.path,
        event.frames,
        event.at,
        event.seq,
        via=event.via,
        origin=event.origin,
        why=event.why,
        compensation=event.mode is Mode.COMPENSATION,
        record=event.record,
        since=event.at,
    )
    if event.mode is not Mode.COMPENSATION:
        for group, branch in event.frames:
            log.groups[group].entered(branch, event.token)


def _dispatched(log: VisitLog, event: e.TokenDispatched) -> None:
    visit = log.visits[event.token]
    move(visit, event.at, TokenState.DISPATCHED, Waiting.QUEUE if event.queue is not None else None)
    visit.attempts += 0 if event.recovery else 1
    visit.attempt, visit.queue, visit.worker = event.attempt, event.queue, None
    visit.answered = False


def _started(log: VisitLog, event: e.TokenStarted) -> None:
    visit = log.visits[event.token]
    visit.attempts += 0 if visit.status is TokenState.DISPATCHED else 1
    move(visit, event.at, TokenState.EXECUTING)
    visit.attempt, visit.worker = event.attempt, event.worker
    visit.started = event.at if visit.started is None else visit.started


def _waiting(log: VisitLog, event: e.TokenWaiting) -> None:
    if event.arrival is not None:  # an arrival comes back by its own number: no visit begins to wait
        group_log.hold_again(log, ArrivalId(event.arrival))
        return
    visit = log.visits[event.token]
    back = not visit.live
    move(visit, event.at, TokenState.WAITING, event.reason)
    visit.attempts += event.tries
    visit.retries += event.tries
    visit.cost += 0 if visit.reported else cost_of(event.output)
    if event.reason is Waiting.SUBWORKFLOW:
        visit.answered = False  # its child may have been reopened during a pause
    if event.reason is Waiting.SIBLINGS:
        visit.worked_seq = visit.worked_seq or event.seq - 1
    if back:  # an operator's retry of the failure that took it down
        visit.error = None
        _entered_again(log, visit, event.seq)
        if event.reason is Waiting.SIBLINGS:
            group_log.hold_all_again(log, visit.visit)


def _resumed(log: VisitLog, event: e.TokenResumed) -> None:
    pending = event.by in ("mutex", "retry")
    move(log.visits[event.token], event.at, TokenState.PENDING if pending else TokenState.EXECUTING)


def _retry_scheduled(log: VisitLog, event: e.TokenRetryScheduled) -> None:
    visit = log.visits[event.token]
    back = not visit.live
    if event.by is not None:
        move(visit, event.at, TokenState.PENDING)
    else:
        move(visit, event.at, TokenState.WAITING, Waiting.TIMER)
    visit.attempts += event.tries
    visit.retries += 1 + event.tries
    visit.error = event.error.briefly() if event.error is not None else None
    visit.worked_seq = 0
    if back:
        _entered_again(log, visit, event.seq)


def _entered_again(log: VisitLog, visit: VisitRecord, seq: int) -> None:
    if log.closed_by:
        for own in visit.seqs:  # its failure is one of its events
            group_log.take_back(log, own)
    if not visit.compensation:
        for group, branch in visit.frames:
            log.groups[group].came_back(branch, seq)


def _token_ended(status: TokenState) -> Callable[[VisitLog, Any], None]:
    def read(log: VisitLog, event: Any) -> None:
        if not event.token:  # an arrival at a join is withdrawn by its own number: no visit ends
            if event.arrival is not None:
                group_log.withdraw(log, event.arrival)
            return
        visit = log.visits[event.token]
        move(visit, event.at, status)
        visit.ended = event.at
        visit.worked_seq = visit.worked_seq or event.seq - 1
        error = getattr(event, "error", None)
        visit.error = error.briefly() if error is not None else None
        if isinstance(event, e.TokenCompleted):
            visit.attempts += event.tries
            visit.retries += event.tries
            visit.cost += 0 if visit.reported else cost_of(event.output)
        elif error is not None:
            visit.attempts = max(visit.attempts, error.attempts)
        if not visit.compensation:
            for group, branch in visit.frames:
                log.groups[group].left(branch)
            if status is TokenState.COMPLETED:
                group_log.forget(log, visit.visit)
            else:
                group_log.withdraw_all(log, visit.visit)
        fails = getattr(event, "fails", None)
        if fails is not None and visit.error is not None:
            log.groups[fails[0]].fell(fails[1], visit.error, event.seq)

    return read


def _progressed(log: VisitLog, event: e.TokenProgress) -> None:
    visit = log.visits.get(event.token)
    if visit is not None and event.spent is not None and event.spent.child is None:
        visit.cost += event.spent.cost
        visit.reported = True


def cost_of(output: Json) -> float:
    """The cost that an action's output tells, such as that of a language model; 0 if it tells none."""
    cost = output.get("cost") if isinstance(output, dict) else None
    return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else 0.0


def _skipped(log: VisitLog, event: e.TokenSkipped | e.TokenJumped) -> None:
    """An operator completes a visit, or ends it to go on elsewhere. One that had failed is live until then."""
    visit = log.visits[event.token]
    back = not visit.live
    if back or isinstance(event, e.TokenSkipped):
        move(visit, event.at, TokenState.PENDING if isinstance(event, e.TokenJumped) else TokenState.EXECUTING)
    visit.error = None
    if back:
        visit.worked_seq = 0
        _entered_again(log, visit, event.seq)


def _forked(log: VisitLog, event: e.RunForked) -> None:
    """What was inherited counts for the other run, and work that was under way is to be done again."""
    for visit in log.visits.values():
        visit.inherited = not visit.live
        visit.cost, visit.retries, visit.spent, visit.since = 0.0, 0, Spent(), event.at
        if visit.live and visit.waiting in _ELSEWHERE and visit.status is not TokenState.PENDING and not visit.answered:
            visit.status, visit.waiting = TokenState.PENDING, None
            visit.attempt, visit.attempts = visit.attempt - 1, visit.attempts - 1


_ELSEWHERE = (None, Waiting.QUEUE, Waiting.EXTERNAL, Waiting.SUBWORKFLOW)


def _paused(log: VisitLog, event: e.RunPaused | e.RunResumed) -> None:
    log.paused = isinstance(event, e.RunPaused)


def _answered(log: VisitLog, event: e.CallbackReceived | e.ChildEnded) -> None:
    visit = log.visits.get(event.token)
    if visit is not None:
        visit.answered = log.paused


def _child_started(log: VisitLog, event: e.ChildStarted) -> None:
    log.visits[event.token].child = event.run


def _migrated(log: VisitLog, event: e.RunMigrated) -> None:
    """Visits that have not completed, and joins, are at the nodes that take the place of theirs."""
    for visit in log.visits.values():
        if visit.status is not TokenState.COMPLETED:
            visit.node = event.nodes.get(visit.node, visit.node)
    for arrival in log.arrivals.values():
        arrival.target = event.nodes.get(arrival.target, arrival.target)
    for group in log.groups.values():
        group.node = event.nodes.get(group.node, group.node)
        for site in group.sites.values():
            site.target = event.nodes.get(site.target, site.target)
        group.sites = {site.target: site for site in group.sites.values()}


READERS: dict[type[e.Event], Callable[[VisitLog, Any], None]] = {
    e.TokenCreated: _created,
    e.TokenDispatched: _dispatched,
    e.TokenProgress: _progressed,
    e.TokenStarted: _started,
    e.TokenWaiting: _waiting,
    e.TokenResumed: _resumed,
    e.TokenRetryScheduled: _retry_scheduled,
    e.TokenCompleted: _token_ended(TokenState.COMPLETED),
    e.TokenFailed: _token_ended(TokenState.FAILED),
    e.TokenTimedOut: _token_ended(TokenState.TIMED_OUT),
    e.TokenCancelled: _token_ended(TokenState.CANCELLED),
    e.ChildStarted: _child_started,
    e.RunMigrated: _migrated,
    e.ChildEnded: _answered,
    e.CallbackReceived: _answered,
    e.RunPaused: _paused,
    e.RunResumed: _paused,
    e.TokenSkipped: _skipped,
    e.TokenJumped: _skipped,
    e.RunForked: _forked,
    **group_readers(),
}

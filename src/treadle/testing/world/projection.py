"""A run's history as visits, positions and states: expectations are checked against it.

Owns the reading of events into `Visit`s. Promises to use nothing but the history, so that an expectation tests what the
engine wrote and not what it remembers; the history may come in any number of pieces. Must not decide anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import Frames, RecordId, RunId, TokenId
from treadle.model.states import Mode, RunStatus, TokenState, Waiting
from treadle.testing.world.address import Address, path_order, show_visit

Json = Any


@dataclass(slots=True)
class Visit:
    """One execution position of a token at a node (2.1)."""

    token: TokenId
    node: str
    path: str
    frames: Frames
    origin: TokenId | None = None
    compensation: bool = False
    record: RecordId | None = None
    state: TokenState = TokenState.PENDING
    waiting: Waiting | None = None
    attempt: int = 0
    attempts: int = 0
    created: int = 0
    begun: int | None = None
    """Sequence number of the event that began its execution."""
    output: Json = None
    error: Error | None = None
    formerly: str | None = None  # the node it began at, if a migration has mapped that to another
    answered: bool = False
    """Its answer came while the run was paused, and is not applied yet."""

    @property
    def stack(self) -> tuple[int, ...]:
        """Branch indexes, outermost first."""
        return tuple(index for _group, index in self.frames)

    @property
    def live(self) -> bool:
        return self.state not in _ENDED

    @property
    def name(self) -> str:
        """The name under which `visits` and `order` list it."""
        return f"compensate({self.node})" if self.compensation else self.node

    def fits(self, address: Address) -> bool:
        return address.fits(self.node, self.stack, self.compensation)

    def __str__(self) -> str:
        return show_visit(self.node, self.stack, self.compensation)


_ENDED = frozenset({TokenState.COMPLETED, TokenState.FAILED, TokenState.TIMED_OUT, TokenState.CANCELLED})


class Projection:
    """The fold. `apply` takes the next events, a commit at a time or all at once."""

    def __init__(self) -> None:
        self.events: list[e.Event] = []
        self.visits: dict[TokenId, Visit] = {}
        self.records: dict[RecordId, RecordedVisit] = {}
        self.journey: list[e.EntityMoved] = []
        self.started: e.Beginning | None = None
        self.forked: e.RunForked | None = None
        self.status = RunStatus.CREATED
        self.stands: RunStatus | None = None
        """Of a fork that waits for its start: the status it will go on with."""
        self.error: Error | None = None
        self.output: Json = None
        self.ended_at: int | None = None

    def apply(self, events: Iterable[e.Event]) -> None:
        """Applies the next events."""
        for event in events:
            self.events.append(event)
            reader = _READERS.get(type(event))
            if reader is not None:
                reader(self, event)

    @property
    def run(self) -> RunId:
        assert self.started is not None, "a run that was never started has no projection"
        return self.started.run

    def fitting(self, address: Address) -> list[Visit]:
        """The visits an address means, oldest first."""
        found = [visit for visit in self.visits.values() if visit.fits(address)]
        return found or [
            visit
            for visit in self.visits.values()
            if visit.formerly is not None and address.fits(visit.formerly, visit.stack, visit.compensation)
        ]

    def begun(self) -> list[Visit]:
        """Executions in the order of the history; those begun by one dispatch are in path order."""
        found = [visit for visit in self.visits.values() if visit.begun is not None]
        found.sort(key=lambda visit: visit.begun or 0)
        return _by_dispatch(found)


@dataclass(slots=True)
class RecordedVisit:
    """A visit that can be undone, and how far undoing it has come."""

    id: RecordId
    visit: Visit | None
    status: str = "recorded"


def _by_dispatch(visits: list[Visit]) -> list[Visit]:
    """Sorts neighbours with the same origin by path; all others keep the order of the history."""
    ordered: list[Visit] = []
    for visit in visits:
        position = len(ordered)
        while position and _precedes(visit, ordered[position - 1]):
            position -= 1
        ordered.insert(position, visit)
    return ordered


def _precedes(visit: Visit, other: Visit) -> bool:
    return _of_one_dispatch(visit, other) and path_order(visit.path) < path_order(other.path)


def _of_one_dispatch(visit: Visit, other: Visit) -> bool:
    """Whether both came from the same visit and existed before either began."""
    if visit.origin is None or visit.origin != other.origin or visit.compensation or other.compensation:
        return False
    return max(visit.created, other.created) < min(visit.begun or 0, other.begun or 0)


def _run_started(run: Projection, event: e.RunStarted) -> None:
    run.started = event
    run.status, run.stands = run.stands or RunStatus.RUNNING, None


def _run_queued(run: Projection, event: e.RunQueued) -> None:
    run.started = run.started or event
    if run.forked is not None and run.status is not RunStatus.QUEUED:
        run.stands = run.status
    run.status = RunStatus.QUEUED


def _run_ended(status: RunStatus) -> Callable[[Projection, Any], None]:
    def read(run: Projection, event: Any) -> None:
        run.status = status
        run.ended_at = event.at
        run.error = getattr(event, "error", run.error)
        run.output = getattr(event, "output", run.output)

    return read


def _run_not_undone(run: Projection, event: e.RunCompensationFailed) -> None:
    reason = run.error  # what the run failed with stays its error
    _run_ended(RunStatus.COMPENSATION_FAILED)(run, event)
    run.error = reason or event.error


def _run_paused(run: Projection, _event: e.RunPaused) -> None:
    run.status = RunStatus.PAUSED


def _run_resumed(run: Projection, event: e.RunResumed) -> None:
    run.status = RunStatus.RUNNING
    if event.reopened:
        run.error = None
        run.ended_at = None


def _run_migrated(run: Projection, event: e.RunMigrated) -> None:
    for visit in run.visits.values():
        if visit.state is not TokenState.COMPLETED and visit.node in event.nodes:
            visit.formerly = visit.formerly or visit.node
            visit.node = event.nodes[visit.node]


def _run_compensating(run: Projection, _event: e.RunCompensating) -> None:
    run.status = RunStatus.COMPENSATING
    run.ended_at = None


def _created(run: Projection, event: e.TokenCreated) -> None:
    undone = run.records[event.record].visit if event.record is not None else None
    run.visits[event.token] = Visit(
        event.token,
        event.node,
        event.path,
        undone.frames if undone else event.frames,  # a compensation is addressed as the visit it undoes
        event.origin,
        compensation=event.mode is Mode.COMPENSATION,
        record=event.record,
        created=event.seq,
        output=event.output,
    )


def _dispatched(run: Projection, event: e.TokenDispatched) -> None:
    visit = run.visits[event.token]
    visit.state = TokenState.DISPATCHED
    visit.waiting = Waiting.QUEUE if event.queue else None
    visit.attempts += 0 if event.recovery else 1
    visit.attempt = event.attempt
    visit.answered = False
    if event.queue:  # offered: from now on it counts as waiting, like every visit that has begun
        visit.begun = visit.begun or event.seq


def _started(run: Projection, event: e.TokenStarted) -> None:
    visit = run.visits[event.token]
    visit.attempts += 0 if visit.state is TokenState.DISPATCHED else 1
    visit.state = TokenState.EXECUTING
    visit.waiting = None
    visit.attempt = event.attempt
    visit.begun = visit.begun or event.seq


def _waiting(run: Projection, event: e.TokenWaiting) -> None:
    if event.arrival is not None:  # an arrival without a visit, at a join: no visit waits
        return
    visit = run.visits[event.token]
    visit.state = TokenState.WAITING
    visit.waiting = event.reason
    if event.reason is Waiting.SUBWORKFLOW:
        visit.answered = False  # its child may have been reopened during a pause
    visit.output = event.output if event.output is not None else visit.output
    visit.attempts += event.tries


def _resumed(run: Projection, event: e.TokenResumed) -> None:
    visit = run.visits[event.token]
    visit.state = TokenState.PENDING if event.by in ("mutex", "retry") else TokenState.EXECUTING
    visit.waiting = None


def _retry_scheduled(run: Projection, event: e.TokenRetryScheduled) -> None:
    visit = run.visits[event.token]
    by_operator = event.by is not None
    visit.state = TokenState.PENDING if by_operator else TokenState.WAITING
    visit.waiting = None if by_operator else Waiting.TIMER
    visit.attempts += event.tries


def _forked(run: Projection, event: e.RunForked) -> None:
    """What was under way is to be done again; the journey is the fork's own."""
    run.forked = event
    run.journey.clear()
    for visit in run.visits.values():
        if visit.live and visit.waiting in _ELSEWHERE and not (visit.answered or visit.state is TokenState.PENDING):
            visit.state, visit.waiting = TokenState.PENDING, None
            visit.attempt -= 1
            visit.attempts -= 1
    for token, output in event.outputs:
        run.visits[token].output = output


_ELSEWHERE = (None, Waiting.QUEUE, Waiting.EXTERNAL, Waiting.SUBWORKFLOW)


def _skipped(run: Projection, event: e.TokenSkipped) -> None:
    visit = run.visits[event.token]
    visit.state, visit.waiting, visit.error = TokenState.EXECUTING, None, None
    visit.begun = visit.begun or event.seq


def _jumped(run: Projection, event: e.TokenJumped) -> None:
    visit = run.visits[event.token]
    if not visit.live:
        visit.state, visit.error = TokenState.PENDING, None


def _token_ended(state: TokenState) -> Callable[[Projection, Any], None]:
    def read(run: Projection, event: Any) -> None:
        if not event.token:  # an arrival without a visit, at a join: no visit ends
            return
        visit = run.visits[event.token]
        held, visit.state, visit.waiting = visit.waiting is Waiting.SIBLINGS, state, None
        visit.error = getattr(event, "error", None)
        if isinstance(event, e.TokenCompleted):
            visit.attempts += event.tries
            if not held:  # a visit that waited for siblings had its output then
                visit.output = event.output
        elif visit.error is not None:  # a visit whose input could not be made has begun, too
            visit.attempts = max(visit.attempts, visit.error.attempts)
            visit.begun = visit.begun or event.seq

    return read


def _answered(run: Projection, event: e.CallbackReceived | e.ChildEnded) -> None:
    visit = run.visits.get(event.token)
    if visit is not None:
        visit.answered = run.status is RunStatus.PAUSED


def _recorded(run: Projection, event: e.CompensationRecorded) -> None:
    run.records[event.record] = RecordedVisit(event.record, run.visits.get(event.token))


def _compensation(status: str) -> Callable[[Projection, Any], None]:
    def read(run: Projection, event: Any) -> None:
        run.records[event.record].status = status

    return read


def _entity_moved(run: Projection, event: e.EntityMoved) -> None:
    run.journey.append(event)


_READERS: dict[type[e.Event], Callable[[Projection, Any], None]] = {
    e.RunQueued: _run_queued,
    e.RunStarted: _run_started,
    e.RunForked: _forked,
    e.RunCompleted: _run_ended(RunStatus.COMPLETED),
    e.RunFailed: _run_ended(RunStatus.FAILED),
    e.RunCancelled: _run_ended(RunStatus.CANCELLED),
    e.RunTimedOut: _run_ended(RunStatus.TIMED_OUT),
    e.RunCompensated: _run_ended(RunStatus.COMPENSATED),
    e.RunCompensationFailed: _run_not_undone,
    e.RunPaused: _run_paused,
    e.RunResumed: _run_resumed,
    e.RunMigrated: _run_migrated,
    e.RunCompensating: _run_compensating,
    e.TokenCreated: _created,
    e.TokenDispatched: _dispatched,
    e.TokenStarted: _started,
    e.TokenWaiting: _waiting,
    e.TokenResumed: _resumed,
    e.TokenRetryScheduled: _retry_scheduled,
    e.TokenSkipped: _skipped,
    e.TokenJumped: _jumped,
    e.TokenCompleted: _token_ended(TokenState.COMPLETED),
    e.TokenFailed: _token_ended(TokenState.FAILED),
    e.TokenTimedOut: _token_ended(TokenState.TIMED_OUT),
    e.TokenCancelled: _token_ended(TokenState.CANCELLED),
    e.CallbackReceived: _answered,
    e.ChildEnded: _answered,
    e.CompensationRecorded: _recorded,
    e.CompensationStarted: _compensation("running"),
    e.CompensationCompleted: _compensation("completed"),
    e.CompensationFailed: _compensation("failed"),
    e.CompensationSkipped: _compensation("skipped"),
    e.EntityMoved: _entity_moved,
}

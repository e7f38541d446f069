"""A run's history folded into counts: per node the visits that wait, run, are done or failed; the progress of each
fan-out; the reason of each wait.

Owns the counting. Uses nothing but events and the definition; memory is proportional to the live visits, not to the
history. Must not draw (`picture.py` does) and not decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from treadle.cli.watch.join_progress import joins_of
from treadle.cli.watch.tallies import PENDING, RUNNING, WAITING, FanTally, LiveVisit, NodeTally, rename
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.errors import Error
from treadle.model.ids import GroupId, RecordId, RunId, TokenId
from treadle.model.states import Mode, RunStatus, Waiting

Json = Any


class Overview:
    """The counts of one run. `apply` folds in events in their order."""

    def __init__(self, workflow: Workflow | None = None) -> None:
        self.definition = workflow
        self.nodes: dict[str, NodeTally] = {ref: NodeTally(ref) for ref in (workflow.nodes if workflow else ())}
        self.fans: dict[GroupId, FanTally] = {}
        self.visits: dict[TokenId, LiveVisit] = {}
        self.failed: dict[TokenId, LiveVisit] = {}
        self.fallen: dict[TokenId, LiveVisit] = {}
        """Visits that were cancelled because of a failure: an operator's retry brings them back."""
        self.status = RunStatus.CREATED
        self.started: e.Beginning | None = None
        self.stands: RunStatus | None = None
        """Of a fork that waits for its start: the status it will go on with."""
        self.version = 0
        """The version it goes by now."""
        self.output: Json = None
        self.error: Error | None = None
        """Why it failed; undoing it does not change that."""
        self.undo_error: Error | None = None
        """Why it could not be undone."""
        self.skipped: dict[RecordId, tuple[str, str]] = {}
        """Record → the node whose work stays as it is, and the operator who decided so."""
        self.records: dict[RecordId, str] = {}
        """Record → its node."""
        self.traceback: str | None = None
        """The traceback of the last failed attempt that has one; not of a compensation."""
        self.note: str | None = None
        """The person who paused or cancelled the run, and the reason."""
        self.ended_at: int | None = None
        self.changed_at = 0
        self.seq = 0
        self.warnings = 0
        self.turns: Mapping[str, str] = {}
        """Queue → why its work does not begin. The history does not say it: `queue_words.turns_of` asks the store."""

    @property
    def run(self) -> RunId | None:
        return self.started.run if self.started is not None else None

    @property
    def ended(self) -> bool:
        return self.ended_at is not None

    def apply(self, events: Iterable[e.Event]) -> None:
        """Folds in the next events."""
        for event in events:
            self.seq, self.changed_at = event.seq, event.at
            if event.type in e.WARNINGS:
                self.warnings += 1
            reader = _READERS.get(type(event))
            if reader is not None:
                reader(self, event)

    def expected(self, node: NodeTally) -> int | None:
        """How many visits a fan-out will make of a node, as far as known; None for a node outside fan-outs."""
        if not node.groups:
            return None
        return max(sum(self.fans[group].total for group in node.groups), node.created)

    def node(self, ref: str) -> NodeTally:
        """The counts of a node; made if the definition does not have it, such as a compensation."""
        if ref not in self.nodes:
            self.nodes[ref] = NodeTally(ref)
        return self.nodes[ref]

    def joins(self) -> list[tuple[str, int, int]]:
        """Joins at which branches wait: (target, branches arrived, branches needed)."""
        return joins_of(self.definition, self.fans.values())


def _run_started(view: Overview, event: e.RunStarted) -> None:
    view.started = view.started if view.stands is not None else event
    view.version = event.version
    view.status, view.stands = view.stands or RunStatus.RUNNING, None


def _run_queued(view: Overview, event: e.RunQueued) -> None:
    if isinstance(view.started, e.RunStarted):  # a fork that waits for its start has a past already
        view.stands = view.status
    view.started = view.started or event
    view.version = event.version
    view.status = RunStatus.QUEUED


def _run_ended(status: RunStatus) -> Any:
    def read(view: Overview, event: Any) -> None:
        view.status, view.ended_at = status, event.at
        if isinstance(event, e.RunCompensationFailed):
            view.undo_error = event.error
        else:
            view.error = getattr(event, "error", view.error)
        view.output = getattr(event, "output", view.output)
        if isinstance(event, e.RunCancelled):
            view.note = f"by {event.by}" + (f": {event.reason}" if event.reason else "")

    return read


def _run_paused(view: Overview, event: e.RunPaused) -> None:
    view.status = RunStatus.PAUSED
    view.note = f"by {event.by}" + (f": {event.reason}" if event.reason else "")


def _run_resumed(view: Overview, _event: e.RunResumed) -> None:
    view.status, view.ended_at, view.note, view.error = RunStatus.RUNNING, None, None, None


def _run_migrated(view: Overview, event: e.RunMigrated) -> None:
    view.version = event.to
    rename(event.nodes, (view.visits, view.failed, view.fallen), view.node, view.fans.values())


def _run_compensating(view: Overview, _event: e.RunCompensating) -> None:
    view.status, view.ended_at, view.undo_error = RunStatus.COMPENSATING, None, None


def _recorded(view: Overview, event: e.CompensationRecorded) -> None:
    view.records[event.record] = event.node


def _skipped(view: Overview, event: e.CompensationSkipped) -> None:
    view.skipped[event.record] = (view.records.get(event.record, "?"), event.by)


def _created(view: Overview, event: e.TokenCreated) -> None:
    ref = f"compensate({event.node})" if event.mode is Mode.COMPENSATION else event.node
    node = view.node(ref)
    visit = LiveVisit(event.token, ref, event.frames, since=event.at)
    view.visits[event.token] = node.live[event.token] = visit
    node.created += 1
    node.first = node.first or event.at
    if event.frames and event.mode is Mode.FORWARD:
        node.groups[event.frames[-1][0]] = None


def _dispatched(view: Overview, event: e.TokenDispatched) -> None:
    """A dispatched visit waits in its queue until TokenStarted, which comes at once if there is no queue or limit."""
    visit = view.visits[event.token]
    visit.state, visit.waiting = WAITING, Waiting.QUEUE
    visit.detail = {"queue": event.queue}
    visit.attempt, visit.since = event.attempt, event.at
    visit.lost = "" if not event.recovery else "has stopped" if event.forgiven else "is gone"


def _begun(view: Overview, event: e.TokenStarted) -> None:
    visit = view.visits[event.token]
    visit.state, visit.waiting, visit.attempt, visit.since = RUNNING, None, event.attempt, event.at


def _waits(view: Overview, event: e.TokenWaiting) -> None:
    if event.arrival is not None:
        return  # a token that waits at a join outside of groups: no visit waits
    _come_back(view, event.token)
    visit = view.visits[event.token]
    visit.state, visit.waiting, visit.detail = WAITING, event.reason, event.detail
    visit.until, visit.since = event.until or visit.until, event.at


def _resumed(view: Overview, event: e.TokenResumed) -> None:
    visit = view.visits[event.token]
    visit.state, visit.waiting, visit.until, visit.detail = RUNNING, None, None, None


def _come_back(view: Overview, token: TokenId) -> None:
    """An operator's retry revives a visit that failed, or that was cancelled because another failed."""
    failed, cancelled = view.failed.pop(token, None), view.fallen.pop(token, None)
    visit = failed or cancelled
    if visit is None:
        return
    node = view.node(visit.node)
    view.visits[token] = node.live[token] = visit
    node.error = visit.error = None
    if failed is not None:
        node.failed -= 1
    else:
        node.cancelled -= 1


def _retry(view: Overview, event: e.TokenRetryScheduled) -> None:
    _come_back(view, event.token)
    visit = view.visits[event.token]
    visit.state = PENDING if event.by else WAITING
    visit.waiting = None if event.by else Waiting.TIMER
    visit.until, visit.error, visit.detail = event.due, event.error, {"retry": event.attempt}
    view.node(visit.node).retries += 1


def _token_ended(outcome: str) -> Any:
    def read(view: Overview, event: Any) -> None:
        visit = view.visits.pop(event.token, None)
        if visit is None:  # a token that waited at a join outside of groups
            return
        node = view.node(visit.node)
        node.live.pop(event.token, None)
        setattr(node, outcome, getattr(node, outcome) + 1)
        node.last = event.at
        if outcome == "failed":
            node.error = visit.error = event.error
            if view.status is not RunStatus.COMPENSATING:
                view.traceback = event.error.traceback or view.traceback
            view.failed[event.token] = visit
        elif outcome == "cancelled" and event.because:
            view.fallen[event.token] = visit

    return read


def _group_opened(view: Overview, event: e.GroupOpened) -> None:
    view.fans[event.group] = FanTally(event.total, tuple(event.names))


def _group_grew(view: Overview, event: e.GroupGrew) -> None:
    view.fans[event.group].total = event.total


def _arrived(view: Overview, event: e.JoinArrived) -> None:
    fan = view.fans.get(event.group) if event.group is not None else None
    if fan is not None and not event.absorbed:
        branch = next((index for group, index in event.frames if group == event.group), 0)
        fan.arrived.setdefault(event.target, set()).add(branch)


def _decided(view: Overview, event: Any) -> None:
    fan = view.fans.get(event.group) if event.group is not None else None
    if fan is not None:
        fan.before[event.target] = fan.arrived.pop(event.target, set())
    if isinstance(event, e.JoinFailed):
        view.node(event.target).error = event.error


def _reopened(view: Overview, event: e.JoinReopened) -> None:
    """The branches that had arrived at a reopened join wait there again."""
    fan = view.fans.get(event.group) if event.group is not None else None
    if fan is not None and (arrived := fan.before.pop(event.target, None)):
        fan.arrived[event.target] = arrived
    view.node(event.target).error = None


def _gate_opened(view: Overview, event: e.GateOpened) -> None:
    visit = view.visits.get(event.token)
    if visit is not None:
        visit.title, visit.until = event.title, event.due


def _gate_handed(view: Overview, event: e.GateClaimed | e.GateReleased | e.GateDelegated) -> None:
    visit = view.visits.get(event.token)
    if visit is not None:
        holder = event.to if isinstance(event, e.GateDelegated) else event.by
        visit.detail = None if isinstance(event, e.GateReleased) else {"claimed_by": holder}


_READERS: dict[type[e.Event], Any] = {
    e.RunQueued: _run_queued,
    e.RunStarted: _run_started,
    e.RunCompleted: _run_ended(RunStatus.COMPLETED),
    e.RunFailed: _run_ended(RunStatus.FAILED),
    e.RunCancelled: _run_ended(RunStatus.CANCELLED),
    e.RunTimedOut: _run_ended(RunStatus.TIMED_OUT),
    e.RunCompensated: _run_ended(RunStatus.COMPENSATED),
    e.RunCompensationFailed: _run_ended(RunStatus.COMPENSATION_FAILED),
    e.RunPaused: _run_paused,
    e.RunResumed: _run_resumed,
    e.RunMigrated: _run_migrated,
    e.RunCompensating: _run_compensating,
    e.CompensationRecorded: _recorded,
    e.CompensationSkipped: _skipped,
    e.TokenCreated: _created,
    e.TokenDispatched: _dispatched,
    e.TokenStarted: _begun,
    e.TokenWaiting: _waits,
    e.TokenResumed: _resumed,
    e.TokenRetryScheduled: _retry,
    e.TokenCompleted: _token_ended("done"),
    e.TokenFailed: _token_ended("failed"),
    e.TokenTimedOut: _token_ended("failed"),
    e.TokenCancelled: _token_ended("cancelled"),
    e.GroupOpened: _group_opened,
    e.GroupGrew: _group_grew,
    e.JoinArrived: _arrived,
    e.JoinFired: _decided,
    e.JoinFailed: _decided,
    e.JoinDead: _decided,
    e.JoinReopened: _reopened,
    e.GateOpened: _gate_opened,
    e.GateClaimed: _gate_handed,
    e.GateReleased: _gate_handed,
    e.GateDelegated: _gate_handed,
}

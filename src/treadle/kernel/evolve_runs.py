"""Folding events of the run as a whole: its status, timers, signals, compensation records, entity and artifacts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.kernel import evolve_budget, evolve_fork, fallen, standing
from treadle.kernel.evolve_endings import drop_lease
from treadle.kernel.evolve_tokens import scope_at
from treadle.kernel.lifecycle import move_run
from treadle.kernel.position import Position
from treadle.kernel.signal_lines import drop_signal, keep_signal
from treadle.kernel.state import Record, RunState, Signal, Timer
from treadle.model import events as e
from treadle.model.states import RunStatus


def queued(state: RunState, event: e.RunQueued) -> None:
    """A further event of a batch carries one more item, and the parent that waits for it."""
    if state.status is RunStatus.QUEUED:
        state.status = move_run(state.status, "run.queued")
        state.items.append(event.input)
        if event.idempotency_key is not None:
            state.item_keys.add(event.idempotency_key)
        if event.alias is not None:
            state.item_runs.add(event.alias)
            if event.parent is not None:
                state.callers.append((event.parent, event.alias))
        return
    if state.forked and state.status is not RunStatus.CREATED:
        evolve_fork.queued(state, event)
        return
    state.status = move_run(state.status, "run.queued")
    _identify(state, event)
    state.queued = event
    scope_at(state, None)
    if state.graph.definition.batch is not None:
        state.items.append(event.input)


def started(state: RunState, event: e.RunStarted) -> None:
    if state.stands is not None:
        evolve_fork.started(state, event, state.stands)
        return
    state.status = move_run(state.status, "run.started")
    _identify(state, event)
    state.queued = None
    state.items = []
    scope_at(state, None)
    evolve_budget.begin(state, event.at)
    if event.entity is not None:
        state.position = Position(section=event.entity.section, type=event.entity.type)


def _identify(state: RunState, event: e.Beginning) -> None:
    state.run = event.run
    state.version = event.version
    state.graph = state.graph.at_version(event.version)
    state.started_at = event.at
    state.seed = event.seed
    state.input = event.input
    state.entity = event.entity
    state.parent = event.parent
    state.depth = event.depth
    state.depth_max = event.depth_max
    state.idempotency_key = event.idempotency_key
    state.tags = event.tags
    state.trace = event.trace
    state.priority = event.priority


def completed(state: RunState, event: e.RunCompleted) -> None:
    state.status = move_run(state.status, "run.completed")
    state.output = event.output
    _end(state, event.at)


def failed(state: RunState, event: e.RunFailed) -> None:
    state.status = move_run(state.status, "run.failed")
    state.error = event.error
    state.own_failure = event.own
    state.time_left = _time_left(state, event.at)
    _end(state, event.at)


def _time_left(state: RunState, now: int) -> int | None:
    """The time left until the run's deadline, which stands still while the run is failed, as it does while the run is
    paused."""
    since = state.paused_at if state.paused_at is not None else now
    return next((timer.due - since for timer in state.timers.values() if timer.purpose == "run"), None)


def cancelled(state: RunState, event: e.RunCancelled) -> None:
    state.status = move_run(state.status, "run.cancelled")
    _end(state, event.at)


def timed_out(state: RunState, event: e.RunTimedOut) -> None:
    state.status = move_run(state.status, "run.timed_out")
    state.error = event.error
    _end(state, event.at)


def _end(state: RunState, at: int) -> None:
    if state.budget is not None:
        evolve_budget.stood_still(state, at)
    state.timers.clear()
    state.deferred.clear()
    state.paused_at = None


def paused(state: RunState, event: e.RunPaused) -> None:
    state.status = move_run(state.status, "run.paused")
    state.paused_at = event.at
    evolve_budget.stood_still(state, event.at)
    state.paused_signal = state.last_signal
    state.edited.clear()


def resumed(state: RunState, event: e.RunResumed) -> None:
    state.status = move_run(state.status, "run.resumed")
    state.paused_at = None
    state.overdue = False
    evolve_budget.went_on(state, event.at)
    if event.reopened:
        _reopened(state, event)
    if event.shift_ms:
        for timer in state.timers.values():
            timer.due += event.shift_ms
    if event.deadline is not None:
        _drop_deadline(state)


def _reopened(state: RunState, event: e.RunResumed) -> None:
    state.error = None
    state.own_failure = False
    state.time_left = None
    state.life += 1
    state.levels = event.levels
    fallen.take_back(state, fallen.RUN)
    for group in state.groups.values():
        for site in group.sites:
            site.timer = None  # the run's end has cleared it


def _drop_deadline(state: RunState) -> None:
    for timer in [timer.id for timer in state.timers.values() if timer.purpose == "run"]:
        del state.timers[timer]


def compensating(state: RunState, event: e.RunCompensating) -> None:
    state.status = move_run(state.status, "run.compensating")
    if state.cause is None:
        state.cause = event.cause
    fallen.settle_all(state)


def compensated(state: RunState, _event: e.RunCompensated) -> None:
    state.status = move_run(state.status, "run.compensated")


def compensation_failed_run(state: RunState, event: e.RunCompensationFailed) -> None:
    state.status = move_run(state.status, "run.compensation_failed")
    state.error = state.error or event.error


def timer_set(state: RunState, event: e.TimerSet) -> None:
    if event.purpose == "run":
        _drop_deadline(state)  # a run has only one deadline
    timer = Timer(event.timer, event.due, event.purpose, event.token, event.group, event.target)
    state.timers[event.timer] = timer
    state.last_timer = event.timer
    if event.token is not None:
        token = state.tokens[event.token]
        if event.purpose == "lease":
            drop_lease(state, token)
        token.timers = (*token.timers, event.timer)
    if event.group is not None and event.target is not None:
        standing.site_of(state.groups[event.group], event.target).timer = event.timer


def timer_fired(state: RunState, event: e.TimerFired) -> None:
    timer = state.timers.pop(event.timer)
    if timer.purpose == "run":
        state.overdue = True
    if timer.token is not None:
        token = state.tokens[timer.token]
        token.timers = tuple(other for other in token.timers if other != event.timer)
    if timer.group is not None and timer.target is not None and timer.group in state.groups:
        standing.site_of(state.groups[timer.group], timer.target).timer = None


def signal_received(state: RunState, event: e.SignalReceived) -> None:
    state.signals[event.signal] = Signal(event.signal, event.name, event.key, event.data, event.at, event.seq)
    keep_signal(state.lines, event.name, event.key, event.signal)
    state.last_signal = event.signal
    if event.command is not None:
        state.seen.add(event.command)


def signal_taken(state: RunState, event: e.SignalTaken) -> None:
    signal = state.signals.pop(event.signal)
    drop_signal(state.lines, signal.name, signal.key, signal.id)


def recorded(state: RunState, event: e.CompensationRecorded) -> None:
    state.records[event.record] = Record(
        event.record,
        event.token,
        event.node,
        event.path,
        event.frames,
        input=event.input,
        output=event.output,
        child=event.child,
    )
    state.last_record = event.record


def compensation_started(state: RunState, event: e.CompensationStarted) -> None:
    state.records[event.record].status = "running"
    state.compensating = event.record


def compensation_completed(state: RunState, event: e.CompensationCompleted) -> None:
    state.records[event.record].status = "completed"
    state.compensating = None


def compensation_failed(state: RunState, event: e.CompensationFailed) -> None:
    state.records[event.record].status = "failed"
    state.compensating = None


def compensation_skipped(state: RunState, event: e.CompensationSkipped) -> None:
    state.records[event.record].status = "skipped"
    if state.compensating == event.record:
        state.compensating = None


def entity_moved(state: RunState, event: e.EntityMoved) -> None:
    before = state.position or Position()
    state.position = Position(
        node=event.node,
        edge=event.edge,
        progress=event.progress,
        section=event.section,
        completed_as=event.completed_as or before.completed_as,
        type=event.entity_type or before.type,
        at=max(before.at, event.at),
    )


def artifact_written(state: RunState, event: e.ArtifactWritten) -> None:
    state.artifacts[event.name] = {
        "digest": event.digest,
        "size": event.size,
        "content_type": event.content_type,
    }
    if not event.token:
        state.artifacts[event.name]["by"] = event.by


def is_over(status: RunStatus) -> bool:
    """Whether no forward work may begin any more."""
    return status not in (RunStatus.CREATED, RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.PAUSED)


def unevaluable(state: RunState, event: e.ConditionUnevaluable) -> None:
    """Remember an expression that could not be evaluated and is evaluated again and again, so that history says it
    once."""
    if event.part == "when" and event.token is not None:
        token = state.tokens[event.token]
        token.when = {**(token.when or {}), event.transition: None}
    elif event.group is not None:
        site = state.graph.transitions[event.transition].target.ref
        standing.site_of(state.groups[event.group], site).unevaluable = True


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    e.RunQueued: queued,
    e.RunStarted: started,
    e.RunCompleted: completed,
    e.RunFailed: failed,
    e.RunCancelled: cancelled,
    e.RunTimedOut: timed_out,
    e.RunPaused: paused,
    e.ConditionUnevaluable: unevaluable,
    e.RunResumed: resumed,
    e.RunCompensating: compensating,
    e.RunCompensated: compensated,
    e.RunCompensationFailed: compensation_failed_run,
    e.TimerSet: timer_set,
    e.TimerFired: timer_fired,
    e.SignalReceived: signal_received,
    e.SignalTaken: signal_taken,
    e.CompensationRecorded: recorded,
    e.CompensationStarted: compensation_started,
    e.CompensationCompleted: compensation_completed,
    e.CompensationFailed: compensation_failed,
    e.CompensationSkipped: compensation_skipped,
    e.EntityMoved: entity_moved,
    e.ArtifactWritten: artifact_written,
}

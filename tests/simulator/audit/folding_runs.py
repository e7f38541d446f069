"""How the record takes in what happens to the run as a whole, to timers, gates, signals, children and data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulator.audit import budgets, forking, migrating, reopening
from tests.simulator.audit.answers import holder_after
from tests.simulator.audit.lifecycle import move_run
from tests.simulator.audit.record import Record, Timer
from treadle.model import events as e
from treadle.model.ids import RUN_GATE


def _timer_set(record: Record, event: e.TimerSet) -> None:
    if event.purpose == "run":
        record.timers = {i: t for i, t in record.timers.items() if t.purpose != "run"}
    record.timers[event.timer] = Timer(event.due, event.purpose, event.token, event.group, event.target)
    visit = record.visits.get(event.token or 0)
    if visit is None:
        return
    if event.purpose == "lease":
        for old in [t for t in visit.timers if record.timers[t].purpose == "lease"]:
            visit.timers.discard(old)
            del record.timers[old]
    visit.timers.add(event.timer)


def _timer_fired(record: Record, event: e.TimerFired) -> None:
    timer = record.timers.pop(event.timer, None)
    record.store_timers.pop(event.timer, None)
    if timer is not None:
        record.doing.timers_fired.append(timer)
        if timer.token is not None:
            record.visits[timer.token].timers.discard(event.timer)


def _run_ended(record: Record, event: e.Event) -> None:
    move_run(record, event)
    record.budget.stand(event.at)
    record.overdue = False
    record.ends.append(event)
    record.timers.clear()


def _run_resumed(record: Record, event: e.RunResumed) -> None:
    move_run(record, event)
    record.budget.go_on(event.at)
    record.overdue = False
    if event.reopened:
        reopening.take_back(record, reopening.RUN)
    for timer in record.timers.values():
        timer.due += event.shift_ms
    if event.deadline is not None:
        record.timers = {i: t for i, t in record.timers.items() if t.purpose != "run"}


def _run_moved(record: Record, event: e.Event) -> None:
    move_run(record, event)
    if isinstance(event, e.RunPaused):
        record.budget.stand(event.at)
        record.overdue = event.by == "timeout"


def _run_begun(record: Record, event: e.Beginning) -> None:
    """It exists: it has started, or waits for that. Of a batch also every further item."""
    if forking.waits_or_goes_on(record, event):
        return
    move_run(record, event)
    alias = event.alias if isinstance(event, e.RunQueued) else None
    if event.parent is not None and (alias is not None or not record.callers):
        record.callers.append((event.parent.run, event.parent.token, alias))
    if alias is not None:
        return
    if record.started is None:
        batched = isinstance(event, e.RunStarted) and record.chart.workflow.batch is not None
        record.asked = event.input["items"][0] if batched else event.input
    record.started, record.version, record.began = event, event.version, event.seq
    if isinstance(event, e.RunStarted):
        record.budget.begin(event.at)


def _gate_opened(record: Record, event: e.GateOpened) -> None:
    visit = record.visits[event.token]
    visit.gate, visit.holder, visit.said = "open", None, {}
    quorum = event.assign.get("quorum") if isinstance(event.assign, dict) else None
    visit.quorum = (quorum["of"], quorum["accept"]) if quorum is not None else None


def _gate_answered(record: Record, event: e.GateAnswered) -> None:
    record.visits[event.token].said[event.by] = event.data


def _gate_handed(record: Record, event: e.GateClaimed | e.GateReleased | e.GateDelegated) -> None:
    record.visits[event.token].holder = holder_after(event)


def _gate_decided(record: Record, event: e.GateCompleted | e.GateExpired) -> None:
    record.visits[event.token].gate = "decided"


def _callback(record: Record, event: e.CallbackReceived) -> None:
    visit = record.visits[event.token]
    visit.deferred, visit.deferred_attempt = (event.output, event.error), event.attempt


def _child_started(record: Record, event: e.ChildStarted) -> None:
    record.visits[event.token].child = event.run
    record.children[event.run] = None
    record.own_children.add(event.run)


def _child_ended(record: Record, event: e.ChildEnded) -> None:
    record.visits[event.token].child = None
    record.children[event.run] = event


def _signal_received(record: Record, event: e.SignalReceived) -> None:
    record.signals[event.signal] = event


def _signal_taken(record: Record, event: e.SignalTaken) -> None:
    record.signals.pop(event.signal, None)


def _context(record: Record, event: e.ContextUpdated) -> None:
    write(record, event.scope, event.writes)


def write(record: Record, scope: Any, writes: Any) -> None:
    """Values as they were written; a deeper or shallower path than another hides it, as in any tree."""
    values = record.scopes.setdefault(scope, {})
    for path, value in writes:
        values[tuple(path)] = value


def _undo(status: str) -> Callable[[Record, Any], None]:
    def take(record: Record, event: Any) -> None:
        record.undo[event.record] = status

    return take


def _entity(record: Record, event: e.EntityMoved) -> None:
    record.entity = event


def _artifact(record: Record, event: e.ArtifactWritten) -> None:
    if event.token == RUN_GATE:
        record.written.discard(event.name)
    else:
        record.written.add(event.name)


def _recorded(record: Record, event: e.CompensationRecorded) -> None:
    record.undo[event.record] = "recorded"
    if event.child is not None:
        record.undo_calls.add(event.record)


RUNS: dict[type[e.Event], Callable[[Record, Any], None]] = {
    e.RunQueued: _run_begun,
    e.RunStarted: _run_begun,
    e.RunForked: forking.fork,
    e.RunMigrated: migrating.migrate,
    e.BudgetRaised: budgets.raise_limits,
    e.RunPaused: _run_moved,
    e.RunResumed: _run_resumed,
    e.RunCompleted: _run_ended,
    e.RunFailed: _run_ended,
    e.RunCancelled: _run_ended,
    e.RunTimedOut: _run_ended,
    e.RunCompensating: _run_moved,
    e.RunCompensated: _run_ended,
    e.RunCompensationFailed: _run_ended,
    e.TimerSet: _timer_set,
    e.TimerFired: _timer_fired,
    e.GateOpened: _gate_opened,
    e.GateClaimed: _gate_handed,
    e.GateReleased: _gate_handed,
    e.GateDelegated: _gate_handed,
    e.GateAnswered: _gate_answered,
    e.GateCompleted: _gate_decided,
    e.GateExpired: _gate_decided,
    e.CallbackReceived: _callback,
    e.ChildStarted: _child_started,
    e.ChildEnded: _child_ended,
    e.SignalReceived: _signal_received,
    e.SignalTaken: _signal_taken,
    e.ContextUpdated: _context,
    e.CompensationRecorded: _recorded,
    e.CompensationStarted: _undo("running"),
    e.CompensationCompleted: _undo("completed"),
    e.CompensationFailed: _undo("failed"),
    e.CompensationSkipped: _undo("skipped"),
    e.EntityMoved: _entity,
    e.ArtifactWritten: _artifact,
}

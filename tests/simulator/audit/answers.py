"""Who may end a visit's work, and with what: attempts, results, gates, signals, callbacks, children (2.7, 2.16).

The command that caused a commit is known, so a result can be held against what was really reported: the right visit,
the right attempt, exactly that output.
"""

from __future__ import annotations

from tests.simulator.audit.record import Record, Visit
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import RUN_GATE


def on_result(record: Record, event: e.TokenCompleted | e.TokenWaiting) -> None:
    """A visit's work has succeeded: by a result of its current attempt, and with that output."""
    visit = record.visits.get(event.token)
    if visit is None or visit.state == "waiting" or visit.compensation or not is_executed(record, visit):
        return
    if visit.state in ("cancelled", "timed_out"):
        return  # it has brought its result before, and waits with it again
    if isinstance(event, e.TokenWaiting) and event.reason != "siblings":
        return
    cause = record.doing.cause
    if visit.skipped is not None:
        record.expect(event.output == visit.skipped[0], "results", f"visit {visit.id} has not the operator's output")
    elif isinstance(cause, c.FinishAttempt) and cause.token == visit.id:
        record.expect(
            cause.attempt == visit.attempt, "attempts", f"result of attempt {cause.attempt} is applied to {visit}"
        )
        worker = cause.worker if visit.worker is not None else None
        record.expect(worker == visit.worker, "attempts", f"{cause.worker} answers for {visit.worker}")
        record.expect(
            event.output == cause.output, "results", f"visit {visit.id} has output {event.output}, not {cause.output}"
        )
    elif visit.deferred is not None:
        record.expect(event.output == visit.deferred[0], "results", f"visit {visit.id} has not the recorded output")
    else:
        record.complain("results", f"visit {visit.id} of {visit.node} succeeded by {type(cause).__name__}")


def is_executed(record: Record, visit: Visit) -> bool:
    """Whether somebody executes this node's task (rather than the kernel, or a wait)."""
    task = record.node(visit.node).task
    return task is not None and task.steps[0].action.kind == "mock"


def on_gate(record: Record, event: e.GateCompleted | e.GateExpired) -> None:
    """A gate has one decision: an answer while it is open, or its clock."""
    visit = record.visits[event.token]
    record.expect(visit.gate == "open", "gates", f"gate of visit {visit.id} is {visit.gate} and gets {event.type}")
    cause = record.doing.cause
    if isinstance(event, e.GateCompleted) and visit.quorum is not None:
        _check_agreement(record, visit, event)
    elif isinstance(event, e.GateCompleted):
        _check_holder(record, visit, event)
        told = isinstance(cause, c.CompleteGate) and cause.token == visit.id and cause.data == event.data
        record.expect(told, "gates", f"gate of visit {visit.id} was completed by {cause}")
    else:
        clock = any(t.purpose == "gate_due" and t.token == visit.id for t in record.doing.timers_fired)
        record.expect(clock, "gates", f"gate of visit {visit.id} expired without its clock")


def on_answered(record: Record, event: e.GateAnswered) -> None:
    """Each person of a quorum answers once, while the gate is open, with what they have sent."""
    visit = record.visits[event.token]
    record.expect(visit.gate == "open", "gates", f"gate of visit {visit.id} is {visit.gate} and gets {event.type}")
    record.expect(event.by not in visit.said, "gates", f"{event.by} answers visit {visit.id} twice")
    cause = record.doing.cause
    told = isinstance(cause, c.CompleteGate) and (cause.token, cause.by, cause.data) == (visit.id, event.by, event.data)
    record.expect(told, "gates", f"{event.by} answers visit {visit.id} by {cause}")


def _check_agreement(record: Record, visit: Visit, event: e.GateCompleted) -> None:
    """Enough people have said the same; or no answer can have enough, and the first one counts."""
    people, enough = visit.quorum or (0, 0)
    said = list(visit.said.values())
    most = max((said.count(answer) for answer in said), default=0)
    agreed = said.count(event.data) >= enough
    first = bool(said) and event.data == said[0] and most + people - len(said) < enough
    record.expect(agreed or first, "gates", f"gate of visit {visit.id} was completed with {event.data}: {said}")


def on_artifact(record: Record, event: e.ArtifactWritten) -> None:
    """What a person adds is what they have sent, and takes no name that the run itself has used."""
    if event.token == RUN_GATE:
        cause = record.doing.cause
        told = isinstance(cause, c.KeepArtifact) and (cause.name, cause.digest) == (event.name, event.digest)
        record.expect(told, "artifacts", f"{event.by} adds {event.name} by {cause}")
        own = event.name in record.written
        record.expect(not own, "artifacts", f"{event.by} replaces {event.name}, which the run has written")


def on_claim(record: Record, event: e.GateClaimed | e.GateReleased | e.GateDelegated) -> None:
    """Who has claimed a gate keeps it, unless somebody forces it from them, which is written down."""
    visit = record.visits[event.token]
    record.expect(visit.gate == "open", "gates", f"gate of visit {visit.id} is {visit.gate} and gets {event.type}")
    if isinstance(event, e.GateClaimed):
        record.expect(visit.holder is None, "gates", f"{event.by} claims what {visit.holder} has")
    else:
        _check_holder(record, visit, event)


def holder_after(event: e.GateClaimed | e.GateReleased | e.GateDelegated) -> str | None:
    """Who has the gate from now on."""
    if isinstance(event, e.GateReleased):
        return None
    return event.to if isinstance(event, e.GateDelegated) else event.by


def _check_holder(record: Record, visit: Visit, event: e.GateReleased | e.GateDelegated | e.GateCompleted) -> None:
    passed_over = visit.holder if visit.holder != event.by else None
    record.expect(
        event.instead_of == passed_over, "gates", f"{event.type} by {event.by} instead of {event.instead_of}: {visit}"
    )
    forced = getattr(record.doing.cause, "force", False)
    record.expect(passed_over is None or forced, "gates", f"{event.by} takes {visit}'s gate from {visit.holder}")


def on_callback(record: Record, event: e.CallbackReceived) -> None:
    """A callback counts for the attempt that waits for it, once."""
    visit = record.visits[event.token]
    record.expect(event.attempt == visit.attempt, "attempts", f"callback for attempt {event.attempt} of {visit}")
    cause = record.doing.cause
    reported = isinstance(cause, c.ReceiveCallback | c.FinishAttempt | c.FailAttempt) and cause.token == visit.id
    record.expect(reported, "results", f"visit {visit.id} has a callback by {type(cause).__name__}")
    record.expect(visit.live and not visit.held, "results", f"callback for visit {visit.id}, which is {visit.state}")


def on_taken(record: Record, event: e.SignalTaken) -> None:
    """A9: exactly once, oldest first, by whoever has waited longest."""
    signal = record.signals.get(event.signal)
    if signal is None:
        record.complain("signals", f"signal {event.signal} is taken and is not there")
        return
    visit = record.visits[event.token]
    detail = visit.detail if visit.reason == "signal" else None
    if detail is None or detail["key"] is not None or detail["signal"] != signal.name:
        triggers = [t.trigger.signal for t in record.chart.out[visit.node] if t.trigger is not None]
        waits = detail is not None and detail["signal"] == signal.name
        record.expect(waits or signal.name in triggers, "signals", f"visit {visit.id} does not wait for {signal.name}")
        return
    for other in record.visits.values():
        if other.reason != "signal" or other.detail["signal"] != signal.name:
            continue
        if other.detail["key"] is None and other.detail["buffer"] is None:
            fair = other.waiting_since >= visit.waiting_since
            record.expect(fair, "signals", f"visit {other.id} has waited longer than {visit.id} for {signal.name}")


def on_child_ended(record: Record, event: e.ChildEnded) -> None:
    """A child's end reaches its parent once."""
    known = event.run in record.children
    record.expect(known, "children", f"child {event.run} ends and was never started")
    record.expect(record.children.get(event.run) is None, "children", f"child {event.run} ends twice")
    cause = record.doing.cause
    told = isinstance(cause, c.EndChild) and cause.child == event.run and cause.status == event.status
    record.expect(told, "children", f"child {event.run} ended {event.status} by {cause}")


def on_timer(record: Record, event: e.TimerFired) -> None:
    """Never early, never twice, never without having been set."""
    timer = record.timers.get(event.timer)
    if timer is None:
        record.complain("timers", f"timer {event.timer} ({event.purpose}) fires and is not set")
        return
    record.expect(
        timer.due <= record.doing.now, "timers", f"timer {event.timer} fires {timer.due - record.doing.now} ms early"
    )
    record.expect(timer.due <= event.at, "timers", f"timer {event.timer} due {timer.due} fired at {event.at}")
    if timer.token is not None:
        visit = record.visits[timer.token]
        record.expect(
            visit.live and not visit.held, "timers", f"timer of visit {visit.id}, which is {visit.state}, fires"
        )

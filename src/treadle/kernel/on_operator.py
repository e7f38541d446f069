"""Commands of operators and parent runs: cancel, pause, resume, extend, abort, groups, compensation (2.7, 2.8, 2.10).
`reopen` has an operator's retry."""

from __future__ import annotations

from treadle.kernel import (
    budget,
    cancel,
    failure,
    finish,
    native,
    on_answer,
    on_callback,
    on_child,
    on_gate,
    parent,
    reopen,
    saga,
    signals,
    suspend,
    timers,
)
from treadle.kernel.deciding import Deciding, Refused, RunFails
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.kernel.state import Deferred, Signal, Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.ids import RecordId
from treadle.model.requests import ChangeGroup
from treadle.model.states import RunStatus, TokenState


def _live(d: Deciding) -> None:
    if d.state.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        raise Refused("INVALID_STATE", f"run {d.state.run} is {d.state.status}")


def cancel_run(d: Deciding, command: c.CancelRun) -> None:
    """Cancel a run, a queued one too. One that has ended stays as it is."""
    if d.state.status in (RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.QUEUED):
        finish.cancel_run(d, command.by, command.reason)


def abort_run(d: Deciding, command: c.AbortRun) -> None:
    """End a run that is out of time: the other answer beside extending it. A run that is over stays as it is."""
    status = d.state.status
    if command.strict and status in (RunStatus.RUNNING, RunStatus.QUEUED):
        raise Refused("INVALID_STATE", f"run {d.state.run} is {status}: there is nothing to decide; cancel it instead")
    if status in (RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.QUEUED):
        finish.cancel_run(d, command.by, "aborted")


def cancel_token(d: Deciding, command: c.CancelToken) -> None:
    token = d.state.tokens.get(command.token)
    if token is None or token.state in (TokenState.FAILED, TokenState.TIMED_OUT):
        if not 0 < command.token <= d.state.last_token:
            raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {command.token}")
        return
    _live(d)
    cancel.cancel_token(d, token, command.by, command.reason)


def cancel_group(d: Deciding, command: c.CancelGroup) -> None:
    _live(d)
    native.change_group(d, ChangeGroup("cancel_group", command.group, join=command.join), (), command.by)


def close_group(d: Deciding, command: c.CloseGroup) -> None:
    _live(d)
    native.change_group(d, ChangeGroup("close_group", command.group), (), command.by)


def add_siblings(d: Deciding, command: c.AddSiblings) -> None:
    if command.id is not None and command.id in d.state.seen:
        return
    _live(d)
    request = ChangeGroup("add_siblings", command.group, command.items, command.count)
    try:
        native.change_group(d, request, (), "operator", 0, command.id)
    except RunFails as over:  # a request that a limit forbids is refused; it does not fail the run
        raise Refused(over.error.kind, over.error.message) from None


def send_signal(d: Deciding, command: c.SendSignal) -> None:
    if command.id is not None and command.id in d.state.seen:
        return
    _live(d)
    if is_too_deep(command.data):
        raise Refused("BAD_REQUEST", too_deep("the signal's data"))
    if command.awaited and not signals.is_awaited(d, command.name, command.key):
        raise Refused("INVALID_STATE", f"nothing in run {d.state.run} waits for signal {command.name!r} now")
    signals.receive(d, command.name, command.key, command.data, command.id)


def pause_run(d: Deciding, command: c.PauseRun) -> None:
    """Pause a run: nothing is dispatched, answers are recorded but not routed, and all timers freeze."""
    if d.state.status is RunStatus.PAUSED and not command.strict:
        return
    if d.state.status is not RunStatus.RUNNING:
        raise Refused("INVALID_STATE", f"run {d.state.run} is {d.state.status}")
    d.run_paused(command.by, command.reason)


def resume_run(d: Deciding, command: c.ResumeRun) -> None:
    if d.state.status is RunStatus.RUNNING and not command.strict:
        return
    if d.state.status is RunStatus.COMPENSATION_FAILED:
        _resume_compensation(d, command.by)
        return
    if d.state.status is not RunStatus.PAUSED:
        raise Refused("INVALID_STATE", f"run {d.state.run} is {d.state.status}")
    resume(d, command.by, None)


def extend_timeout(d: Deciding, command: c.ExtendTimeout) -> None:
    """Set a new deadline, `ms` from now. A run that timed out into a pause goes on; one that a person paused does
    not."""
    _live(d)
    if command.ms <= 0:
        raise Refused("BAD_REQUEST", f"a timeout is extended by a positive number of ms, got {command.ms}")
    frozen = d.state.paused_at is not None and not d.state.overdue
    deadline = (d.state.paused_at if frozen and d.state.paused_at is not None else d.now) + command.ms
    before = [timer for timer in d.state.timers.values() if timer.purpose == "run"]
    if not d.state.overdue and any(timer.due == deadline for timer in before):
        return
    for timer in before:
        d.effect(x.ClearTimer(timer.id))
    if frozen:  # clocks stand still: `ms` is what will be left when they go on
        timers.start(d, deadline, "run")
        return
    if d.state.status is RunStatus.RUNNING:
        d.run_paused(command.by, "to extend the deadline")
    resume(d, command.by, deadline)


def resume(d: Deciding, by: str, deadline: int | None) -> None:
    """Let a paused run go on: its clocks, the answers that came meanwhile, everything that waits to begin."""
    assert d.state.paused_at is not None
    waiting = list(d.state.deferred.values())
    shift = d.now - d.state.paused_at
    d.run_resumed(by, shift_ms=shift, deadline=deadline)
    if deadline is not None:
        timers.start(d, deadline, "run")
    if shift:
        for timer in d.state.timers.values():
            d.effect(x.SetTimer(timer.id, timer.due))
    kept = [signal for signal in d.state.signals.values() if signal.id > d.state.paused_signal]
    came: list[Deferred | Signal] = sorted([*waiting, *kept], key=lambda item: item.seq)
    d.carries = True
    for item in came:
        if not d.running:
            break
        if isinstance(item, Signal):
            if item.id in d.state.signals:
                signals.offer(d, item)
        elif item.token in d.state.deferred:
            d.inherited = item.inherited
            _carry_on(d, d.state.tokens[item.token], item)
    d.carries = d.inherited = False
    reopen.wake_all(d)
    if d.state.budget is not None:
        budget.wake_children(d)


def _carry_on(d: Deciding, token: Token, item: Deferred) -> None:
    if item.kind == "gate":
        suspend.resume_with(d, token, item.output, "person")
    elif item.kind == "quorum":
        on_gate.fail_quorum(d, token)
    elif item.kind == "callback":
        on_callback.apply_callback(d, token, item.output, item.error)
    elif item.kind == "child":
        on_child.apply_child_end(
            d, token, item.child, item.status or "", item.output, item.error, compensable=item.compensable
        )
    elif item.error is not None:
        failure.attempt_failed(d, token, item.error, item.tries)
    else:
        on_answer.apply_result(d, token, item.output, item.tries, item.requests)


def compensate_run(d: Deciding, _command: c.CompensateRun) -> None:
    """Undo the work of a completed child, because its parent has failed."""
    if d.state.status is not RunStatus.COMPLETED:
        if d.state.status in (RunStatus.COMPENSATED, RunStatus.COMPENSATION_FAILED):
            parent.tell_ended(d)
        return
    d.run_compensating("parent")
    saga.advance(d)


def _resume_compensation(d: Deciding, by: str) -> None:
    for record in [r for r in d.state.records.values() if r.status == "failed"]:
        _retry_record(d, record.id, by)
        return
    d.run_compensating(d.state.cause or "failed")  # of a fork: what had failed is not its own
    saga.advance(d)


def retry_compensation(d: Deciding, command: c.RetryCompensation) -> None:
    record = d.state.records.get(command.record)
    if record is None:
        raise Refused("NOT_FOUND", f"run {d.state.run} has no compensation {command.record}")
    if record.status != "failed" or d.state.status is not RunStatus.COMPENSATION_FAILED:
        raise Refused("INVALID_STATE", f"compensation of {record.node!r} is {record.status}, not failed")
    _retry_record(d, command.record, command.by)


def _retry_record(d: Deciding, record: RecordId, by: str) -> None:
    d.run_compensating(d.state.cause or "failed")
    saga.start_record(d, d.state.records[record], by)


def skip_compensation(d: Deciding, command: c.SkipCompensation) -> None:
    record = d.state.records.get(command.record)
    if record is None:
        raise Refused("NOT_FOUND", f"run {d.state.run} has no compensation {command.record}")
    if record.status == "skipped":
        return
    if record.status != "failed" or d.state.status is not RunStatus.COMPENSATION_FAILED:
        raise Refused("INVALID_STATE", f"compensation of {record.node!r} is {record.status}, not failed")
    d.compensation_skipped(record.id, command.by)
    d.run_compensating(d.state.cause or "failed")
    saga.advance(d)

"""Compensation: undoing completed visits, one at a time, in reverse order of completion (2.10).

A record is left in the transaction that completes its visit. When a failure is unhandled, everything in flight has
been cancelled and the records are worked off from the newest to the oldest: a compensation token for a visit, a
request to the child for a completed child run. Exactly one is running at any time, and its progress is an event, so a
crash resumes where it was.
"""

from __future__ import annotations

from typing import Any

from treadle.errors import EvaluationError
from treadle.expression.view import DictView
from treadle.kernel import cancel, parent, timers
from treadle.kernel.deciding import Deciding
from treadle.kernel.identity import run_facts, visit_facts
from treadle.kernel.state import Record, Stopped, Token
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RecordId, RunId, TokenId
from treadle.model.states import Mode, RunStatus

Json = Any


def record_late(
    d: Deciding, token: TokenId, stopped: Stopped, output: Json, child: RunId | None, *, undo: bool
) -> None:
    """Record how to undo a visit that was cancelled and succeeded all the same. With `undo`, compensation goes on with
    it: the run is being undone, or would have been if there had been anything to undo."""
    d.compensation_recorded(
        token, stopped.node, stopped.path, stopped.frames, input=stopped.input, output=output, child=child
    )
    if not undo:
        return  # the run goes on, or an operator decides how; the record waits
    if d.state.status is not RunStatus.COMPENSATING:
        d.run_compensating(d.state.cause or d.state.status.value)
    advance(d)


def begin(d: Deciding, cause: str) -> bool:
    """Start compensating if there is anything to undo. Returns False if the run ends as it is."""
    if d.graph.definition.compensation == "off" or not any(_pending(d)):
        return False
    d.run_compensating(cause)
    advance(d)
    return True


def _pending(d: Deciding) -> list[Record]:
    return [record for record in d.state.records.values() if record.status == "recorded"]


def advance(d: Deciding) -> None:
    """Undo the newest visit that is not undone yet. When none is left, the run is compensated."""
    if d.state.compensating is not None or d.state.status is not RunStatus.COMPENSATING:
        return
    pending = _pending(d)
    if pending:
        start_record(d, pending[-1])
        return
    failed = [r for r in d.state.records.values() if r.status == "failed"]
    if failed:
        text = f"compensation of {', '.join(sorted({r.node for r in failed}))} failed"
        d.run_compensation_failed(Error("TASK_FAILED", text))
    else:
        d.run_compensated()
    parent.tell_ended(d)


def start_record(d: Deciding, record: Record, by: str = "operator") -> None:
    d.compensation_started(record.id, record.node, record.child)
    if record.child is not None:
        d.effect(x.CompensateChild(record.child, record.token))
        return
    before = next((t for t in d.state.tokens.values() if t.record == record.id), None)
    if before is not None:  # an operator lets a failed compensation try again: same token, new attempt
        d.token_retry_scheduled(before.id, before.attempt + 1, d.now, by=by)
        d.ready.append(before.id)
        return
    identity = d.token_created(record.node, record.path, (), None, None, mode=Mode.COMPENSATION, record=record.id)
    d.ready.append(identity)


def dispatch(d: Deciding, token: Token) -> None:
    """Begin a compensation token: its task sees the visit's input and output."""
    assert token.record is not None
    record = d.state.records[token.record]
    undo = d.node(token).definition.compensate
    assert undo is not None
    mapping = d.node(token).compensate_input
    seen = {"input": record.input, "output": record.output}
    if mapping is not None and any(path[:1] in (("_run",), ("_visit",)) for path in mapping.reads):
        seen["_run"] = run_facts(d.state)
        seen["_visit"] = visit_facts(d.state, token)
    try:
        value = mapping.evaluate(DictView(seen)) if mapping is not None else seen
    except EvaluationError as problem:
        compensation_token_failed(d, token, Error(problem.kind, f"compensate of {token.node!r}: {problem}"))
        return
    attempt = token.attempt + 1
    d.token_dispatched(token.id, attempt, value)
    d.token_started(token.id, attempt)
    d.effect(x.RunTask(token.id, attempt, token.node, value, None, token.record))
    timeout = undo.timeout_ms if undo.timeout_ms is not None else undo.task.timeout_ms
    if timeout is not None:
        timers.start_attempt(d, timeout, token)


def compensation_token_completed(d: Deciding, token: Token, output: Json, tries: int) -> None:
    """Note that a visit is undone, and go on with the one before it."""
    assert token.record is not None
    record = token.record
    d.token_completed(token.id, output, tries)
    d.compensation_completed(record)
    advance(d)


def compensation_token_failed(d: Deciding, token: Token, error: Error) -> None:
    """Note that a visit could not be undone: halt, or go on with the others, as configured. A compensation is never
    compensated itself."""
    assert token.record is not None
    record = token.record
    cancel.stop_outside(d, token)
    if error.kind == "TASK_TIMEOUT":
        d.token_timed_out(token.id, error)
    else:
        d.token_failed(token.id, error, max(token.attempts - 1, 0))
    record_failed(d, record, error)


def record_failed(d: Deciding, record: RecordId, error: Error) -> None:
    """Note that the compensation of one record has failed."""
    d.compensation_failed(record, error)
    if d.graph.definition.on_compensation_failure == "continue":
        advance(d)
        return
    d.run_compensation_failed(error)
    parent.tell_ended(d)


def cannot_retry(d: Deciding, what: str, done: str = "retried") -> str:
    """The message for a retry that cannot be: why, and what can be done instead."""
    run, status = d.state.run, d.state.status
    text = f"{what} cannot be {done}: {'it' if what == f'run {run}' else f'run {run}'} is {status}"
    if d.state.cause is None:
        return text
    text += ", its compensation has begun"
    if status is not RunStatus.COMPENSATION_FAILED:
        return text
    return f"{text}; `treadle runs compensations {run}` shows what failed, with --retry or --skip it goes on"


def child_compensated(d: Deciding, token: TokenId, child: RunId, status: str, error: Error | None) -> None:
    """Handle the report of a child that this run has asked to undo its work."""
    current = d.state.compensating
    assert current is not None
    if status == RunStatus.COMPENSATED:
        d.compensation_completed(current)
        advance(d)
    else:
        why = f" ({error.kind}: {error.message})" if error is not None else ""
        text = f"child run {child} of visit {token} could not be compensated{why}: it is {status}"
        hint = f"; see `treadle runs compensations {child}`, and retry here when it is compensated"
        record_failed(d, current, Error("SUBWORKFLOW_FAILED", text + hint))

"""Child runs report their end to the visit that waits for them (2.7, 2.6 step 9)."""

from __future__ import annotations

from typing import Any

from treadle.kernel import causes, failure, on_answer, saga, suspend
from treadle.kernel.deciding import Deciding
from treadle.kernel.state import Token
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.states import RunStatus, Waiting

Json = Any


def end_child(d: Deciding, command: c.EndChild) -> None:
    """A child run reports its end."""
    if d.state.compensating is not None:
        asked = d.state.records[d.state.compensating].child
        undone = command.status in (RunStatus.COMPENSATED, RunStatus.COMPENSATION_FAILED)
        if asked == command.child and undone:  # anything else is its old report, delivered again
            saga.child_compensated(d, command.token, command.child, command.status, command.error)
            return
    token = d.state.tokens.get(command.token)
    if token is None or token.child != command.child or token.waiting is not Waiting.SUBWORKFLOW:
        if command.status == RunStatus.COMPLETED and command.compensable:
            on_answer.late_success(d, command.token, None, command.output, command.child)
        return
    d.emit(
        e.ChildEnded(
            d.seq,
            d.now,
            token.id,
            command.child,
            command.status,
            command.output,
            command.error,
            command.compensable,
        )
    )
    if d.state.status is not RunStatus.PAUSED:
        apply_child_end(d, token, command.child, command.status, command.output, command.error, command.compensable)


def apply_child_end(
    d: Deciding, token: Token, child: Any, status: str, output: Json, error: Error | None, compensable: bool
) -> None:
    """A child's end takes effect: its output, or a failure where the list of 2.6 starts again."""
    if status == RunStatus.COMPLETED:
        if compensable and d.node(token).definition.compensate is None:
            saga.record(d, token, output, child)
        suspend.resume_with(d, token, output, "child")
        return
    action = d.node(token).task
    assert action is not None
    failed = causes.of_child(child, _workflow(token), status, error)
    if action.steps[0].action.config.get("on_failure") == "catch":
        cause = error.as_json() if error is not None else failed.as_json()
        suspend.resume_with(d, token, {"error": {**cause, "status": status}}, "child")
        return
    d.emit(e.TokenResumed(d.seq, d.now, token.id, "child"))
    failure.attempt_failed(d, token, failed)


def _workflow(token: Token) -> str | None:
    """What the child is a run of; a visit that began to wait under an older version does not know."""
    name = token.detail.get("workflow") if isinstance(token.detail, dict) else None
    return name if isinstance(name, str) else None

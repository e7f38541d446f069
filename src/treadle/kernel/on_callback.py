"""Callbacks: the answers of webhook workers (2.7, 5.4).

Owns the order in which a callback is judged; the first that applies decides:

    1  the body cannot be used                       BAD_REQUEST
    2  this attempt was answered before              the same answer: accepted without effect; another one: DUPLICATE
    3  the visit was cancelled, or the run has ended INVALID_STATE
    4  the attempt is over                           LATE_RESULT
    5  the output is against `output_schema`         SCHEMA, the one refusal with an effect: the visit fails
    6  else the answer is applied

Promises that history has all of them but the repetition of the same answer, which it has already: what was taken as
`callback.received`, what was refused as `callback.refused`, an output against the schema as both. Must not know tokens
or HTTP: a caller that knows the visit and the attempt was let in before.
"""

from __future__ import annotations

from typing import Any

from treadle.expression.values import json_equal
from treadle.kernel import budget, failure, suspend
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.kernel.on_answer import why_late
from treadle.kernel.state import ENDED, Token
from treadle.model import commands as c
from treadle.model.errors import Error, Rejection
from treadle.model.states import ExternalState, RunStatus, TokenState, Waiting

Json = Any


def receive_callback(d: Deciding, command: c.ReceiveCallback) -> None:
    """Handle the answer of a webhook worker."""
    if not 0 < command.token <= d.state.last_token:
        raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {command.token}")
    unusable = command.unusable or (too_deep("the callback's output") if is_too_deep(command.output) else None)
    if unusable is not None:
        _refuse(d, command, "BAD_REQUEST", unusable)
        return
    given = d.state.answers.get(command.token)
    if given is None or given.attempt != command.attempt:
        given = d.state.earlier_answers.get((command.token, command.attempt))
    if given is not None:
        answer = [command.output, command.error.as_json() if command.error is not None else None]
        if json_equal(given.data, answer):
            return
        kind: str | None = "DUPLICATE"
    else:
        kind = _out_of_time(d, command)
    if kind is not None:
        _refuse(d, command, kind, why_late(d, command.token))
        return
    token = d.state.tokens[command.token]
    suspend.started_by(d, token, f"callback of {token.node}")
    d.callback_received(token.id, command.attempt, command.output, command.error)
    if command.spent is not None:
        budget.note(d, token, command.spent, 0)
    problem = _against_schema(d, token, command)
    if problem is not None:
        _refuse(d, command, "SCHEMA", problem)
    if d.state.status is not RunStatus.PAUSED:
        apply_callback(d, token, command.output, command.error)


def apply_callback(d: Deciding, token: Token, output: Json, error: Error | None) -> None:
    """Apply the answer of a webhook worker."""
    if error is None:
        suspend.resume_with(d, token, output, "callback")
    else:
        d.token_resumed(token.id, "callback")
        failure.attempt_failed(d, token, error)


def _out_of_time(d: Deciding, command: c.ReceiveCallback) -> str | None:
    """The kind of a refusal if nobody waits for the answer any more. A visit that is alive and never waited for a
    callback is refused as well."""
    token = d.state.tokens.get(command.token)
    code = d.state.ended[command.token - 1] if command.token <= len(d.state.ended) else 0
    cancelled = bool(code) and ENDED[code] == TokenState.CANCELLED
    if cancelled or d.state.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        return "INVALID_STATE"
    if token is None or token.attempt != command.attempt:
        return "LATE_RESULT"
    if token.external is ExternalState.OFFERED and token.waiting is Waiting.EXTERNAL:
        return None
    return "LATE_RESULT" if d.node(token).suspends == "webhook" else "INVALID_STATE"


def _against_schema(d: Deciding, token: Token, command: c.ReceiveCallback) -> str | None:
    schema = d.node(token).output_schema
    if command.error is not None or schema is None:
        return None
    problem = schema.problem(command.output)
    return f"output of {token.node!r}: {problem}" if problem is not None else None


def _refuse(d: Deciding, command: c.ReceiveCallback, kind: str, reason: str) -> None:
    d.callback_refused(command.token, command.attempt, kind)
    d.rejection = Rejection(kind, f"callback for attempt {command.attempt} of visit {command.token}: {reason}")

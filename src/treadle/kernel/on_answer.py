"""Answers to visits: task results, lost workers, callbacks (2.7, 2.16 "Answers"). Those of people are in `on_gate`,
those of children in `on_child`.

Every answer is checked against the visit's attempt before it means anything. The same answer again is accepted
without effect; another one, or one that comes too late, is refused or recorded as ignored, never applied.
"""

from __future__ import annotations

from typing import Any

from treadle.expression.values import json_equal
from treadle.kernel import begin, cancel, complete, failure, native, saga, suspend, timers
from treadle.kernel.deciding import Deciding, Refused, RunFails
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.kernel.members import COMPENSATION, EXECUTING, PAUSED
from treadle.kernel.state import ENDED, Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.model.requests import AnyRequest
from treadle.model.states import ExternalState, Mode, RunStatus, TokenState, Waiting

Json = Any

RECOVERIES_MAX = 5
"""How often an attempt's worker may be lost before the token fails with WORKER_LOST (2.16): work that kills its workers
must not circulate for ever."""


def _executing(d: Deciding, token_id: TokenId, attempt: int) -> Token | None:
    """The visit, if this attempt is the one being executed. A stale result is recorded as ignored, once."""
    token = d.state.tokens.get(token_id)
    if token is not None and token.attempt == attempt and token.state is EXECUTING and token.waiting is None:
        return token
    if token is not None and token.attempt == attempt and token.state is TokenState.DISPATCHED:
        raise Refused("LEASE_CONFLICT", f"attempt {attempt} of visit {token_id} is on offer: claim it first")
    failure.refuse_late(d, token_id, attempt, _why_late(d, token_id))
    return None


def late_success(d: Deciding, token: TokenId, attempt: int | None, output: Json, child: RunId | None = None) -> None:
    """Record work that was cancelled too late to be prevented (2.10): it has happened, so it gets its record and is
    undone too."""
    stopped = d.state.stopping.get(token)
    if stopped is None or stopped.mode is not Mode.FORWARD or attempt not in (None, stopped.attempt):
        return
    if child != stopped.child:
        return
    if child is None and d.graph.nodes[stopped.node].definition.compensate is None:
        return
    if d.graph.definition.compensation != "off":
        undoing = d.state.status in (RunStatus.COMPENSATING, RunStatus.COMPENSATED)
        saga.record_late(d, token, stopped, output, child, undo=undoing or _would_compensate(d))
    failure.refuse_late(d, token, stopped.attempt, _why_late(d, token))


def _would_compensate(d: Deciding) -> bool:
    """Whether the run has ended in a way that is compensated, and there was only nothing to undo yet."""
    policy = d.graph.definition.compensation
    if d.state.status is RunStatus.FAILED:
        return policy != "off"
    return d.state.status in (RunStatus.CANCELLED, RunStatus.TIMED_OUT) and policy == "on_failure_and_cancel"


def _why_late(d: Deciding, token_id: TokenId) -> str:
    code = d.state.ended[token_id - 1] if 0 < token_id <= len(d.state.ended) else 0
    return f"the visit is {ENDED[code]}" if code else "the attempt was superseded"


def report_progress(d: Deciding, command: c.ReportProgress) -> None:
    """Record something that an attempt reports while it works. A report that comes late, twice or out of order is
    dropped: it is no result."""
    token = d.state.tokens.get(command.token)
    if token is None or token.state is not TokenState.EXECUTING or token.attempt != command.attempt:
        return
    if (token.attempt, token.recoveries, command.part) > token.progress and not is_too_deep(command.data):
        d.custom(command.name, command.data, token.id, part=command.part)


def finish_attempt(d: Deciding, command: c.FinishAttempt) -> None:
    """Handle the result of an attempt that has succeeded."""
    if command.token in d.state.stopping:
        late_success(d, command.token, command.attempt, command.output)
    token = _answering(d, command.token, command.attempt, command.worker)
    if token is None:
        return
    if is_too_deep(command.output):
        error = Error("SCHEMA", too_deep(f"the output of {token.node!r}"))
        fail_attempt(d, c.FailAttempt(command.token, command.attempt, error, command.tries, command.worker))
        return
    if d.state.status is PAUSED:
        _defer(d, token, command.output, None, command.tries, command.requests)
        return
    apply_result(d, token, command.output, command.tries, command.requests)


def fail_attempt(d: Deciding, command: c.FailAttempt) -> None:
    """Handle the failure of an attempt."""
    token = _answering(d, command.token, command.attempt, command.worker)
    if token is None:
        return
    if d.state.status is RunStatus.PAUSED:
        _defer(d, token, None, command.error, command.tries, ())
        return
    failure.attempt_failed(d, token, command.error, command.tries)


def _answering(d: Deciding, token_id: TokenId, attempt: int, worker: str | None) -> Token | None:
    token = _executing(d, token_id, attempt)
    if token is None:
        return None
    if token.timers and timers.lease_is_over(d, token):
        raise Refused("LEASE_CONFLICT", f"the lease on attempt {attempt} of visit {token_id} has expired")
    if worker != token.worker:
        held = f"held by {token.worker!r}" if token.worker is not None else "not claimed"
        raise Refused("LEASE_CONFLICT", f"attempt {attempt} of visit {token_id} is {held}, not {worker!r}")
    if token_id in d.state.deferred:
        return None
    return token


def _defer(
    d: Deciding, token: Token, output: Json, error: Error | None, tries: int, requests: tuple[AnyRequest, ...]
) -> None:
    d.callback_received(token.id, token.attempt, output, error, tries=tries, requests=requests)


def apply_result(d: Deciding, token: Token, output: Json, tries: int, requests: tuple[AnyRequest, ...]) -> None:
    """Apply a successful result."""
    refused = None
    if requests:
        try:
            native.apply_requests(d, token, requests)
        except Refused as refusal:
            refused = Error(refusal.rejection.kind, refusal.rejection.message)
        except RunFails:  # because of its requests; its own work has succeeded and may have to be undone
            if token.id in d.state.tokens and token.mode is Mode.FORWARD:
                complete.leave_behind(d, token, output)
                cancel.clear_timers(d, token)
                d.token_completed(token.id, output, tries)
            elif token.id not in d.state.tokens:
                failure.refuse_late(d, token.id, token.attempt, "the visit has withdrawn itself")
            raise
        if token.id not in d.state.tokens:
            failure.refuse_late(d, token.id, token.attempt, "the visit has withdrawn itself")
            return
    if token.mode is COMPENSATION:
        if refused is not None:
            saga.compensation_token_failed(d, token, failure.located(token, refused))
        else:
            cancel.clear_timers(d, token)
            saga.compensation_token_completed(d, token, output, tries)
        return
    if refused is not None:
        failure.fail_token(d, token, refused)
        return
    complete.complete_visit(d, token, output, tries)


def lose_worker(d: Deciding, command: c.LoseWorker) -> None:
    """Hand an attempt out again whose worker is gone, with the same key, unless its workers were lost too often."""
    token = d.state.tokens.get(command.token)
    if token is None or token.attempt != command.attempt or command.recovery not in (None, token.recoveries):
        return
    if token.state not in (TokenState.EXECUTING, TokenState.DISPATCHED):
        return
    if token.mode is Mode.FORWARD and d.node(token).task is None:
        return
    if token.id in d.state.deferred:
        return  # its result is recorded and will be applied when the run resumes
    losses = token.recoveries - token.forgiven + (not command.graceful)
    if losses >= RECOVERIES_MAX and d.state.status is not RunStatus.PAUSED:
        error = Error("WORKER_LOST", f"its worker was lost {losses} times")
        if token.mode is Mode.COMPENSATION:
            saga.compensation_token_failed(d, token, failure.located(token, error))
        else:
            failure.fail_token(d, token, error)
        return
    for timer in token.timers:
        if d.state.timers[timer].purpose == "lease":
            d.effect(x.ClearTimer(timer))
    queue = d.node(token).definition.queue if token.mode is Mode.FORWARD else None
    lost = token.recoveries + 1
    d.token_dispatched(token.id, token.attempt, token.input, queue=queue, recovery=lost, forgiven=command.graceful)
    slot = begin.slot_of(d, token, d.node(token)) if token.mode is Mode.FORWARD else None
    if queue is None and slot is None:
        d.token_started(token.id, token.attempt)
    d.effect(x.RunTask(token.id, token.attempt, token.node, token.input, queue=queue, record=token.record, slot=slot))


def known_visit(d: Deciding, token_id: TokenId) -> Token:
    token = d.state.tokens.get(token_id)
    if token is None:
        if 0 < token_id <= d.state.last_token:
            raise Refused("INVALID_STATE", f"visit {token_id} has ended: {_why_late(d, token_id)}")
        raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {token_id}")
    return token


def answered_before(d: Deciding, token_id: TokenId, attempt: int | None, answer: Json) -> str | None:
    """`same` or `different` if this attempt already has its answer."""
    given = d.state.answers.get(token_id)
    if given is None or (attempt is not None and given[0] != attempt):
        return None
    return "same" if json_equal(given[1], answer) else "different"


def receive_callback(d: Deciding, command: c.ReceiveCallback) -> None:
    """Handle the answer of a webhook worker."""
    if is_too_deep(command.output):
        raise Refused("BAD_REQUEST", too_deep("the callback's output"))
    answer = [command.output, command.error.as_json() if command.error is not None else None]
    before = answered_before(d, command.token, command.attempt, answer)
    if before == "same":
        return
    token = d.state.tokens.get(command.token)
    kind = None
    if token is None and not 0 < command.token <= d.state.last_token:
        raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {command.token}")
    if before == "different":
        kind = "DUPLICATE"
    elif token is None or token.state in (TokenState.FAILED, TokenState.TIMED_OUT):
        kind = _late_kind(d, command.token, command.attempt)
    elif token.attempt != command.attempt:
        kind = "LATE_RESULT"
    elif token.external is not ExternalState.OFFERED or token.waiting is not Waiting.EXTERNAL:
        kind = "LATE_RESULT" if token.waiting is Waiting.TIMER else "INVALID_STATE"
    if kind is not None or token is None:
        _refuse_callback(d, command, kind or "INVALID_STATE")
        return
    suspend.started_by(d, token, f"callback of {token.node}")
    d.callback_received(token.id, command.attempt, command.output, command.error)
    if d.state.status is not RunStatus.PAUSED:
        apply_callback(d, token, command.output, command.error)


def _late_kind(d: Deciding, token_id: TokenId, attempt: int) -> str:
    over = d.state.status not in (RunStatus.RUNNING, RunStatus.PAUSED)
    if not over and attempt < d.state.answers.get(token_id, (0, None))[0]:
        return "LATE_RESULT"  # superseded by the attempt that was answered
    ended = ENDED[d.state.ended[token_id - 1]]
    return "LATE_RESULT" if ended == TokenState.TIMED_OUT and not over else "INVALID_STATE"


def _refuse_callback(d: Deciding, command: c.ReceiveCallback, kind: str) -> None:
    d.callback_refused(command.token, command.attempt, kind)
    refused = Refused(
        kind, f"callback for attempt {command.attempt} of visit {command.token}: {_why_late(d, command.token)}"
    )
    d.rejection = refused.rejection


def apply_callback(d: Deciding, token: Token, output: Json, error: Error | None) -> None:
    """Apply the answer of a webhook worker."""
    if error is None:
        suspend.resume_with(d, token, output, "callback")
    else:
        d.token_resumed(token.id, "callback")
        failure.attempt_failed(d, token, error)

"""Answers to visits: task results and lost workers (2.7, 2.16 "Answers"). Those of webhook workers are in
`on_callback`, those of people in `on_gate`, those of children in `on_child`.

Every answer is checked against the visit's attempt before it means anything. The same answer again is accepted
without effect; another one, or one that comes too late, is refused or recorded as ignored, never applied.
"""

from __future__ import annotations

from typing import Any

from treadle.kernel import begin, budget, cancel, complete, failure, native, saga, suspend, timers
from treadle.kernel.deciding import Deciding, Refused, RunFails
from treadle.kernel.defined import defining
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.kernel.members import COMPENSATION, EXECUTING, PAUSED
from treadle.kernel.state import ENDED, Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.model.requests import AnyRequest
from treadle.model.states import Mode, RunStatus, TokenState

Json = Any

_COMPLETED = ENDED.index(TokenState.COMPLETED)
RECOVERIES_MAX = 5
"""How often an attempt's worker may be lost before the token fails with WORKER_LOST (2.16): work that kills its workers
must not circulate for ever."""


def _executing(d: Deciding, token_id: TokenId, attempt: int, worker: str | None, spent: Json) -> Token | None:
    """The visit, if this attempt is the one being executed. A stale result is recorded as ignored, once; a worker of a
    queue is told."""
    token = d.state.tokens.get(token_id)
    if token is not None and token.attempt == attempt and token.state is EXECUTING and token.waiting is None:
        return token
    if token is not None and token.attempt == attempt and token.state is TokenState.DISPATCHED:
        if worker is None or token.lost != worker:
            raise Refused("LEASE_CONFLICT", f"attempt {attempt} of visit {token_id} is on offer: claim it first")
        return _taken_up_again(d, token, worker)
    failure.refuse_late(d, token_id, attempt, why_late(d, token_id), spent)
    if worker is not None:
        text = f"attempt {attempt} of visit {token_id}: {why_late(d, token_id)}"
        d.rejection = Refused("LATE_RESULT", text).rejection
    return None


def _taken_up_again(d: Deciding, token: Token, worker: str) -> Token:
    """A worker answers whose claim has run out, and nobody has claimed the work since: it has done it after all."""
    d.token_started(token.id, token.attempt, worker=worker)
    if token.external is not None:
        suspend.started_by(d, token, f"claim of {token.node}")
    return token


def late_success(
    d: Deciding, token: TokenId, attempt: int | None, output: Json, child: RunId | None = None, spent: Json = None
) -> None:
    """Record work that was cancelled too late to be prevented (2.10): it has happened, so it gets its record and is
    undone too."""
    stopped = d.state.stopping.get(token)
    if stopped is None or stopped.mode is not Mode.FORWARD or attempt not in (None, stopped.attempt):
        return
    if child != stopped.child:
        return
    node = d.graph.nodes.get(stopped.node)  # None: the run was migrated since to a version without it
    if child is None and (node is None or node.definition.compensate is None):
        return
    if token in d.state.tokens or d.state.ended[token - 1] == _COMPLETED:
        return  # an operator has skipped the visit, which has left its record
    if d.graph.definition.compensation != "off":
        undoing = d.state.status in (RunStatus.COMPENSATING, RunStatus.COMPENSATED)
        saga.record_late(d, token, stopped, output, child, undo=undoing or _would_compensate(d))
    failure.refuse_late(d, token, stopped.attempt, why_late(d, token), spent)


def _would_compensate(d: Deciding) -> bool:
    """Whether the run has ended in a way that is compensated, and there was only nothing to undo yet."""
    policy = d.graph.definition.compensation
    if d.state.status is RunStatus.FAILED:
        return policy != "off"
    return d.state.status in (RunStatus.CANCELLED, RunStatus.TIMED_OUT) and policy == "on_failure_and_cancel"


def why_late(d: Deciding, token_id: TokenId) -> str:
    """Why an answer to this visit comes too late, in words."""
    code = d.state.ended[token_id - 1] if 0 < token_id <= len(d.state.ended) else 0
    return f"the visit is {ENDED[code]}" if code else "the attempt was superseded"


def report_progress(d: Deciding, command: c.ReportProgress) -> None:
    """Record something that an attempt reports while it works. A report that comes late, twice or out of order is
    dropped: it is no result. A worker of a queue is told."""
    token = d.state.tokens.get(command.token)
    stale = token is None or token.state is not TokenState.EXECUTING or token.attempt != command.attempt
    if command.worker is not None and (token is None or stale or token.worker != command.worker):
        raise Refused("LATE_RESULT", f"attempt {command.attempt} of visit {command.token} is not this worker's")
    if token is None or stale:
        return
    part = command.part or _next_part(token)
    if (token.attempt, token.recoveries, part) > token.progress and not is_too_deep(command.data):
        d.token_progress(token.id, token.attempt, command.name, command.data, part)


def _next_part(token: Token) -> int:
    """The number of the next report of the execution that is under way."""
    return token.progress[2] + 1 if token.progress[:2] == (token.attempt, token.recoveries) else 1


def finish_attempt(d: Deciding, command: c.FinishAttempt) -> None:
    """Handle the result of an attempt that has succeeded."""
    if command.token in d.state.stopping:
        late_success(d, command.token, command.attempt, command.output, spent=command.spent)
    token = _answering(d, command.token, command.attempt, command.worker, command.spent)
    if token is None:
        return
    if command.spent is not None:
        budget.note(d, token, command.spent, _next_part(token))
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
    token = _answering(d, command.token, command.attempt, command.worker, command.spent)
    if token is None:
        return
    if command.spent is not None:
        budget.note(d, token, command.spent, _next_part(token))
    if d.state.status is RunStatus.PAUSED:
        _defer(d, token, None, command.error, command.tries, ())
        return
    failure.attempt_failed(d, token, command.error, command.tries)


def _answering(d: Deciding, token_id: TokenId, attempt: int, worker: str | None, spent: Json) -> Token | None:
    token = _executing(d, token_id, attempt, worker, spent)
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
    if token.mode is Mode.FORWARD and defining(d.state, token).task is None:
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
    queue = defining(d.state, token).definition.queue if token.mode is Mode.FORWARD else None
    lost = token.recoveries + 1
    d.token_dispatched(token.id, token.attempt, token.input, queue=queue, recovery=lost, forgiven=command.graceful)
    slot = begin.slot_of(d, token, defining(d.state, token)) if token.mode is Mode.FORWARD else None
    if queue is None and slot is None:
        d.token_started(token.id, token.attempt)
    d.effect(x.RunTask(token.id, token.attempt, token.node, token.input, queue=queue, record=token.record, slot=slot))


def known_visit(d: Deciding, token_id: TokenId) -> Token:
    token = d.state.tokens.get(token_id)
    if token is None:
        if 0 < token_id <= d.state.last_token:
            raise Refused("INVALID_STATE", f"visit {token_id} has ended: {why_late(d, token_id)}")
        raise Refused("NOT_FOUND", f"run {d.state.run} has no visit {token_id}")
    return token

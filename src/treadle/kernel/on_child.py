"""Reports of child runs to the visit that waits for them: that they have ended (2.7, 2.6 step 9), and that they go on
again (6.2)."""

from __future__ import annotations

from typing import Any

from treadle.kernel import (
    budget,
    cancel,
    causes,
    failure,
    on_answer,
    records,
    reopen,
    reopen_plan,
    saga,
    suspend,
    timers,
)
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.defined import defining
from treadle.kernel.state import Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus, TokenState, Waiting

Json = Any


def end_child(d: Deciding, command: c.EndChild) -> None:
    """Handle the end of a child run."""
    if d.state.compensating is not None:
        asked = d.state.records[d.state.compensating].child
        undone = command.status in (RunStatus.COMPENSATED, RunStatus.COMPENSATION_FAILED)
        if asked == command.child and undone:  # anything else is its old report, delivered again
            saga.child_compensated(d, command.token, command.child, command.status, command.error)
            return
    token = d.state.tokens.get(command.token)
    if command.spent is not None and d.state.status in (RunStatus.RUNNING, RunStatus.PAUSED):
        news = budget.note_child(d, command.token, command.child, command.spent)
        if news and budget.is_below_another(d):
            budget.pass_up(d, None)
    if token is not None and _has_come_back(token, command.child, command.life):
        _reopen(d, token, command.life, command.levels, "operator")  # its end has overtaken that news
    elif token is not None and _is_withdrawn(d, token, command.child, command.life):
        reopen.wait_for_child(d, token, command.life)  # the same
    if token is None or not _waits_for(token, command.child, command.life):
        if command.status == RunStatus.COMPLETED and command.compensable:
            on_answer.late_success(d, command.token, None, command.output, command.child)
        return
    output, error, compensable = command.output, command.error, command.compensable
    d.child_ended(
        token.id,
        command.child,
        command.status,
        output=output,
        error=error,
        compensable=compensable,
        life=command.life,
    )
    if d.state.status is not RunStatus.PAUSED:
        apply_child_end(d, token, command.child, command.status, output, error, compensable=compensable)


def apply_child_end(
    d: Deciding, token: Token, child: Any, status: str, output: Json, error: Error | None, *, compensable: bool
) -> None:
    """Apply a child's end: its output, or a failure that is handled by the list of 2.6 from the start."""
    if status == RunStatus.COMPLETED:
        if compensable and d.node(token).definition.compensate is None:
            records.record(d, token, output, child)
        suspend.resume_with(d, token, output, "child")
        return
    failed = causes.of_child(child, _workflow(token), status, error)
    if suspend.catches_failure(defining(d.state, token)):
        cause = error.as_json() if error is not None else failed.as_json()
        suspend.resume_with(d, token, {"error": {**cause, "status": status}}, "child")
        return
    d.token_resumed(token.id, "child")
    failure.attempt_failed(d, token, failed)


def _workflow(token: Token) -> str | None:
    """The child's workflow; None for a visit that began to wait under an older version, which did not note it."""
    name = token.detail.get("workflow") if isinstance(token.detail, dict) else None
    return name if isinstance(name, str) else None


def _waits_for(token: Token, child: RunId, life: int) -> bool:
    """Whether the visit waits for this child, and for this life of it: a child that is retried ends once more."""
    return token.child == child and token.waiting is Waiting.SUBWORKFLOW and life >= token.life


def _has_come_back(token: Token, child: RunId, life: int) -> bool:
    """Whether the child the visit has failed with lives again, without the visit knowing."""
    return token.called == child and token.state is TokenState.FAILED and life > token.life


def _is_concerned(token: Token) -> bool:
    """Whether a call waits for its child, or has failed with it. One that has timed out, or waits for its next attempt,
    has nothing to do with it any more."""
    return token.state is TokenState.FAILED or token.waiting is Waiting.SUBWORKFLOW


def _is_withdrawn(d: Deciding, token: Token, child: RunId, life: int) -> bool:
    """Whether an end of the child that a pause has kept from being applied is none any more: the child was reopened."""
    item = d.state.deferred.get(token.id)
    return item is not None and item.kind == "child" and item.child == child and life > token.life


def reopen_call(d: Deciding, command: c.ReopenCall) -> None:
    """Handle the reopening of a failed child (6.2). If no visit waits for it any more, it is cancelled: its failure has
    been handled here meanwhile, or the visit did not fail with it."""
    token = d.state.tokens.get(command.token)
    if token is None or token.called != command.child:
        d.effect(x.CancelChild(command.child))
    elif _has_come_back(token, command.child, command.life):
        _reopen(d, token, command.life, command.levels, command.by)
    elif _is_withdrawn(d, token, command.child, command.life):
        reopen.wait_for_child(d, token, command.life)
    elif not _is_concerned(token):
        d.effect(x.CancelChild(command.child))


def _reopen(d: Deciding, token: Token, life: int, levels: int, by: str) -> None:
    """Let the call wait for its child again. With `levels` the whole run is retried, and its other failed calls wait
    for their children."""
    try:
        reopen_plan.check_run(d, f"visit {token.id} at {token.node!r}")
        others = reopen_plan.unhandled(d.state) if levels else []
        wanted = reopen_plan.plan(d, [token.failure, *others])
    except Refused:
        assert token.called is not None
        d.effect(x.CancelChild(token.called))
        return
    _retry_with(d, wanted, by, levels, {token.id: life})


def refuse_call(d: Deciding, command: c.RefuseCall) -> None:
    """Start a new child run for a visit whose child cannot be retried, although the whole run is."""
    token = d.state.tokens.get(command.token)
    if token is None or token.called != command.child:
        return
    if token.state is TokenState.FAILED:
        try:
            reopen_plan.check_run(d, f"visit {token.id} at {token.node!r}")
            wanted = reopen_plan.plan(d, [token.failure, *reopen_plan.unhandled(d.state)])
        except Refused:
            return  # something else has happened since the operator asked
        _retry_with(d, wanted, command.by, command.levels, {token.id: -1})
    elif token.waiting is Waiting.SUBWORKFLOW:
        cancel.clear_timers(d, token, triggers=False)
        d.token_retry_scheduled(token.id, token.attempt + 1, d.now)
        timers.start(d, d.now, "retry", token)


def _retry_with(d: Deciding, wanted: reopen_plan.Plan, by: str, levels: int, known: dict[TokenId, int]) -> None:
    """Take the failures back. A call whose child has not answered yet waits for it, and the child is asked again; a
    life of -1 means that the child has refused."""
    lives = dict(known)
    for call in reopen_plan.failed_calls(d, wanted):
        if levels and call.id not in known:
            lives[call.id] = call.life + 1
            reopen.ask_child(d, call, by, levels)
    waiting = {token: life for token, life in lives.items() if life >= 0}
    _leave_sections(d, waiting)
    reopen.carry_out(d, wanted, by, max(levels - 1, 0), waiting)


def _leave_sections(d: Deciding, waiting: dict[TokenId, int]) -> None:
    """Let a call inside a critical section go on waiting only if no other visit is in there. Otherwise its child is
    stopped, and the call queues up for an attempt with a new one."""
    entered: set[str] = set()
    for identity in list(waiting):
        token = d.state.tokens[identity]
        mutex = d.node(token).definition.mutex
        if mutex is None:
            continue
        others = d.state.mutexes.get(mutex.name)
        if mutex.name in entered or (others is not None and (others.holders or others.queue)):
            assert token.called is not None
            d.effect(x.CancelChild(token.called))
            del waiting[identity]
        entered.add(mutex.name)

"""Ending a run: completed, failed, cancelled, timed out or deadlocked; and noticing that it has ended (2.2, 2.5,
A5)."""

from __future__ import annotations

from typing import Any

from treadle.errors import EvaluationError
from treadle.expression.sources import CompiledMapping
from treadle.kernel import cancel, failure, node_join, parent, saga
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.fallen import RUN
from treadle.kernel.state import Token
from treadle.kernel.view import TokenView
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.states import Waiting

Json = Any


def settle_run(d: Deciding) -> bool:
    """End the run if nothing can happen any more. Called when nothing is left to decide. Returns whether something has
    moved again."""
    state = d.state
    if not d.running:
        return False
    if state.live == 0:
        if state.unhandled:
            fail_run(d, next(iter(state.unhandled.values())), own=False)
        else:
            complete_run(d)
        return bool(d.ready)
    if state.working > state.passive or state.working > _stuck(d):
        return False
    if any(timer.purpose == "sync" for timer in state.timers.values()):
        return False
    if _follow_no_match(d):
        return True
    if node_join.fire_stuck(d) or _end_stragglers(d):
        return True
    if state.unhandled:  # the tokens left wait for failed ones: the failure is the reason, not the waiting
        raise RunFails(next(iter(state.unhandled.values())), own=False)
    raise RunFails(_deadlock(d))


def _stuck(d: Deciding) -> int:
    """The number of tokens that only another token could set free: those waiting for a mutex, or for no trigger but a
    `when`."""
    queued = sum(len(mutex.queue) for mutex in d.state.mutexes.values())
    return queued + sum(1 for _ in _only_when(d))


def _only_when(d: Deciding) -> list[Token]:
    """Tokens that no clock and no signal can resume: only another token's move could make their `when` true."""
    return [
        token
        for token in d.state.tokens.values()
        if token.waiting is Waiting.TRIGGER and not token.timers and not d.node(token).signalled
    ]


def _follow_no_match(d: Deciding) -> bool:
    """Let tokens that only a `when` could resume follow their node's on_no_match: nothing else is live (A2)."""
    waiting = _only_when(d)
    for token in waiting:
        if token.id not in d.state.tokens or token.waiting is not Waiting.TRIGGER:
            continue  # its branch has failed with another
        if d.node(token).definition.on_no_match == "end":
            d.token_resumed(token.id, "on_no_match")
            d.token_completed(token.id, token.output)
            d.touch(token.frames)
        else:
            text = f"no trigger out of {token.node!r} can ever occur; set on_no_match: end if that is fine"
            failure.fail_token(d, token, Error("NO_MATCHING_TRANSITION", text))
    return bool(waiting)


def _end_stragglers(d: Deciding) -> bool:
    """End arrivals of abandoned branches that now only wait for one another; the run goes on."""
    left = [
        -arrival.id
        for arrival in d.state.arrivals.values()
        if any(branch in d.state.groups[group].abandoned for group, branch in arrival.frames)
    ]
    cancel.cancel_units(d, left, "nobody waits for it")
    return bool(left)


def _deadlock(d: Deciding) -> Error:
    joins = sorted({arrival.target for arrival in d.state.arrivals.values()})
    held = sorted({token.node for token in d.state.tokens.values() if token.waiting is Waiting.MUTEX})
    what = [f"join at {ref!r}" for ref in joins] + [f"mutex of {ref!r}" for ref in held]
    return Error("DEADLOCK", f"tokens wait for one another and none can come any more: {', '.join(what)}")


def complete_run(d: Deciding) -> None:
    """Complete the run: its last live token has ended."""
    try:
        output = run_output(d)
    except RunFails as unevaluable:
        fail_run(d, unevaluable.error)
        return
    problem = d.graph.output_schema.problem(output) if d.graph.output_schema is not None else None
    if problem is not None:
        fail_run(d, Error("SCHEMA", f"output of the run: {problem}"))
        return
    _clear_timers(d)
    d.run_completed(output)
    parent.tell_ended(d)


def run_output(d: Deciding) -> Json:
    """The run's output: `output` of the workflow (1.1), or what `output.*` targets wrote. An expression without a value
    gives null and a warning; under `strict` it raises RunFails."""
    declared = d.graph.output
    if declared is None:
        return d.state.context()["output"]
    view = TokenView(d.state, ())
    if isinstance(declared, CompiledMapping):
        return {key: _value_or_null(d, f"output.{key}", source, view) for key, source in declared.items}
    return _value_or_null(d, "output", declared, view)


def _value_or_null(d: Deciding, name: str, source: Any, view: TokenView) -> Json:
    try:
        return source.evaluate(view)
    except EvaluationError as problem:
        text = f"{name} of the run: {problem}"
        if d.graph.definition.strict:
            raise RunFails(Error(problem.kind, text)) from None
        d.condition_unevaluable("", text, part="output")
        return None


def fail_run(d: Deciding, error: Error, *, own: bool = True, undo: bool = True) -> None:
    """Cancel everything in flight, fail the run, and compensate unless there is nothing to `undo`. Not its `own`
    failure: a visit or a fan-in failed and nothing handled it."""
    d.because = 0 if own else RUN
    cancel.cancel_all(d, "run failed", error.kind)
    d.because = 0
    _abandon_decisions(d)
    _clear_timers(d)
    d.run_failed(error, own=own)
    if not undo or not saga.begin(d, "failed"):
        parent.tell_ended(d)


def cancel_run(d: Deciding, by: str, reason: str | None) -> None:
    """Cancel the run and everything in it (2.8). A fork that waits for its start has done nothing to be undone."""
    undo = d.graph.definition.compensation == "on_failure_and_cancel" and d.state.stands is None
    cancel.cancel_all(d, by, reason or "run cancelled")
    _abandon_decisions(d)
    _clear_timers(d)
    d.run_cancelled(by, reason)
    if undo and saga.begin(d, "cancelled"):
        return
    parent.tell_ended(d)


def time_out_run(d: Deciding, error: Error) -> None:
    """End a run whose deadline has passed (`on_timeout: cancel`)."""
    cancel.cancel_all(d, "run timed out", error.kind)
    _abandon_decisions(d)
    _clear_timers(d)
    d.run_timed_out(error)
    if d.graph.definition.compensation == "on_failure_and_cancel" and saga.begin(d, "cancelled"):
        return
    parent.tell_ended(d)


def terminate(d: Deciding, token: Token, output: Json, tries: int, status: str) -> None:
    """End the whole run at once, because a node with `terminates` has completed (A5)."""
    by = f"node {token.node}"
    d.token_completed(token.id, output, tries)
    if status == "completed":
        cancel.cancel_all(d, by, "run terminated")
        _abandon_decisions(d)
        complete_run(d)
    elif status == "cancelled":
        cancel_run(d, by, "terminates: cancelled")
    else:
        text = f"node {token.node!r} terminates the run as failed"
        fail_run(d, Error("TASK_FAILED", text, token.node, token.path))


def _abandon_decisions(d: Deciding) -> None:
    d.ready.clear()
    d.forget_marks()
    d.empty.clear()


def _clear_timers(d: Deciding) -> None:
    for timer in d.state.timers:
        d.effect(x.ClearTimer(timer))

"""Handling failures, in the order of 2.6: node retry, failure transitions, the enclosing branch, the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from treadle.expression.backoff import delay_ms
from treadle.kernel import budget, cancel, entity, fan_out, records, saga, timers
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.route import Origin, RoutingFailed, choose
from treadle.kernel.state import Token
from treadle.kernel.view import TokenView
from treadle.model.errors import Error
from treadle.model.ids import Frame, TokenId
from treadle.model.spending import spending_of
from treadle.model.states import Mode

Json = Any

Record = Callable[[Frame | None, bool], int]
"""Records the failure's own event, given the branch that fails with it and whether nothing handles it. Returns the
event's sequence number: everything the failure takes down refers to it."""


def attempt_failed(d: Deciding, token: Token, error: Error, tries: int = 0) -> None:
    """Handle a failed attempt: try again after a backoff if the node's policy allows it, else fail the token."""
    error = located(token, error, tries)
    retry = d.node(token).definition.retry
    if token.mode is Mode.COMPENSATION:
        undo = d.node(token).definition.compensate
        retry = undo.retry if undo is not None else None
    if retry is not None and error.retryable and token.attempt < retry.max_attempts:
        unit = _jitter_unit(d.state.seed, token.id, token.attempt) if d.state.seed else None
        due = d.now + delay_ms(retry, token.attempt, unit)
        cancel.stop_attempt(d, token)
        cancel.clear_timers(d, token, triggers=False)
        d.token_retry_scheduled(token.id, token.attempt + 1, due, error=error, tries=tries)
        timers.start(d, due, "retry", token)
        return
    if token.mode is Mode.COMPENSATION:
        saga.compensation_token_failed(d, token, error)
        return
    fail_token(d, token, error)


def located(token: Token, error: Error, tries: int = 0) -> Error:
    """The error with the place it happened at, as an author sees it in `_last_error`."""
    return msgspec.structs.replace(
        error, node=token.node, path=token.path, attempts=max(token.attempts + tries, error.attempts)
    )


def _jitter_unit(seed: int, token: int, attempt: int) -> float:
    """A number in [-1, 1) that only depends on its arguments: one round of a multiplicative congruential generator."""
    mixed = (seed * 6364136223846793005 + token * 1442695040888963407 + attempt * 2862933555777941757) % 2**64
    return (mixed >> 11) / 2**52 - 1.0


def fail_token(d: Deciding, token: Token, error: Error) -> None:
    """Fail the token for good."""
    told = located(token, error)
    error = told.briefly()
    node = d.node(token)
    mutex = node.definition.mutex
    holds = token.mutex if mutex is not None and mutex.keep else None
    origin = Origin(token.id, node, token.path, token.frames, token.loops, error, holds=holds)

    def record(frame: Frame | None, unhandled: bool) -> int:
        retries = max(token.attempts - 1, 0)
        cancel.stop_outside(d, token)
        if node.definition.compensate_on_failure and node.definition.compensate is not None:
            records.record(d, token, token.output)
        if error.kind == "TASK_TIMEOUT":
            d.token_timed_out(token.id, told, fails=frame, unhandled=unhandled)
        else:
            d.token_failed(token.id, told, retries, fails=frame, unhandled=unhandled)
        failed_at = d.state.seq
        d.touch(token.frames)
        entity.outcome(d, node, token.id, success=False)
        return failed_at

    fail_at(d, origin, error, record)


def fail_at(d: Deciding, origin: Origin, error: Error, record: Record) -> None:
    """Handle a failure at a node: take its failure transitions, else fail the innermost branch that a join waits for,
    else the run."""
    view = TokenView(d.state, origin.frames, error, None, d.state.tokens.get(origin.token))
    try:
        matches = choose(d, view, origin.node.failure, origin) if origin.node.failure else []
        firings = fan_out.plan(d, view, origin, matches) if matches else []
    except RoutingFailed as problem:
        error = problem.error
    else:
        if matches:
            record(None, False)
            fan_out.carry_out(d, origin, firings)
            return
    frame, wanted = failing_branch(d, origin)
    unhandled = frame is None
    failed_at = record(frame if wanted else None, unhandled)
    group = d.state.groups.get(frame[0]) if frame is not None else None
    if frame is not None and group is not None:
        d.because = failed_at if wanted else 0
        cancel.cancel_branch(d, group, frame[1], "branch failed", error.kind)
        d.because = 0
        d.mark(group.id)
    elif unhandled and d.graph.definition.on_unhandled_failure == "fail_run":
        raise RunFails(error, own=False)


def failing_branch(d: Deciding, origin: Origin) -> tuple[Frame | None, bool]:
    """(the innermost enclosing branch that ends with this failure, whether a join is still waiting for that branch).

    None: nothing is in between, the failure is the run's. A branch abandoned by its join ends quietly, and so does one
    whose group has left the state with its last visit while a join inside it was still to be looked at.
    """
    bit = origin.node.bit
    for frame in reversed(origin.frames):
        group = d.state.groups.get(frame[0])
        if group is None:
            return frame, False
        for site in group.sites:
            if site.status == "open" and d.graph.sites[site.index].reach & bit:
                return frame, True
        if frame[1] in group.abandoned:
            return frame, False
    return None, True


def refuse_late(d: Deciding, token: TokenId, attempt: int, reason: str, spent: Json = None) -> None:
    """Record, once, a result that came too late. It is never applied; what it has `spent` counts."""
    stopped = d.state.stopping.get(token)
    if stopped is not None and stopped.attempt == attempt:
        d.result_ignored(token, attempt, reason, spending_of(spent) if spent is not None else None)
        if spent is not None:
            budget.counted(d)

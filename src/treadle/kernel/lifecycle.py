"""The lifecycles of token, run, gate and external task: every legal move, as data. No other module names a next state.

Theory of operation. A move is (state, cause) → state, where the cause is the stored type of the event that records
it. Two events mean different things in different places and carry a variant after a slash: a token resumed from a
mutex or a retry backoff has not begun (→ pending), resumed from any other wait it goes on executing.

`evolve` calls `move` for every event; a missing row is an `InvalidTransition`, a bug of ours and never of the author.
The tests hand in a recorder and fail for a row never taken; docs/lifecycle.md is drawn from these tables.
"""

from __future__ import annotations

from treadle.errors import InvalidTransition
from treadle.model.states import ExternalState as X
from treadle.model.states import GateState as G
from treadle.model.states import RunStatus as R
from treadle.model.states import TokenState as T

TOKEN: dict[tuple[str, str], T] = {
    (T.CREATED, "token.created"): T.PENDING,
    (T.PENDING, "token.dispatched"): T.DISPATCHED,
    (T.DISPATCHED, "token.started"): T.EXECUTING,
    (T.PENDING, "token.started"): T.EXECUTING,
    (T.EXECUTING, "token.started"): T.EXECUTING,
    (T.DISPATCHED, "token.dispatched"): T.DISPATCHED,
    (T.EXECUTING, "token.dispatched"): T.DISPATCHED,
    (T.PENDING, "token.waiting"): T.WAITING,
    (T.EXECUTING, "token.waiting"): T.WAITING,
    (T.WAITING, "token.waiting"): T.WAITING,
    (T.WAITING, "token.resumed"): T.EXECUTING,
    (T.WAITING, "token.resumed/mutex"): T.PENDING,
    (T.WAITING, "token.resumed/retry"): T.PENDING,
    (T.EXECUTING, "token.completed"): T.COMPLETED,
    (T.WAITING, "token.completed"): T.COMPLETED,
    (T.PENDING, "token.failed"): T.FAILED,
    (T.DISPATCHED, "token.failed"): T.FAILED,
    (T.EXECUTING, "token.failed"): T.FAILED,
    (T.WAITING, "token.failed"): T.FAILED,
    (T.PENDING, "token.timed_out"): T.TIMED_OUT,  # a join goes on while it waits for a budget of a run above
    (T.DISPATCHED, "token.timed_out"): T.TIMED_OUT,
    (T.EXECUTING, "token.timed_out"): T.TIMED_OUT,
    (T.WAITING, "token.timed_out"): T.TIMED_OUT,
    (T.PENDING, "token.cancelled"): T.CANCELLED,
    (T.DISPATCHED, "token.cancelled"): T.CANCELLED,
    (T.EXECUTING, "token.cancelled"): T.CANCELLED,
    (T.WAITING, "token.cancelled"): T.CANCELLED,
    (T.DISPATCHED, "token.retry_scheduled"): T.WAITING,
    (T.EXECUTING, "token.retry_scheduled"): T.WAITING,
    (T.WAITING, "token.retry_scheduled"): T.WAITING,
    (T.FAILED, "token.retry_scheduled"): T.PENDING,
    (T.TIMED_OUT, "token.retry_scheduled"): T.PENDING,
    (T.CANCELLED, "token.retry_scheduled"): T.PENDING,
    (T.CANCELLED, "token.waiting"): T.WAITING,
    (T.TIMED_OUT, "token.waiting"): T.WAITING,
    (T.FAILED, "token.waiting"): T.WAITING,
    (T.PENDING, "token.skipped"): T.EXECUTING,
    (T.DISPATCHED, "token.skipped"): T.EXECUTING,
    (T.EXECUTING, "token.skipped"): T.EXECUTING,
    (T.WAITING, "token.skipped"): T.EXECUTING,
    (T.FAILED, "token.skipped"): T.EXECUTING,
    (T.TIMED_OUT, "token.skipped"): T.EXECUTING,
    (T.FAILED, "token.jumped"): T.PENDING,
    (T.TIMED_OUT, "token.jumped"): T.PENDING,
    (T.DISPATCHED, "run.forked"): T.PENDING,
    (T.EXECUTING, "run.forked"): T.PENDING,
    (T.WAITING, "run.forked"): T.PENDING,
}

RUN: dict[tuple[str, str], R] = {
    (R.CREATED, "run.started"): R.RUNNING,
    (R.CREATED, "run.queued"): R.QUEUED,
    (R.QUEUED, "run.queued"): R.QUEUED,
    (R.QUEUED, "run.started"): R.RUNNING,
    (R.RUNNING, "run.queued"): R.QUEUED,  # a fork that has to wait for its start has a past already
    (R.PAUSED, "run.queued"): R.QUEUED,
    (R.COMPENSATING, "run.queued"): R.QUEUED,
    (R.QUEUED, "run.cancelled"): R.CANCELLED,
    (R.RUNNING, "run.paused"): R.PAUSED,
    (R.PAUSED, "run.resumed"): R.RUNNING,
    (R.RUNNING, "run.completed"): R.COMPLETED,
    (R.RUNNING, "run.failed"): R.FAILED,
    (R.PAUSED, "run.failed"): R.FAILED,
    (R.RUNNING, "run.cancelled"): R.CANCELLED,
    (R.PAUSED, "run.cancelled"): R.CANCELLED,
    (R.RUNNING, "run.timed_out"): R.TIMED_OUT,
    (R.FAILED, "run.resumed"): R.RUNNING,
    (R.FAILED, "run.compensating"): R.COMPENSATING,
    (R.CANCELLED, "run.compensating"): R.COMPENSATING,
    (R.TIMED_OUT, "run.compensating"): R.COMPENSATING,
    (R.COMPLETED, "run.compensating"): R.COMPENSATING,
    (R.COMPENSATING, "run.compensated"): R.COMPENSATED,
    (R.COMPENSATING, "run.compensation_failed"): R.COMPENSATION_FAILED,
    (R.COMPENSATION_FAILED, "run.compensating"): R.COMPENSATING,
    (R.COMPENSATED, "run.compensating"): R.COMPENSATING,
}

GATE: dict[tuple[str, str], G] = {
    (G.OPEN, "gate.completed"): G.COMPLETED,
    (G.OPEN, "gate.expired"): G.EXPIRED,
    (G.OPEN, "token.failed"): G.CLOSED,
    (G.OPEN, "token.cancelled"): G.CLOSED,
    (G.OPEN, "token.timed_out"): G.CLOSED,
    (G.OPEN, "token.retry_scheduled"): G.CLOSED,
    (G.OPEN, "token.skipped"): G.CLOSED,
}

EXTERNAL: dict[tuple[str, str], X] = {
    (X.OFFERED, "token.started"): X.CLAIMED,
    (X.CLAIMED, "token.dispatched"): X.OFFERED,
    (X.OFFERED, "callback.received"): X.ANSWERED,
    (X.CLAIMED, "token.completed"): X.ANSWERED,
    (X.CLAIMED, "token.failed"): X.ANSWERED,
    (X.CLAIMED, "token.retry_scheduled"): X.ANSWERED,
    (X.OFFERED, "token.cancelled"): X.CLOSED,
    (X.CLAIMED, "token.cancelled"): X.CLOSED,
    (X.OFFERED, "token.timed_out"): X.CLOSED,
    (X.CLAIMED, "token.timed_out"): X.CLOSED,
    (X.OFFERED, "token.retry_scheduled"): X.CLOSED,
    (X.OFFERED, "token.skipped"): X.CLOSED,
    (X.CLAIMED, "token.skipped"): X.CLOSED,
}

TABLES: dict[str, dict[tuple[str, str], str]] = {
    "token": dict(TOKEN),
    "run": dict(RUN),
    "gate": dict(GATE),
    "external task": dict(EXTERNAL),
}

LIVE = frozenset({T.CREATED, T.PENDING, T.DISPATCHED, T.EXECUTING, T.WAITING})

recorder: set[tuple[str, str, str]] | None = None
"""Tests set this set to collect the rows taken: (machine, state, cause)."""


def move_token(state: str, cause: str) -> T:
    """The token's next state."""
    try:
        after = TOKEN[state, cause]
    except KeyError:
        raise InvalidTransition(f"token {state}", cause) from None
    if recorder is not None:
        recorder.add(("token", state, cause))
    return after


def move_run(state: str, cause: str) -> R:
    """The run's next state."""
    try:
        after = RUN[state, cause]
    except KeyError:
        raise InvalidTransition(f"run {state}", cause) from None
    if recorder is not None:
        recorder.add(("run", state, cause))
    return after


def move_gate(state: str, cause: str) -> G:
    """The gate's next state."""
    try:
        after = GATE[state, cause]
    except KeyError:
        raise InvalidTransition(f"gate {state}", cause) from None
    if recorder is not None:
        recorder.add(("gate", state, cause))
    return after


def move_external(state: str, cause: str) -> X:
    """The external task's next state."""
    try:
        after = EXTERNAL[state, cause]
    except KeyError:
        raise InvalidTransition(f"external task {state}", cause) from None
    if recorder is not None:
        recorder.add(("external task", state, cause))
    return after

"""Claims: a worker begins an attempt and says how long it may be trusted with it (2.7 `queue`, 2.11).

A claim is the worker's name and a lease. The lease is a timer: when it runs out, the worker counts as lost, whichever
engine owns the run by then. Only the worker that holds the claim may renew it or answer (`on_answer`).
"""

from __future__ import annotations

from treadle.kernel import budget, suspend, timers
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.on_answer import known_visit
from treadle.kernel.state import Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.states import TokenState


def start_attempt(d: Deciding, command: c.StartAttempt) -> None:
    """Let a worker claim an attempt: one on offer, or, when its run changes hands, the one it executes already."""
    token = known_visit(d, command.token)
    if token.state is TokenState.EXECUTING and token.worker == command.worker:
        return
    if _is_at_work_unclaimed(d, token, command):
        d.token_started(token.id, command.attempt, worker=command.worker, lease_until=command.lease_until)
        _set_lease(d, token, command.lease_until)
        return
    if not d.running:
        raise Refused("INVALID_STATE", f"run {d.state.run} is {d.state.status}: nothing begins")
    if d.state.budget is not None and budget.exceeded(d, first=False) is not None:
        text = f"run {d.state.run} is over its budget: nothing begins"
        d.rejection = Refused("INVALID_STATE", text).rejection
        budget.stop_if_spent(d, first=False)
        return
    old = command.recovery not in (None, token.recoveries)
    if token.state is not TokenState.DISPATCHED or token.attempt != command.attempt or old:
        raise Refused("LEASE_CONFLICT", f"attempt {command.attempt} of visit {command.token} is not on offer")
    d.token_started(token.id, command.attempt, worker=command.worker, lease_until=command.lease_until)
    _set_lease(d, token, command.lease_until)
    if command.worker is not None and token.external is not None:
        suspend.started_by(d, token, f"claim of {token.node}")


def _is_at_work_unclaimed(d: Deciding, token: Token, command: c.StartAttempt) -> bool:
    """Whether the attempt is at work without a lease. An engine's own work needs none while the engine owns the run,
    and needs one to go on when it does not."""
    at_work = token.state is TokenState.EXECUTING and token.waiting is None and token.id not in d.state.deferred
    unclaimed = token.worker is None and token.external is None and command.lease_until is not None
    same = token.attempt == command.attempt and command.recovery in (None, token.recoveries)
    return at_work and unclaimed and same


def extend_lease(d: Deciding, command: c.ExtendLease) -> None:
    """Extend a lease. Only the worker that holds it may ask."""
    token = known_visit(d, command.token)
    stale = token.state is not TokenState.EXECUTING or token.attempt != command.attempt
    if stale or token.worker != command.worker or timers.lease_is_over(d, token):
        raise Refused("LEASE_CONFLICT", f"attempt {command.attempt} of visit {command.token} is not yours")
    _set_lease(d, token, command.lease_until)


def _set_lease(d: Deciding, token: Token, until: int | None) -> None:
    """One lease timer per attempt: a later one replaces it."""
    if until is None:
        return
    for timer in token.timers:
        if d.state.timers[timer].purpose == "lease":
            if d.state.timers[timer].due == until:
                return
            d.effect(x.ClearTimer(timer))
    timers.start(d, until, "lease", token)

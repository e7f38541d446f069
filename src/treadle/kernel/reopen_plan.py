"""Planning an operator's retry: what it would take back, and why it cannot (6.2). Decides nothing; `reopen` carries a
plan out.

A failure that nothing handles travels outwards: it ends its branch, the branch may make a join fail, that ends the
branch around it, and so on to the run. A plan begins with the failures that are to be retried and follows the same way,
over every join that has failed with them, to the run if that has failed.
"""

from __future__ import annotations

from msgspec import Struct

from treadle.kernel import fallen, saga, standing
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.group_state import Failure
from treadle.kernel.state import ENDED, USED, RunState, Token
from treadle.model.ids import ArrivalId, GroupId, TokenId
from treadle.model.states import RunStatus, TokenState

FAILED = (TokenState.FAILED, TokenState.TIMED_OUT)
FORK = "fork it instead (`treadle runs fork`)"
"""The remedy for a run that no retry can bring back."""


class Plan(Struct):
    """Everything a retry takes back, in the order in which it happened."""

    failures: dict[int, Failure]
    joins: list[tuple[GroupId, str]] = []
    """Joins that died with a branch around them."""
    tokens: list[TokenId] = []
    arrivals: list[ArrivalId] = []


def unhandled(state: RunState) -> list[int]:
    """The failures that make the run fail: those nothing handled, and those that made such fan-ins fail."""
    found: dict[int, None] = {}
    todo = [seq for seq, failure in state.failures.items() if failure.unhandled]
    while todo:
        seq = todo.pop()
        found[seq] = None
        group = state.failures[seq].group
        if group is not None:
            todo.extend(state.groups[group].failures.values())
    return sorted(found)


def unhandled_visits(state: RunState) -> list[TokenId]:
    """The visits that a retry of the run starts again: those that failed, and those whose join's clock ran out."""
    chosen = set(unhandled(state))
    failed = [state.failures[seq].token for seq in chosen if state.failures[seq].token]
    waited = [
        identity
        for identity, kept in state.fallen.items()
        if kept.because in chosen and kept.token.state is TokenState.TIMED_OUT
    ]
    return sorted({*failed, *waited})


def plan(d: Deciding, chosen: list[int]) -> Plan:
    """Plan the retry of these failures, with everything they have led to, outwards as far as they have travelled.
    Refused if some of it cannot be taken back."""
    state = d.state
    taken: dict[int, Failure] = {}
    todo = list(chosen)
    while todo:
        seq = todo.pop()
        if seq in taken:
            continue
        failure = taken[seq] = state.failures[seq]
        if failure.group is not None:
            _check_memory(d, failure.group, failure.target)
        if failure.fails is not None:
            for site in state.groups[failure.fails[0]].sites:
                if site.status == "failed":
                    _check_memory(d, failure.fails[0], site.target)
                    todo.append(site.failure)
    if state.status is RunStatus.FAILED and fallen.RUN in state.failures:
        taken[fallen.RUN] = state.failures[fallen.RUN]
    for failure in taken.values():
        _check_around(d, failure, taken)
    wanted = Plan(dict(sorted(taken.items())))
    for failure in wanted.failures.values():
        wanted.joins.extend(failure.joins)
        wanted.tokens.extend(failure.tokens)
        wanted.arrivals.extend(failure.arrivals)
    return wanted


def _check_memory(d: Deciding, group: GroupId, target: str | None) -> None:
    if not standing.site_of(d.state.groups[group], target or "").failure:
        text = f"the join at {target!r} failed under an older version, which did not keep what went down with it"
        raise Refused("INVALID_STATE", f"{text}: fork the run instead")


def _check_around(d: Deciding, failure: Failure, taken: dict[int, Failure]) -> None:
    """Refuse if a join around went down with another failure: it comes back only with that one."""
    if failure.fails is None:
        return
    for site in d.state.groups[failure.fails[0]].sites:
        if site.status == "dead" and site.failure not in taken:
            other = d.state.failures.get(site.failure)
            what = f"visit {other.token}" if other is not None and other.token else "another fan-in"
            text = f"the join at {site.target!r} went down with the failure of {what}: retry that, or the whole run"
            raise Refused("INVALID_STATE", text)


def check_run(d: Deciding, what: str, done: str = "retried") -> None:
    """Refused unless failures of this run may be taken back at all. `done`: what was to be done to it."""
    state = d.state
    if state.cause is not None:
        raise Refused("INVALID_STATE", saga.cannot_retry(d, what, done))
    if state.status not in (RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.FAILED):
        text = f"{saga.cannot_retry(d, what, done)}, nothing failed unhandled; {FORK}"
        raise Refused("INVALID_STATE", text)
    if state.status is not RunStatus.FAILED:
        return
    if state.own_failure and state.error is not None and state.error.kind == "WORKFLOW_TIMEOUT":
        raise Refused("INVALID_STATE", f"{what} cannot be {done}: the run's time is over; {FORK}")
    if state.parent is not None and state.parent.catches:
        text = f"{what} cannot be {done}: run {state.parent.run} catches the failure, so it was handled"
        raise Refused("INVALID_STATE", text)


def nothing_failed(state: RunState) -> str:
    ended = f" (it ended with {state.error.kind})" if state.error is not None else ""
    hint = f"; {FORK}" if state.status is RunStatus.FAILED else ""
    return f"run {state.run} cannot be retried: nothing failed unhandled{ended}{hint}"


def not_failed(state: RunState, token: Token) -> Refused:
    text = f"visit {token.id} at {token.node!r} is {token.state}, not failed"
    kept = state.fallen.get(token.id)
    if kept is not None:
        text = f"{text}: it comes back when the failure that cancelled it is retried"
    return Refused("INVALID_STATE", text)


def gone(d: Deciding, identity: TokenId) -> Refused:
    if not 0 < identity <= d.state.last_token:
        return Refused("NOT_FOUND", f"run {d.state.run} has no visit {identity}")
    code = d.state.ended[identity - 1]
    name = ENDED[code]
    if name not in FAILED:
        return Refused("INVALID_STATE", f"visit {identity} is {name}, not failed")
    why = "its join has fired" if code > USED + 1 else "its failure was handled"
    return Refused("INVALID_STATE", f"visit {identity} cannot be retried: {why}")


def failed_calls(d: Deciding, wanted: Plan) -> list[Token]:
    """Failed visits whose child run has failed."""
    tokens = [d.state.tokens[f.token] for f in wanted.failures.values() if f.token]
    return [t for t in tokens if t.called is not None and t.error is not None and t.error.kind == "SUBWORKFLOW_FAILED"]

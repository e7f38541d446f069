"""An operator's retry: failed visits try again, and what their failure took down comes back (6.2).

Theory of operation. `reopen_plan` finds every failure that a retry takes back; `fallen` has kept what each of them took
down. Then, in this order:

    1. the run is reopened, and its deadline goes on with the time it had left
    2. fan-ins that failed, or died with a branch around them, are open again
    3. failed visits, and those that were at work, get a new attempt; a failed call may wait for its reopened child
    4. visits that were held at joins wait there again, with what they had brought; the joins' clocks restart

Promises: a refusal changes nothing and says why. Visits cancelled for another reason stay cancelled. A run decides for
itself alone: a reopened child tells its parent, and a run that is retried as a whole asks its failed children first.
"""

from __future__ import annotations

from collections.abc import Callable

from treadle.kernel import cancel, parent, standing, suspend, timers
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.join_verdict import live_branches
from treadle.kernel.reopen_plan import (
    FAILED,
    Plan,
    check_run,
    failed_calls,
    gone,
    not_failed,
    nothing_failed,
    plan,
    unhandled,
)
from treadle.kernel.state import ENDED, RunState, Token
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.ids import ArrivalId, GroupId, TokenId
from treadle.model.states import Mode, RunStatus, TokenState, Waiting

# Commands


def retry_token(d: Deciding, command: c.RetryToken) -> None:
    """Retry one visit that has failed or timed out: the same token gets a new attempt. One that waits for its next
    attempt begins it now."""
    state = d.state
    kept = state.fallen.get(command.token)
    token = kept.token if kept is not None else state.tokens.get(command.token)
    if token is None:
        raise gone(d, command.token)
    if command.attempt is not None and command.attempt != token.attempt:
        return
    if token.state not in FAILED:
        if kept is None and token.error is None and token.attempt > 1:
            return  # the same command again
        if kept is None and _is_backing_off(state, token):
            _try_now(d, token)
            return
        raise not_failed(state, token)
    check_run(d, f"visit {token.id} at {token.node!r}")
    carry_out(d, plan(d, [kept.because if kept is not None else token.failure]), command.by, 0)


def _is_backing_off(state: RunState, token: Token) -> bool:
    """Whether the visit waits for its next attempt. The clocks of a paused run stand still."""
    return state.status is RunStatus.RUNNING and any(state.timers[timer].purpose == "retry" for timer in token.timers)


def _try_now(d: Deciding, token: Token) -> None:
    """Bring the next attempt of a visit forward to now. What is due already is left as it is."""
    if any(d.state.timers[timer].purpose == "retry" and d.state.timers[timer].due <= d.now for timer in token.timers):
        return
    cancel.clear_timers(d, token, triggers=False)
    d.token_retry_scheduled(token.id, token.attempt + 1, d.now, error=token.error)
    timers.start(d, d.now, "retry", token)


def retry_run(d: Deciding, command: c.RetryRun) -> None:
    """Retry all visits whose failure nothing has handled, together. Failed children come first: they are asked, and
    their answers let this run go on (`on_child`)."""
    if command.levels and _is_reopened(d, command):
        return
    try:
        check_run(d, f"run {d.state.run}")
        chosen = unhandled(d.state)
        if not chosen:
            raise Refused("INVALID_STATE", nothing_failed(d.state))
        wanted = plan(d, chosen)
    except Refused:
        if not command.levels or d.state.parent is None:
            raise
        d.effect(x.ChildRefused(d.state.parent.run, d.state.parent.token, command.levels, command.by))
        return
    calls = failed_calls(d, wanted)
    for token in calls:
        ask_child(d, token, command.by, command.levels + 1)
    if not calls:
        carry_out(d, wanted, command.by, command.levels)


def ask_child(d: Deciding, token: Token, by: str, levels: int) -> None:
    """Ask for the child of a failed call to be retried as a whole."""
    assert token.called is not None
    d.effect(x.RetryChild(token.called, token.id, by, levels))


def _is_reopened(d: Deciding, command: c.RetryRun) -> bool:
    """Whether the parent asks for a retry that has happened already. Then it is told again."""
    state = d.state
    if not state.life or state.status is RunStatus.FAILED:
        return False
    parent.tell_reopened(d, command.by, command.levels)
    if state.status not in (RunStatus.RUNNING, RunStatus.PAUSED):
        parent.tell_ended(d)
    return True


# Carrying a plan out


Instead = Callable[[], None]
"""Records what happens to a failed visit instead of a new attempt: an operator skips it, or lets it jump."""


def carry_out(
    d: Deciding,
    wanted: Plan,
    by: str,
    levels: int,
    lives: dict[TokenId, int] | None = None,
    instead: tuple[TokenId, Instead] | None = None,
) -> None:
    """Take the failures back. `lives`: the calls that wait for the child they have, and how often that has been
    reopened. `instead`: a visit that makes no new attempt, and what becomes of it."""
    reopened = d.state.status is RunStatus.FAILED
    if reopened:
        _reopen_run(d, by, levels)
    _reopen_joins(d, wanted, by)
    for failure in wanted.failures.values():
        if failure.token and lives is not None and failure.token in lives:
            _wait_anew(d, d.state.tokens[failure.token], lives[failure.token])
        elif failure.token and instead is not None and failure.token == instead[0]:
            instead[1]()
        elif failure.token:
            _restart(d, d.state.tokens[failure.token], by)
    held = _restart_fallen(d, wanted, by)
    _hold_again(d, held, wanted.arrivals)
    restart_clocks(d, d.now)
    wake_all(d)
    if reopened:
        parent.tell_reopened(d, by, levels)


def _reopen_run(d: Deciding, by: str, levels: int) -> None:
    left = d.state.time_left
    d.run_resumed(by, reopened=True, levels=levels)
    if left is not None:
        timers.start(d, d.now + max(left, 0), "run")


def _reopen_joins(d: Deciding, wanted: Plan, by: str) -> None:
    """Reopen the joins, outermost first: a group around another is older."""
    failed = [(seq, f) for seq, f in wanted.failures.items() if f.target is not None]
    for seq, failure in sorted(failed, key=lambda entry: entry[1].group or 0):
        assert failure.target is not None
        d.join_reopened(failure.target, failure.group, by, item=failure.item, failure=seq)
    for group, target in sorted(wanted.joins):
        d.join_reopened(target, group, by)
    d.empty.extend(group for group in d.state.empty if group not in d.empty)


def _restart(d: Deciding, token: Token, by: str) -> None:
    d.token_retry_scheduled(token.id, token.attempt + 1, d.now, by=by)
    timers.arm(d, d.state.tokens[token.id])


def wait_for_child(d: Deciding, token: Token, life: int) -> None:
    """Let a call wait for the child it has, which was reopened so often."""
    detail = {"child": token.called, "workflow": token.workflow, "life": life}
    d.token_waiting(token.id, Waiting.SUBWORKFLOW, detail=detail)


def _wait_anew(d: Deciding, token: Token, life: int) -> None:
    """Let a failed call wait for its child again. Its clocks start over."""
    wait_for_child(d, token, life)
    timers.arm(d, token)
    suspend.deadline(d, token, d.node(token))


def _restart_fallen(d: Deciding, wanted: Plan, by: str) -> list[TokenId]:
    """Give visits that were at work a new attempt. Returns the others, which are held at joins, for `_hold_again`."""
    held = []
    for identity in sorted(wanted.tokens):
        kept = d.state.fallen[identity]
        if kept.token.held:
            held.append(identity)
        elif kept.token.mode is Mode.FORWARD:
            _restart(d, kept.token, by)
    return held


def _hold_again(d: Deciding, held: list[TokenId], arrivals: list[ArrivalId]) -> None:
    state = d.state
    for identity in held:
        waited = state.fallen[identity].arrivals
        if all(_is_open(state, a.group, a.target) for a in waited):
            detail = {"at": sorted({a.target for a in waited})}
            awaiting = _awaiting(d, waited[0].group, waited[0].target)
            d.token_waiting(identity, Waiting.SIBLINGS, awaiting=awaiting, detail=detail)
    for number in sorted(arrivals):
        arrival = state.fallen_arrivals[number]
        cancelled = state.ended[arrival.token - 1] == _CANCELLED if arrival.token else False
        if not cancelled and _is_open(state, arrival.group, arrival.target):
            awaiting = _awaiting(d, arrival.group, arrival.target)
            detail = {"at": [arrival.target]}
            d.token_waiting(TokenId(0), Waiting.SIBLINGS, awaiting=awaiting, detail=detail, arrival=arrival.id)


_CANCELLED = ENDED.index(TokenState.CANCELLED)


def _is_open(state: RunState, group: GroupId | None, target: str) -> bool:
    """Whether a join still waits: it may have been decided since the arrival went down."""
    return group is None or standing.site_of(state.groups[group], target).status == "open"


def _awaiting(d: Deciding, group: GroupId | None, target: str) -> int | None:
    if group is None:
        return None
    return live_branches(d, d.state.groups[group], standing.site_of(d.state.groups[group], target))


def restart_clocks(d: Deciding, now: int) -> None:
    """Start the clocks of joins at which a visit waits and none is running: they count from now."""
    for group in d.state.groups.values():
        for state in group.sites:
            timeout = d.graph.sites[state.index].sync.timeout_ms
            if timeout is not None and state.status == "open" and state.waiting and state.timer is None:
                timers.start_join(d, now + timeout, group.id, state.target)


def wake_all(d: Deciding) -> None:
    """Begin every pending token and evaluate every join: after a pause or an operator's retry."""
    for token in d.state.tokens.values():
        if token.state is TokenState.PENDING:
            d.ready.append(token.id)
    for group in d.state.groups:
        d.mark(group)
    d.items.update({item: None for _, item in d.state.node_joins if item is not None})

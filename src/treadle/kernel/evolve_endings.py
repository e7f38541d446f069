"""Taking an ended visit out of the state: out of every index, with one byte left behind. Shared by the folds of tokens
and groups."""

from __future__ import annotations

from typing import Any

from treadle.kernel import units
from treadle.kernel.group_state import Arrival, Group, SiteState
from treadle.kernel.members import FORWARD, MUTEX, SIBLINGS, SIGNAL, TRIGGER
from treadle.kernel.short_ways import counting
from treadle.kernel.signal_lines import join_line, join_line_by_key, leave_line
from treadle.kernel.state import ENDED, RunState, Token
from treadle.model.ids import ArrivalId, GroupId, TokenId
from treadle.model.states import Waiting

Json = Any

_CODES = {name: code for code, name in reversed(list(enumerate(ENDED)))}


def end(state: RunState, token: Token) -> None:
    """Take an ended visit out of every index; one byte (`ended`) stays."""
    identity = token.id
    del state.tokens[identity]
    state.ended[identity - 1] = _CODES[token.state]
    state.live -= 1
    for arrival in token.arrivals:
        withdraw_arrival(state, arrival)
    if not token.held:
        leave(state, token)
    if token.timers:
        drop_timers(state, token)
    if token.mutex is not None:
        release_mutex(state, token)
    if token.waiting is SIBLINGS:
        token.waiting = None
    elif token.waiting is not None:
        stop_waiting(state, token)
    token.when = None
    token.child = None


def stop_waiting(state: RunState, token: Token) -> None:
    """Take a visit out of the line it waits in."""
    if is_passive(state, token, token.waiting):
        state.passive -= 1
    if token.waiting is SIGNAL:
        leave_line(state.lines, token.detail["signal"], token.id)
    elif token.waiting is MUTEX:
        state.mutexes[token.detail["mutex"]].queue.remove(token.id)
    token.waiting = None


def leave(state: RunState, token: Token, *, counted: bool = True) -> None:
    """Take the token from its node: it has ended, or waits at a join as an arrival. Not `counted`: its groups have been
    told already."""
    state.working -= 1
    if token.mode is not FORWARD:
        return
    ref = token.node
    left = state.at_node[ref] - 1
    if left:
        state.at_node[ref] = left
    else:
        del state.at_node[ref]
    if counted and token.frames:
        units.remove_token(state, token)
    if triggers := state.graph.nodes[ref].triggers:
        for t in triggers:
            if t.definition.trigger is not None and t.definition.trigger.signal is not None:
                leave_line(state.lines, t.definition.trigger.signal, token.id)
        token.when = None
        state.watching.pop(token.id, None)


def withdraw_arrival(state: RunState, identity: ArrivalId) -> None:
    """Take out an arrival that was consumed or withdrawn."""
    arrival = state.arrivals.pop(identity)
    units.remove_arrival(state, arrival)
    if arrival.group is None:
        join = state.node_joins[arrival.target, arrival.item]
        join.held.remove(identity)
    _forget_arrival(state, arrival)


def _forget_arrival(state: RunState, arrival: Arrival) -> None:
    identity = arrival.id
    token = state.tokens.get(arrival.token)
    if token is not None:
        token.arrivals = () if token.arrivals == (identity,) else tuple(a for a in token.arrivals if a != identity)
    elif not arrival.token:
        state.live -= 1


def consume_arrivals(state: RunState, group: Group, site: SiteState) -> None:
    """Consume all arrivals at a join of the group that has been decided."""
    for arrival in counting.consume(state, group, site):
        _forget_arrival(state, arrival)


def forget_group(state: RunState, identity: GroupId) -> None:
    group = state.groups.pop(identity)
    if group.isolating:
        for branch in range(group.total):
            state.scopes.pop((identity, branch), None)
            state.spent_scopes.pop((identity, branch), None)


def drop_timers(state: RunState, token: Token, *, triggers: bool = True) -> None:
    """Forget a visit's timers; without `triggers`, those of its triggers stay, because only an attempt has ended."""
    kept = []
    for timer in token.timers:
        if not triggers and state.timers[timer].purpose == "trigger":
            kept.append(timer)
        else:
            state.timers.pop(timer, None)
    token.timers = tuple(kept)


def release_mutex(state: RunState, token: Token) -> None:
    if token.mutex is not None:
        state.mutexes[token.mutex].holders.pop(token.id, None)
        token.mutex = None


def wait_for_signal(state: RunState, token: TokenId, detail: Json) -> None:
    """Enter a waiting `signal` action into its signal's line, by its key if it has one."""
    if detail["keyed"]:
        join_line_by_key(state.lines, detail["signal"], token, detail["key"])
    else:
        join_line(state.lines, detail["signal"], token, None)


def is_passive(state: RunState, token: Token, reason: Waiting | None) -> bool:
    """Whether the token waits for something that perhaps only another token can bring: a mutex, or triggers none of
    which is a signal."""
    if reason is TRIGGER:
        return not state.graph.nodes[token.node].signalled
    return reason is MUTEX


def drop_lease(state: RunState, token: Token) -> None:
    """Forget the lease of a claim that is over or is replaced."""
    for timer in token.timers:
        if state.timers[timer].purpose == "lease":
            del state.timers[timer]
    token.timers = tuple(timer for timer in token.timers if timer in state.timers)


def drop_sync_timer(state: RunState, site: SiteState) -> None:
    """Forget the clock of a join that has been decided."""
    if site.timer is not None:
        state.timers.pop(site.timer, None)
        site.timer = None

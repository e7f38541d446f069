"""How a visit leaves the state: out of every index, with one byte left behind. Shared by the token and group folds."""

from __future__ import annotations

from treadle.kernel import units
from treadle.kernel.state import ENDED, RunState, Token
from treadle.model.ids import ArrivalId, GroupId, TokenId
from treadle.model.states import Mode, Waiting

_CODES = {name: code for code, name in enumerate(ENDED)}


def end(state: RunState, token: Token) -> None:
    """A visit has ended: it leaves every index, and one byte behind."""
    del state.tokens[token.id]
    state.ended[token.id - 1] = _CODES[token.state]
    state.live -= 1
    for arrival in token.arrivals:
        withdraw_arrival(state, arrival)
    if not token.held:
        leave(state, token)
    drop_timers(state, token)
    release_mutex(state, token)
    if is_passive(state, token, token.waiting):
        state.passive -= 1
    if token.waiting is Waiting.SIGNAL:
        forget_waiter(state, token.detail["signal"], token.id)
    elif token.waiting is Waiting.MUTEX:
        state.mutexes[token.detail["mutex"]].queue.remove(token.id)
    token.waiting = None
    token.when = None
    token.child = None


def leave(state: RunState, token: Token) -> None:
    """The token no longer stands at its node: it has ended, or waits at a join as an arrival."""
    state.working -= 1
    if token.mode is not Mode.FORWARD:
        return
    left = state.at_node[token.node] - 1
    if left:
        state.at_node[token.node] = left
    else:
        del state.at_node[token.node]
    units.remove_token(state, token)
    if state.graph.nodes[token.node].triggers:
        for t in state.graph.nodes[token.node].triggers:
            if t.definition.trigger is not None and t.definition.trigger.signal is not None:
                forget_waiter(state, t.definition.trigger.signal, token.id)
        token.when = None
        state.watching.pop(token.id, None)


def withdraw_arrival(state: RunState, identity: ArrivalId) -> None:
    """An arrival is consumed or withdrawn."""
    arrival = state.arrivals.pop(identity)
    units.remove_arrival(state, arrival)
    if arrival.group is None:
        join = state.node_joins[arrival.target, arrival.item]
        join.held.remove(identity)
    token = state.tokens.get(arrival.token)
    if token is not None:
        token.arrivals = tuple(other for other in token.arrivals if other != identity)
    elif not arrival.token:
        state.live -= 1


def forget_group(state: RunState, identity: GroupId) -> None:
    group = state.groups.pop(identity)
    if group.isolating:
        for branch in range(group.total):
            state.scopes.pop((identity, branch), None)


def drop_timers(state: RunState, token: Token, *, triggers: bool = True) -> None:
    """Forget a visit's timers; those of its triggers go on while only an attempt of it has ended."""
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


def forget_waiter(state: RunState, name: str, token: TokenId) -> None:
    rest = [waiter for waiter in state.waiters.get(name, ()) if waiter[0] != token]
    if rest:
        state.waiters[name] = rest
    else:
        state.waiters.pop(name, None)


def is_passive(state: RunState, token: Token, reason: Waiting | None) -> bool:
    """Waits for what perhaps only another token can bring: a mutex, or triggers none of which is a signal."""
    if reason is Waiting.TRIGGER:
        return not state.graph.nodes[token.node].signalled
    return reason is Waiting.MUTEX


def drop_lease(state: RunState, token: Token) -> None:
    """A claim is over, or another takes its place."""
    for timer in token.timers:
        if state.timers[timer].purpose == "lease":
            del state.timers[timer]
    token.timers = tuple(timer for timer in token.timers if timer in state.timers)

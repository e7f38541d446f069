"""Memory of what a failure took down, so that an operator's retry can bring it back exactly (6.2). Called by `evolve`
only.

A failure that nothing has handled is a `Failure`, known by the sequence number of its event. Every visit, arrival, join
and group that is cancelled because of it says so (`because`), is taken out of the run as ever, and is kept here. Three
things end that:

    the failure is taken back   an operator retries it: its events bring each thing back, one by one
    the failure is settled      a join has fired without the failed branch, or a transition has handled the fan-in's
                                failure: nothing can come back any more, and all of it is forgotten
    the run is compensated      as settled, for the whole run

Groups count the things kept inside them (`retained`), so that they and their scopes stay as long as those do.
"""

from __future__ import annotations

from treadle.kernel import units
from treadle.kernel.group_state import Arrival, Failure, Group, NodeJoinState
from treadle.kernel.state import USED, Fallen, RunState, Token
from treadle.kernel.view import join_item
from treadle.model.ids import ArrivalId, Frames, TokenId

RUN = -1
"""The run's own failure. It takes down everything that the failures of visits have left."""


def retain(state: RunState, frames: Frames) -> None:
    """Keep these groups, because something inside them is kept."""
    for group, _ in frames:
        state.groups[group].retained += 1


def let_go(state: RunState, frames: Frames) -> None:
    """Keep these groups no longer."""
    for group, _ in frames:
        state.groups[group].retained -= 1


def _failure(state: RunState, because: int) -> Failure:
    if because == RUN and RUN not in state.failures:
        state.failures[RUN] = Failure(TokenId(0))
    return state.failures[because]


# Going down


def keep_token(state: RunState, token: Token, because: int, arrivals: tuple[Arrival, ...]) -> None:
    """Keep a visit that went down with a failure, and the `arrivals` it held at joins."""
    _failure(state, because).tokens.append(token.id)
    state.fallen[token.id] = Fallen(token, because, arrivals)
    retain(state, token.frames)
    for arrival in arrivals:
        retain(state, arrival.frames)


def keep_arrival(state: RunState, arrival: Arrival, because: int) -> None:
    """Keep an arrival that went down without its visit: the visit waits at another join too, or there is none."""
    _failure(state, because).arrivals.append(arrival.id)
    state.fallen_arrivals[arrival.id] = arrival
    retain(state, arrival.frames)


def keep_closed(state: RunState, group: Group, because: int) -> None:
    """Keep how a group was before a failure closes or withdraws it."""
    failure = _failure(state, because)
    failure.closed.append((group.id, group.open, group.withdrawn))
    pin(state, failure, group)


def keep_dead(state: RunState, group: Group, target: str, because: int) -> None:
    """Keep a join that died with the branch around it."""
    failure = _failure(state, because)
    failure.joins.append((group.id, target))
    pin(state, failure, group)


def pin(state: RunState, failure: Failure, group: Group) -> None:
    """Keep a group and those around it as long as the failure can be taken back: they may be empty by then."""
    around = [group.id, *(identity for identity, _ in group.frames)]
    for identity in around:
        state.groups[identity].retained += 1
    failure.pinned.extend(around)


def _unpin(state: RunState, failure: Failure) -> None:
    for identity in failure.pinned:
        state.groups[identity].retained -= 1


# Coming back


def take_back(state: RunState, seq: int) -> None:
    """Take a failure back: its branch has not failed, and groups that it closed go on. Events of their own bring back
    everything else it took down."""
    failure = state.failures.pop(seq, None)
    state.unhandled.pop(seq, None)
    if failure is None:
        return
    if failure.fails is not None:
        group = state.groups[failure.fails[0]]
        group.failed.pop(failure.fails[1], None)
        group.failures.pop(failure.fails[1], None)
    for identity, was_open, was_withdrawn in reversed(failure.closed):
        group = state.groups[identity]
        group.open, group.withdrawn = was_open, was_withdrawn
        units.update_cursor(state, group)
    _unpin(state, failure)


def take_token(state: RunState, identity: TokenId) -> Fallen:
    """Make a visit that went down a visit of the run again. The caller puts it where it belongs."""
    fallen = state.fallen.pop(identity)
    let_go(state, fallen.token.frames)
    for arrival in fallen.arrivals:
        let_go(state, arrival.frames)
    state.tokens[identity] = fallen.token
    return fallen


def hold_again(state: RunState, token: Token, arrivals: tuple[Arrival, ...]) -> None:
    """Let a visit wait at its joins again, with its arrivals."""
    token.held = True
    token.arrivals = tuple(arrival.id for arrival in arrivals)
    for arrival in arrivals:
        _hold(state, arrival)


def hold_arrival_again(state: RunState, identity: ArrivalId) -> None:
    """Let an arrival without a visit wait at its join again. If its visit has completed since, the arrival stands alone
    now."""
    arrival = state.fallen_arrivals.pop(identity)
    let_go(state, arrival.frames)
    token = state.tokens.get(arrival.token)
    if token is not None and token.held:
        token.arrivals = (*token.arrivals, identity)
    else:
        arrival.token = TokenId(0)
        state.live += 1
    _hold(state, arrival)


def _hold(state: RunState, arrival: Arrival) -> None:
    state.arrivals[arrival.id] = arrival
    if arrival.group is None:
        arrival.item = join_item(state, arrival.frames)
    units.add_arrival(state, arrival)
    if arrival.group is None:
        key = (arrival.target, arrival.item)
        held = state.node_joins.setdefault(key, NodeJoinState(*key)).held
        held.append(arrival.id)
        held.sort()


# Becoming final


def settle(state: RunState, group: Group, *, used: bool) -> None:
    """Forget the failures of this group: none of them can be retried any more. `used`: a join went on without the
    failed branches."""
    for seq in list(group.failures.values()):
        _forget(state, seq, used)
    group.failures.clear()


def _forget(state: RunState, seq: int, used: bool) -> None:
    failure = state.failures.pop(seq)
    token = state.tokens.pop(failure.token, None)
    if token is not None:
        let_go(state, token.frames)
        if used:
            state.ended[token.id - 1] += USED
    elif failure.group is not None:
        settle(state, state.groups[failure.group], used=used)
    _unpin(state, failure)
    for identity in failure.tokens:
        if identity in state.fallen:
            _drop(state, state.fallen.pop(identity))
    for arrival in failure.arrivals:
        if arrival in state.fallen_arrivals:
            let_go(state, state.fallen_arrivals.pop(arrival).frames)


def _drop(state: RunState, fallen: Fallen) -> None:
    let_go(state, fallen.token.frames)
    for arrival in fallen.arrivals:
        let_go(state, arrival.frames)


def settle_all(state: RunState) -> None:
    """Forget all failures: the run is being undone, and nothing comes back."""
    state.failures.clear()
    state.fallen.clear()
    state.fallen_arrivals.clear()

"""Cancelling tokens, branches, nodes, groups and the whole run (2.8, A6).

A token becomes `cancelled` at once; then its worker, gate, timers and child run are told to stop. A cancelled branch
counts as ended, never as failed: nothing follows from it, but the joins around it are looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable

from treadle.kernel import records, standing
from treadle.kernel.deciding import Deciding
from treadle.kernel.defined import defining
from treadle.kernel.group_state import Group
from treadle.kernel.state import Token
from treadle.model import effects as x
from treadle.model.ids import ArrivalId, Frame, Frames, GroupId, TokenId
from treadle.model.states import GateState, TokenState, Waiting


def cancel_token(d: Deciding, token: Token, by: str, reason: str | None = None) -> None:
    """Cancel one visit."""
    frames = token.frames
    stop_outside(d, token)
    if token.id in d.state.deferred:
        records.record_deferred(d, token)
    d.token_cancelled(token.id, by, reason)
    d.touch(frames)


def stop_outside(d: Deciding, token: Token) -> None:
    """Ask for the executor, gate, timers and child run of a visit to be stopped, because the visit is about to end."""
    stop_attempt(d, token)
    clear_timers(d, token)


def stop_attempt(d: Deciding, token: Token) -> None:
    """As `stop_outside`, when only this attempt ends: the clocks of the node's triggers keep running."""
    if (
        token.state in (TokenState.DISPATCHED, TokenState.EXECUTING) and defining(d.state, token).task is not None
    ) or token.waiting is Waiting.EXTERNAL:
        d.effect(x.StopTask(token.id, token.attempt))
    if token.gate is GateState.OPEN:
        d.effect(x.CloseGate(token.id))
    if token.child is not None:
        d.effect(x.CancelChild(token.child))


def clear_timers(d: Deciding, token: Token, *, triggers: bool = True) -> None:
    """Ask for a visit's timers to be forgotten; without `triggers`, those of its triggers stay. A timer that fires all
    the same finds nothing to do."""
    for timer in token.timers:
        if triggers or d.state.timers[timer].purpose != "trigger":
            d.effect(x.ClearTimer(timer))


def cancel_units(d: Deciding, unit_ids: Iterable[int], by: str, reason: str | None = None) -> None:
    """Cancel units: live tokens, cursors, and arrivals together with the visits that wait as them."""
    for unit in unit_ids:
        lazy = standing.cursor_group(unit)
        if lazy is not None:
            withdraw_cursor(d, d.state.groups[lazy], by)
        elif unit > 0:
            token = d.state.tokens.get(TokenId(unit))
            if token is not None and token.state is not TokenState.FAILED:
                cancel_token(d, token, by, reason)
        else:
            _cancel_arrival(d, -unit, by, reason)


def withdraw_cursor(d: Deciding, group: Group, by: str) -> None:
    """Withdraw the branches of a group that have not begun."""
    if standing.unspawned(group) or group.open:
        d.group_closed(group.id, by, withdrawn=True)
        d.mark(group.id)  # it cannot grow any more: a quorum may have become unreachable


def _cancel_arrival(d: Deciding, identity: int, by: str, reason: str | None) -> None:
    arrival = d.state.arrivals.get(ArrivalId(identity))
    if arrival is None:
        return
    token = d.state.tokens.get(arrival.token)
    if token is not None and len(token.arrivals) == 1:
        cancel_token(d, token, by, reason)
    else:  # it stands alone, or its visit waits elsewhere too
        d.token_cancelled(TokenId(0), by, reason, arrival=identity)
        d.touch(arrival.frames)


def cancel_branch(d: Deciding, group: Group, branch: int, by: str, reason: str | None = None) -> None:
    """Cancel everything in one branch."""
    withdraw(d, group, standing.units_of(group, branch), by, reason)


def withdraw(d: Deciding, group: Group, unit_ids: list[int], by: str, reason: str | None = None) -> None:
    """Cancel units of a group, and close the joins of the groups they have opened inside it."""
    inner = inner_groups(d, group, unit_ids)
    cancel_units(d, unit_ids, by, reason)
    close_joins(d, inner)


def inner_groups(d: Deciding, group: Group, unit_ids: list[int]) -> list[GroupId]:
    """The groups between a group and its units, and the groups of which only a cursor exists."""
    found: dict[GroupId, None] = {}
    for unit in unit_ids:
        frames = standing.where(d.state, unit)[0]
        found.update((identity, None) for identity, _ in frames[standing.position(frames, group.id) + 1 :])
        lazy = standing.cursor_group(unit)
        if lazy is not None:
            found[lazy] = None
    return list(found)


def close_joins(d: Deciding, groups: list[GroupId]) -> None:
    """Close the open joins of these groups: the branch around them is cancelled, so they decide nothing any more. This
    holds for an acting token that was spared, too."""
    for identity in groups:
        group = d.state.groups.get(identity)
        for site in group.sites if group is not None else ():
            if site.status == "open":
                if site.timer is not None:
                    d.effect(x.ClearTimer(site.timer))
                d.join_dead(d.graph.sites[site.index].target.ref, identity)


def cancel_group_units(
    d: Deciding, group: Group, by: str, *, arrivals: bool, spared: int = 0, keep: int | None = None
) -> None:
    """Cancel the live units of a group. With `arrivals`, also those held at its joins; the branch `keep` and the unit
    `spared` stay."""
    around = {group.id, *(identity for identity, _ in group.frames)}
    withdraw_cursor(d, group, by)
    for branch in list(group.members):
        if branch != keep:
            inside = [u for u in standing.units_of(group, branch) if u != spared]
            chosen = inside if arrivals else [u for u in inside if held_at(d, u) not in around]
            withdraw(d, group, chosen, by)


def held_at(d: Deciding, unit: int) -> GroupId | None:
    """The group at whose join an arrival is held. There the arrival has done its part for that group and for all groups
    inside it."""
    arrival = d.state.arrivals.get(ArrivalId(-unit))
    return arrival.group if arrival is not None else None


def cancel_all(d: Deciding, by: str, reason: str | None = None) -> None:
    """Cancel every live token of the run, and the arrivals that stand alone."""
    for token in list(d.state.tokens.values()):
        if token.state not in (TokenState.FAILED, TokenState.TIMED_OUT):
            cancel_token(d, token, by, reason)
    for identity in list(d.state.arrivals):
        _cancel_arrival(d, identity, by, reason)
    for group in list(d.state.cursors):
        withdraw_cursor(d, d.state.groups[group], by)


def cancel_nodes(d: Deciding, refs: list[str], item: Frame | None, by: str, spared: int = 0) -> None:
    """Cancel the tokens of the item at these nodes, whether they are held at the node's join, pending, executing or
    waiting."""
    wanted = set(refs)
    for unit in standing.item_units(d.state, item):
        if unit > 0:
            token = d.state.tokens[TokenId(unit)]
            if token.node in wanted and unit != spared and not token.held:
                cancel_token(d, token, by)
        else:
            arrival = d.state.arrivals.get(ArrivalId(-unit))
            if arrival is not None and arrival.group is None and arrival.target in wanted:
                _cancel_arrival(d, -unit, by, None)


def groups_named(d: Deciding, name: str, frames: Frames, item: Frame | None) -> list[Group]:
    """Every group of that name in the item, and the one the acting token is itself inside."""
    key = d.graph.group_key(name)
    inside = {identity for identity, _ in frames}
    found = []
    for group in list(d.state.groups.values()):
        if key in group.names and (group.id in inside or item is None or item in group.frames):
            found.append(group)
    return found

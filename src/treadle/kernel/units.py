"""Counting units: the counters behind every join, which say what can still arrive where. A move costs O(frames × joins
of the group).

Owns `members`, `units`, `spawned`, and of each site `live`, `waiting` and `arrived`. Called by `evolve` only.

A unit is live for a join of a group it is in if it can reach the join by the static graph. Three exceptions, each a
line below:
 1. an arrival held at a join of group G will leave G and all inside it: it is live for no join of those;
 2. outside its group an abandoned branch's units count for nothing (2.16): "an outer join never waits for stragglers
    nobody wants";
 3. a branch whose arrival is held counts as arrived only while none of its units is live.

A group whose branches are not all spawned yet is a unit too, its *cursor*: for joins around it a token is still to
come.
"""

from __future__ import annotations

from treadle.kernel.group_state import Arrival, Group, SiteState
from treadle.kernel.standing import (
    CURSOR,
    branch_in,
    entry_mask,
    is_standing,
    position,
    site_of,
    units_of,
    unspawned,
    where,
)
from treadle.kernel.state import RunState, Token
from treadle.model.ids import ArrivalId, Frames


def add_token(state: RunState, token: Token) -> None:
    """Count a token inside groups that has come to stand at its node."""
    _count(state, token.id, token.frames, state.graph.nodes[token.node].bit, 1)


def remove_token(state: RunState, token: Token) -> None:
    """Count out a token inside groups that has ended or turned into arrivals."""
    _count(state, token.id, token.frames, state.graph.nodes[token.node].bit, -1)


def add_arrival(state: RunState, arrival: Arrival) -> None:
    """Count an arrival that is held at a join."""
    _count_arrival(state, arrival, 1)
    if arrival.group is None:
        return
    group = state.groups[arrival.group]
    site = site_of(group, arrival.target)
    wait_at(site, branch_in(arrival.frames, group.id), arrival.id)


def wait_at(site: SiteState, branch: int, arrival: ArrivalId) -> None:
    held = site.waiting.get(branch)
    if held is None:
        site.waiting[branch] = (arrival,)
        if branch not in site.live:
            site.arrived += 1
    else:
        site.waiting[branch] = (*held, arrival)


def remove_arrival(state: RunState, arrival: Arrival) -> None:
    """Count out an arrival that was consumed by its join or withdrawn."""
    _count_arrival(state, arrival, -1)
    if arrival.group is None:
        return
    group = state.groups[arrival.group]
    site = site_of(group, arrival.target)
    branch = branch_in(arrival.frames, group.id)
    held = site.waiting[branch]
    held = () if held == (arrival.id,) else tuple(other for other in held if other != arrival.id)
    if held:
        site.waiting[branch] = held
    else:
        del site.waiting[branch]
        if branch not in site.live:
            site.arrived -= 1


def abandon(state: RunState, group: Group, branches: list[int]) -> None:
    """Abandon branches: no join outside waits for their units any more."""
    for branch in branches:
        if branch in group.abandoned:
            continue
        for unit in units_of(group, branch):
            frames, bit, popped = where(state, unit)
            place = position(frames, group.id)
            if not any(index in state.groups[inner].abandoned for inner, index in frames[place + 1 :]):
                _count_live(state, frames[:place], bit, -1, popped)
        group.abandoned[branch] = None


def recount(state: RunState) -> None:
    """Count anew what every join can still expect, because the run has another graph. Members and waiting arrivals stay
    as they are."""
    for group in state.groups.values():
        for site in group.sites:
            site.live = {}
            site.arrived = len(site.waiting)
    standing = [token.id for token in state.tokens.values() if is_standing(token)]
    for unit in (*standing, *(-arrival for arrival in state.arrivals), *(CURSOR - group for group in state.cursors)):
        frames, bit, popped = where(state, unit)
        inside = frames[position(frames, popped) :] if popped is not None else ()
        if not any(index in state.groups[identity].abandoned for identity, index in inside):
            _count_live(state, frames, bit, 1, popped)


def update_cursor(state: RunState, group: Group) -> None:
    """Update the cursor of a group: while branches are still to begin, it stands where they will begin, for all joins
    around."""
    pending = unspawned(group) > 0
    if pending == (group.id in state.cursors):
        return
    if pending:
        state.cursors[group.id] = None
    else:
        del state.cursors[group.id]
    if group.frames:
        _count(state, CURSOR - group.id, group.frames, entry_mask(state, group), 1 if pending else -1)


def _count_arrival(state: RunState, arrival: Arrival, delta: int) -> None:
    bit = state.graph.nodes[arrival.target].bit
    if arrival.group is not None:
        stays = position(arrival.frames, arrival.group)
    else:
        stays = arrival.frames.index(arrival.item) + 1 if arrival.item is not None else 0
    _count(state, -arrival.id, arrival.frames, bit, delta, popped=arrival.group, stays=stays)


def _count(
    state: RunState,
    unit: int,
    frames: Frames,
    bit: int,
    delta: int,
    *,
    popped: int | None = None,
    stays: int | None = None,
) -> None:
    """Count a unit into every group around it, or out of them.

    `popped` is the group it is about to leave, `stays` how many of the outer frames it will keep: there it counts as in
    flight."""
    groups = state.groups
    counting = popped is None
    wanted = True
    depth = len(frames)
    kept = depth if stays is None else stays
    for identity, index in reversed(frames):
        depth -= 1
        group = groups[identity]
        if delta > 0:
            join_members(state, group, index, unit)
        else:
            _leave_members(state, group, index, unit)
        if group.max_in_flight is not None and depth < kept:
            count_active(group, index, delta)
        if counting and wanted and group.sites:
            adjust(state, group, index, bit, delta)
        if identity == popped:
            counting = True
        if index in group.abandoned:
            wanted = False


def count_active(group: Group, index: int, delta: int) -> None:
    """Count the units of a branch of a lazy group that are not held at a join, whichever group's join it is."""
    count = group.active.get(index, 0) + delta
    if count:
        group.active[index] = count
    else:
        del group.active[index]


def _count_live(state: RunState, frames: Frames, bit: int, delta: int, popped: int | None) -> None:
    """As `_count`, but membership stays: only the joins that wait for the unit change."""
    if popped is not None and any(identity == popped for identity, _ in frames):
        frames = frames[: position(frames, popped)]
    for identity, index in reversed(frames):
        group = state.groups[identity]
        if group.sites:
            adjust(state, group, index, bit, delta)
        if index in group.abandoned:
            return


def adjust(state: RunState, group: Group, index: int, bit: int, delta: int) -> None:
    sites = state.graph.sites
    for site in group.sites:
        if not sites[site.index].reach & bit:
            continue
        live = site.live
        before = live.get(index, 0)
        after = before + delta
        if after:
            live[index] = after
            if not before and index in site.waiting:
                site.arrived -= 1
        else:
            del live[index]
            if index in site.waiting:
                site.arrived += 1


def join_members(state: RunState, group: Group, index: int, unit: int) -> None:
    members = group.members.get(index)
    if members is None:
        group.members[index] = unit
    elif isinstance(members, int):
        group.members[index] = {members: None, unit: None}
    else:
        members[unit] = None
    group.units += 1
    if group.units == 1:
        state.idle.pop(group.id, None)
    if index >= group.spawned:
        group.spawned = index + 1


def _leave_members(state: RunState, group: Group, index: int, unit: int) -> None:
    members = group.members[index]
    if isinstance(members, int):
        del group.members[index]
    else:
        del members[unit]
        if len(members) == 1:
            group.members[index] = next(iter(members))
    group.units -= 1
    if not group.units:
        state.idle[group.id] = None

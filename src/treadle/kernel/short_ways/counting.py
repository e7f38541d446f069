"""Short ways of folding, for the counters behind joins, and of seeing that a join need not be looked at. See the
package's docstring.
"""

from __future__ import annotations

from treadle.kernel.group_state import Arrival, Group, SiteState
from treadle.kernel.standing import site_of
from treadle.kernel.state import RunState, Token
from treadle.kernel.units import add_token as add_token_to_all
from treadle.kernel.units import adjust, count_active, join_members, remove_arrival, wait_at


def add_token(state: RunState, token: Token) -> None:
    """A token has come to stand at its node, in only one group. Full rule: `units.add_token`."""
    frames = token.frames
    if len(frames) != 1:
        add_token_to_all(state, token)
        return
    identity, index = frames[0]
    group = state.groups[identity]
    join_members(state, group, index, token.id)
    if group.max_in_flight is not None:
        count_active(group, index, 1)
    if group.sites:
        adjust(state, group, index, state.graph.nodes[token.node].bit, 1)


def turn(state: RunState, token: Token, arrival: Arrival) -> bool:
    """A token that is alone in a branch of the only group around it turns into an arrival at that group's join. Full
    rule: `units.add_arrival`, then `units.remove_token`. Returns False, and has changed nothing, if it is not alone."""
    frames = token.frames
    if len(frames) != 1 or arrival.frames != frames or arrival.group != frames[0][0]:
        return False
    identity, index = frames[0]
    group = state.groups[identity]
    if group.members.get(index) != token.id:
        return False
    group.members[index] = -arrival.id
    if group.max_in_flight is not None:
        count_active(group, index, -1)
    site = site_of(group, arrival.target)
    if len(group.sites) == 1 and site.live.get(index) == 1 and index not in site.waiting:  # no other join to tell
        del site.live[index]
        site.waiting[index] = (arrival.id,)
        site.arrived += 1
    else:
        wait_at(site, index, arrival.id)
        adjust(state, group, index, state.graph.nodes[token.node].bit, -1)
    return True


def consume(state: RunState, group: Group, site: SiteState) -> list[Arrival]:
    """Every arrival waiting at a join of the group is consumed. Full rule: `units.remove_arrival` for each of them."""
    arrivals, members = state.arrivals, group.members
    consumed = [arrivals.pop(identity) for held in site.waiting.values() for identity in held]
    if group.frames:
        for arrival in consumed:
            remove_arrival(state, arrival)
        return consumed
    for arrival in consumed:
        frames = arrival.frames
        index = frames[0][1]
        if len(frames) == 1 and members[index] == -arrival.id:
            del members[index]
            group.units -= 1
            del site.waiting[index]
            if index not in site.live:
                site.arrived -= 1
        else:
            remove_arrival(state, arrival)
    if consumed and not group.units:
        state.idle[group.id] = None
    return consumed


def rests(group: Group) -> bool:
    """Whether nothing about a group can be decided now: its only join waits for all, a branch can still come, and none
    is left to begin. Full rule: `join.evaluate`, which would find nothing to do."""
    if not group.patient or group.failed or group.open or group.spawned != group.total or len(group.sites) != 1:
        return False
    site = group.sites[0]
    return site.status == "open" and bool(site.live)

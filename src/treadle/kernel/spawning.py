"""Spawning the branches of a group: at once, or as many as `max_in_flight` allows (2.3), never more visits than the run
may have."""

from __future__ import annotations

from treadle.kernel import deliver
from treadle.kernel.deciding import Deciding
from treadle.kernel.group_state import Group
from treadle.kernel.limits import check_tokens
from treadle.kernel.route import Origin
from treadle.kernel.short_ways import moves
from treadle.kernel.standing import unspawned
from treadle.kernel.view import transition_of


def spawn_branches(d: Deciding, group: Group, origin: Origin | None = None) -> None:
    """Begin as many branches of a group as it allows: all, or up to `max_in_flight`."""
    if origin is None:
        node = d.graph.nodes[group.node]
        origin = Origin(group.origin, node, group.path, group.frames, group.loops, group.last_error)
    width = len(group.transitions) if group.shared else 1
    first = d.graph.transitions[group.transitions[0]]
    if first.bears and width == 1 and not group.bounds and group.max_in_flight is None and d.state.entity is None:
        if unspawned(group):
            moves.begin_all(d, group, origin, first)
        return
    while unspawned(group) and (group.max_in_flight is None or in_flight(group) < group.max_in_flight):
        index = group.spawned
        frames = (*group.frames, (group.id, index))
        for place in range(width):
            t = d.graph.transitions[transition_of(group, index) if width == 1 else group.transitions[place]]
            if t.site is None and t.target.definition.join is None:
                check_tokens(d, origin, t, 1)  # a lazy branch begins later than its group was counted
            path = f"{group.path}.{group.node}.{group.ordinal + index * width + place}"
            deliver.deliver(d, t, origin, frames, path)


def in_flight(group: Group) -> int:
    """Branches that are alive and not yet held at a join."""
    return len(group.active) if group.max_in_flight is not None else len(group.members)

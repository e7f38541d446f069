"""Bringing a group's branches to life: at once, or as many as `max_in_flight` allows (2.3), never more visits than the
run may have."""

from __future__ import annotations

from treadle.graph.execution_graph import GraphTransition
from treadle.kernel import deliver
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.group_state import Group
from treadle.kernel.route import Origin
from treadle.kernel.standing import unspawned
from treadle.kernel.view import transition_of
from treadle.model.errors import Error


def spawn_branches(d: Deciding, group: Group, origin: Origin | None = None) -> None:
    """Bring as many branches of a group to life as it allows: all, or up to `max_in_flight`."""
    if origin is None:
        node = d.graph.nodes[group.node]
        origin = Origin(group.origin, node, group.path, group.frames, group.loops, group.last_error)
    width = len(group.transitions) if group.shared else 1
    first = d.graph.transitions[group.transitions[0]]
    if first.bears and width == 1 and not group.bounds and group.max_in_flight is None and d.state.entity is None:
        if unspawned(group):
            _bear_all(d, group, origin, first)
        return
    while unspawned(group) and (group.max_in_flight is None or in_flight(group) < group.max_in_flight):
        index = group.spawned
        frames = (*group.frames, (group.id, index))
        for place in range(width):
            t = d.graph.transitions[transition_of(group, index) if width == 1 else group.transitions[place]]
            if t.site is None and t.target.definition.join is None:
                check_tokens(d, origin, t, 1)  # a lazy branch comes later than its group was counted
            path = f"{group.path}.{group.node}.{group.ordinal + index * width + place}"
            deliver.deliver(d, t, origin, frames, path)


def _bear_all(d: Deciding, group: Group, origin: Origin, t: GraphTransition) -> None:
    """The commonest: every branch begins at once, with a visit of the same node, as plain as can be."""
    state = d.state
    limit = d.graph.definition.limits.max_tokens_per_run
    identity, around, stem, ordinal = group.id, group.frames, f"{group.path}.{group.node}.", group.ordinal
    ref, via, by = t.target.ref, t.id, origin.token or None
    why = t.condition.text if t.condition is not None else None
    loops, error = origin.loops, origin.last_error
    for index in range(group.spawned, group.total):
        if state.visits >= limit:
            check_tokens(d, origin, t, 1)  # it may come later than its group was counted
        frames = (*around, (identity, index))
        path = f"{stem}{ordinal + index}"
        d.ready.append(d.token_created(ref, path, frames, via, by, why=why, last_error=error, loops=loops))


def in_flight(group: Group) -> int:
    """Branches that are alive and not yet held at a join."""
    return len(group.active) if group.max_in_flight is not None else len(group.members)


def check_tokens(d: Deciding, origin: Origin, transition: GraphTransition, count: int) -> None:
    """`max_tokens_per_run` counts every visit ever created."""
    limit = d.graph.definition.limits.max_tokens_per_run
    if d.state.visits + count > limit:
        raise RunFails(limit_error("max_tokens_per_run", limit, d.state.visits + count, origin, transition))


def limit_error(name: str, limit: int, value: int, origin: Origin, transition: GraphTransition) -> Error:
    """How a run fails that asks for more than it may."""
    return Error(
        "LIMIT_EXCEEDED",
        f"{name} is {limit} and transition {transition.id!r} would make it {value}; raise limits.{name} or spawn less",
        origin.node.ref,
        origin.path,
    )

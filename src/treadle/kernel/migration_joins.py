"""Checks of a migration at fan-outs and joins: nodes in another nesting, groups without their fan-out,
arrivals without their join (6.5)."""

from __future__ import annotations

from treadle.graph.jumps import Stack, fan_out_of, stacks_of
from treadle.kernel.group_state import Arrival, Group
from treadle.kernel.migration_parts import Obstacles, arrivals, groups, visits
from treadle.kernel.renaming import Renaming
from treadle.kernel.state import RunState
from treadle.kernel.view import group_name
from treadle.model.definition import NodeJoin, Strategy
from treadle.model.ids import Frames


def check_nesting(state: RunState, names: Renaming, found: Obstacles) -> None:
    """A visit's node that lies inside other fan-outs than the visit."""
    if not state.groups and not any(fan_out_of(t) for t in names.new.transitions.values()):
        return
    before, after = stacks_of(names.old), stacks_of(names.new)
    for token in visits(state):
        node = names.node(token.node)
        if token.held or node is None:
            continue
        known, possible = _bare(before[token.node]), _bare(after[node.ref])
        if _stack(state, token.frames, None) not in known:
            continue
        here = _stack(state, token.frames, names)
        if here is not None and here not in possible:
            place = f"node {token.node}" if node.ref == token.node else f"node {token.node} mapped to {node.ref}"
            inside = " or ".join(sorted(map(_told, possible))) or "no fan-out: it cannot be reached"
            text = f"{node.ref!r} lies in another nesting: the visit is inside {_told(here)}, the node inside {inside}"
            found.add(place, text, token.id)


def _stack(state: RunState, frames: Frames, names: Renaming | None) -> Stack | None:
    """The fan-outs around a visit as the static graph names them; None if one of them is gone."""
    stack: Stack = ()
    for identity, _ in frames:
        group = state.groups[identity]
        if group.names[0].startswith("node:"):
            continue
        if names is None:
            made = fan_out_of(state.graph.transitions[group.transitions[0]])
        else:
            t = names.transition(group.transitions[0])
            made = fan_out_of(t) if t is not None else None
        if made is None:
            return None
        stack = (*stack, made)
    return stack


def _bare(stacks: set[Stack]) -> set[Stack]:
    """The stacks without the groups that only joins on a node make (A1)."""
    return {tuple(group for group in stack if not group.startswith("node:")) for stack in stacks}


def _told(stack: Stack) -> str:
    return " in ".join(repr(group.split(":", 1)[1]) for group in reversed(stack)) or "none"


def check_groups(state: RunState, names: Renaming, found: Obstacles) -> None:
    """A group whose fan-out transition is gone, or makes no group any more."""
    for group in groups(state):
        forks = group.names[0].startswith("node:")
        if forks and names.node(group.node) is None:
            found.add(f"group {group_name(group)}", f"the group of {group.node!r} is under way, and that node is gone")
            continue
        for name in group.transitions:
            t = names.transition(name)
            place = f"group {group_name(group)}"
            if t is None:
                found.add(place, f"the group is under way, and its fan-out transition {name!r} is gone")
            elif not forks and fan_out_of(t) is None:
                found.add(place, f"the group is under way, and its transition {t.id!r} makes no group any more")


def check_arrivals(state: RunState, names: Renaming, found: Obstacles) -> None:
    """An arrival that waits at a join which has gone, or has another target or strategy."""
    for arrival in arrivals(state):
        problem = _at_node(arrival, names) if arrival.group is None else _at_join(state, arrival, names)
        if problem is not None:
            found.add(f"join at {arrival.target}", problem, arrival.token)


def _at_node(arrival: Arrival, names: Renaming) -> str | None:
    before = names.old.nodes[arrival.target].definition.join
    node = names.node(arrival.target)
    after = node.definition.join if node is not None else None
    if after is None:
        return f"the join of node {arrival.target!r} has gone, and an arrival waits there"
    if before is not None and (before.kind, before.count) != (after.kind, after.count):
        return f"the join of node {arrival.target!r} was {_kind(before)} and is {_kind(after)}; an arrival waits there"
    return None


def _kind(join: NodeJoin) -> str:
    return f"{join.kind}: {join.count}" if join.count else join.kind


def _at_join(state: RunState, arrival: Arrival, names: Renaming) -> str | None:
    assert arrival.group is not None
    group = state.groups[arrival.group]
    what = f"the join of {group_name(group)!r} at {arrival.target!r}"
    site = names.site(group.names, arrival.target)
    if site is None:
        others = [site.target.ref for site in names.new.sites_of(names.names(group.names))]
        if others:
            return f"{what} has another target, {', '.join(map(repr, others))}, and an arrival waits there"
        return f"{what} has gone, and an arrival waits there"
    before = _strategy(state, group, arrival.target)
    if before is not None and before != site.sync.strategy:
        text = f"{what} has another strategy: {_strategy_told(before)} was, {_strategy_told(site.sync.strategy)} is"
        return f"{text}; an arrival waits there"
    return None


def _strategy(state: RunState, group: Group, target: str) -> Strategy | None:
    for site in group.sites:
        if site.target == target:
            return state.graph.sites[site.index].sync.strategy
    return None


def _strategy_told(strategy: Strategy) -> str:
    if strategy.expr is not None:
        return f"cel {strategy.expr!r}"
    return f"{strategy.kind} {strategy.count}" if strategy.count else strategy.kind

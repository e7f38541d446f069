"""Reachability over the static graph, as bit masks: bit i stands for the node with index i.

Conditions are disregarded; failure edges and triggers are edges like any other.
"""

from __future__ import annotations

from treadle.graph.execution_graph import GraphNode, GraphTransition, JoinSite


def fill_reach(nodes: dict[str, GraphNode]) -> None:
    """`reach` of every node: all nodes one hop or more away. A fixed point; graphs are small and this is deploy
    time."""
    successors = {node: _successor_mask(node) for node in nodes.values()}
    for node, mask in successors.items():
        node.reach = mask
    by_index = list(nodes.values())
    changed = True
    while changed:
        changed = False
        for node in by_index:
            mask = node.reach
            for other in by_index:
                if mask >> other.index & 1:
                    mask |= other.reach
            if mask != node.reach:
                node.reach = mask
                changed = True


def _successor_mask(node: GraphNode) -> int:
    mask = 0
    for tiers in (node.success, node.failure):
        for tier in tiers:
            for transition in tier:
                mask |= transition.target.bit
    for transition in node.triggers:
        mask |= transition.target.bit
    return mask


def fill_site_reach(transitions: tuple[GraphTransition, ...], sites: tuple[JoinSite, ...]) -> None:
    """`reach` of every join site: from which nodes a member of the group can still arrive.

    A synchronization on the same group pops the frame, so no path through it leads a *member* here.
    """
    for site in sites:
        mask = 0
        for t in transitions:
            if t.site is site:
                mask |= t.source.bit
        passable = [t for t in transitions if t.site is None or t.site.key != site.key]
        changed = True
        while changed:
            changed = False
            for t in passable:
                if mask & t.target.bit and not mask & t.source.bit:
                    mask |= t.source.bit
                    changed = True
        site.reach = mask


def reach_without(node: GraphNode, blocked: frozenset[str]) -> int:
    """Nodes reachable from `node` when the transitions `blocked` can no longer be taken (loops at their limit)."""
    mask = 0
    frontier = [node]
    while frontier:
        here = frontier.pop()
        for tiers in (here.success, here.failure, (here.triggers,)):
            for tier in tiers:
                for t in tier:
                    if t.id not in blocked and not mask & t.target.bit:
                        mask |= t.target.bit
                        frontier.append(t.target)
    return mask

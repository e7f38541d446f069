"""Reachability over the static graph, as bit masks: bit i stands for the node with index i.

Conditions are disregarded; failure edges and triggers are edges like any other.
"""

from __future__ import annotations

from treadle.graph.execution_graph import GraphNode, GraphTransition, JoinSite


def fill_reach(nodes: dict[str, GraphNode]) -> None:
    """Fill `reach` of every node: all nodes one hop or more away.

    A work list: a node whose mask has grown makes its predecessors look again. Starting with the nodes last met by a
    depth-first walk, an acyclic graph is done in one pass.
    """
    successors = {node.ref: _successors(node) for node in nodes.values()}
    predecessors: dict[str, set[str]] = {ref: set() for ref in nodes}
    for ref, targets in successors.items():
        for target in targets:
            predecessors[target].add(ref)
    waiting = dict.fromkeys(_postorder(successors))
    while waiting:
        ref = next(iter(waiting))
        del waiting[ref]
        mask = 0
        for target in successors[ref]:
            mask |= nodes[target].bit | nodes[target].reach
        if mask != nodes[ref].reach:
            nodes[ref].reach = mask
            waiting.update(dict.fromkeys(predecessors[ref]))


def _successors(node: GraphNode) -> list[str]:
    tiers = (*node.success, *node.failure, node.triggers)
    return list(dict.fromkeys(t.target.ref for tier in tiers for t in tier))


def _postorder(successors: dict[str, list[str]]) -> list[str]:
    """Every node after those it leads to, as far as cycles allow."""
    seen: set[str] = set()
    order: list[str] = []
    for root in successors:
        stack = [(root, iter(successors[root]))] if root not in seen else []
        seen.add(root)
        while stack:
            ref, ahead = stack[-1]
            for target in ahead:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(successors[target])))
                    break
            else:
                order.append(ref)
                stack.pop()
    return order


def fill_site_reach(transitions: tuple[GraphTransition, ...], sites: tuple[JoinSite, ...]) -> None:
    """Fill `reach` of every join site: the nodes from which a member of the group can still arrive.

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


def fill_resets(transitions: tuple[GraphTransition, ...]) -> None:
    """Fill `resets` of every transition: the `loop`s whose head it enters from outside their body.

    The body of a loop is its head and every node that leads back to the loop's transition without passing the head;
    loops with one head are one loop, or each would begin the other anew for ever.
    """
    loops = [t for t in transitions if t.definition.loop_max_iterations is not None]
    bodies: dict[str, int] = {}
    for loop in loops:
        bodies[loop.target.ref] = bodies.get(loop.target.ref, 0) | loop_body(loop)
    for loop in loops:
        for t in transitions:
            if t.target is loop.target and not bodies[loop.target.ref] & t.source.bit:
                t.resets = (*t.resets, loop.id)


def loop_body(loop: GraphTransition) -> int:
    """The nodes of a loop, as a mask."""
    head = loop.target
    body = head.bit | loop.source.bit
    frontier = [loop.source] if loop.source is not head else []
    while frontier:
        for t in frontier.pop().inbound:
            if not body & t.source.bit:
                body |= t.source.bit
                frontier.append(t.source)
    return body

"""The fan-outs that a token at a node may be inside of, by the static graph: an operator's jump stays inside the same
ones, and so does a visit whose run is migrated. Groups that joins make of a node's dispatch (A1) count, too.

The answer is found when it is asked for and kept nowhere. A *stack* is a tuple of group names, outermost first, as
`Group.names` has them: one name for each fan-out whose join has not been passed. A node has several stacks if its
tokens may come from different places. Conditions are disregarded.
"""

from __future__ import annotations

from heapq import heappop, heappush

from treadle.graph.execution_graph import ExecutionGraph, GraphNode, GraphTransition

Stack = tuple[str, ...]

DEPTH_MAX = 8
"""A loop that enters a fan-out again before its join nests for ever; nobody nests this deep on purpose."""
STACKS_MAX = 100
"""Stacks that are looked at for one node, the shortest first: loops through several fan-outs nest them in any order, in
more ways than anybody could count."""


def stacks_of(graph: ExecutionGraph) -> dict[str, set[Stack]]:
    """The stacks at every node that can be reached."""
    found: dict[str, set[Stack]] = {ref: set() for ref in graph.nodes}
    todo: list[tuple[int, Stack, str]] = []
    """By length, then by what they are: no order in memory decides which are left out."""

    def look(node: GraphNode, stack: Stack) -> None:
        if stack not in found[node.ref]:
            heappush(todo, (len(stack), stack, node.ref))

    for node in graph.start:
        look(node, ())
    while todo:
        _, stack, ref = heappop(todo)
        node = graph.nodes[ref]
        here = found[ref]
        if stack in here or len(stack) > DEPTH_MAX or len(here) == STACKS_MAX:
            continue
        if node.definition.join is not None:  # behind its own join a token has the frames that all merged tokens share
            for other in here:
                look(node, _shared(stack, other))
        here.add(stack)
        for tier in (*node.success, *node.failure, node.triggers):
            for t in tier:
                look(t.target, _behind(graph, t, stack))
    return found


def _behind(graph: ExecutionGraph, t: GraphTransition, stack: Stack) -> Stack:
    """The stack behind a transition: with the groups it opens, without those its join closes."""
    if t.source.forks:
        stack = (*stack, f"node:{t.source.ref}")
    made = fan_out_of(t)
    if made is not None:
        stack = (*stack, made)
    if t.site is not None:
        key = t.site.key
        named = graph.transitions.get(key.removeprefix("transition:")) if key.startswith("transition:") else None
        wanted = _name(named) if named is not None else key
        for place in range(len(stack) - 1, -1, -1):
            if stack[place] == wanted:
                return stack[:place]
    return stack


def fan_out_of(t: GraphTransition) -> str | None:
    """The name of the group that a transition makes; None if it makes none."""
    return _name(t) if t.replicates or t.definition.sibling_group is not None else None


def _name(t: GraphTransition) -> str:
    """The name of the group a transition makes: its declared name, else the transition's id."""
    name = t.definition.sibling_group
    return f"name:{name}" if name is not None else f"transition:{t.id}"


def _shared(one: Stack, other: Stack) -> Stack:
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return one[:count]

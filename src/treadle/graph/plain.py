"""Marks for the kernel's short ways: computed once per version, so that the commonest moves look at one mark instead of
ten conditions.

A mark never changes what a graph means. `kernel.short_ways` has a short way for everything marked; the full rules hold
for everything, and both make the same history.
"""

from __future__ import annotations

from treadle.graph.execution_graph import ExecutionGraph, GraphTransition


def mark_plain(graph: ExecutionGraph) -> None:
    """Set the marks `bears`, `bare`, `prompt`, `next` and `meets`."""
    for t in graph.transitions.values():
        t.bears = (
            t.site is None
            and t.target.definition.join is None
            and t.target.definition.mutex is None
            and not t.target.triggers
            and t.definition.loop_max_iterations is None
            and not t.resets
        )
    for node in graph.nodes.values():
        definition = node.definition
        node.bare = node.input is None and not isinstance(definition.input_mapping, str) and not node.edge_mapped
        node.prompt = (
            node.task is not None
            and node.suspends is None
            and node.native is None
            and node.deadline_ms is None
            and not node.triggers
            and definition.mutex is None
            and definition.queue is None
            and definition.concurrency is None
        )
        if len(node.success) == 1 and len(node.success[0]) == 1 and not node.forks:
            t = node.success[0][0]
            if _is_plain(t) and t.site is not None:
                node.meets = t
            elif _is_plain(t) and t.target.definition.join is None:
                node.next = t


def _is_plain(t: GraphTransition) -> bool:
    definition = t.definition
    return (
        t.condition is None
        and not t.replicates
        and definition.sibling_group is None
        and definition.loop_max_iterations is None
        and definition.cancels is None
        and t.source.definition.mutex is None
        and t.source.definition.compensate is None
        and t.source.definition.terminates is None
        and not t.resets
    )

"""Sections of a drawing: which of them holds a node or an edge.

Owns the reading of a drawing's `sections`. A section is a row with an `id`. Its nodes are those that its `nodes` lists,
or whose own row in the drawing names the section as `parentId` (React Flow). A drawing is kept as it was given, so
anything in it may have another shape: what cannot be read is left out.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import ExecutionGraph

Json = Any


def inside(drawing: Json, graph: ExecutionGraph) -> dict[tuple[str, str], str]:
    """The places of a workflow that lie in a section, as kind and name. An edge belongs to the section it leaves, the
    edge that leads into a start node to that node's."""
    by_node = sections_of_nodes(drawing)
    found = {("node", ref): section for ref, section in by_node.items() if ref in graph.nodes}
    for transition in graph.transitions.values():
        if transition.source.ref in by_node:
            found["edge", transition.id] = by_node[transition.source.ref]
    for start in graph.start:
        if start.ref in by_node:
            found["edge", f"->{start.ref}"] = by_node[start.ref]
    return found


def sections_of_nodes(drawing: Json) -> dict[str, str]:
    """Node → the id of its section."""
    sections = drawing.get("sections") if isinstance(drawing, dict) else None
    rows = [row for row in sections if _named(row)] if isinstance(sections, list) else []
    known = {row["id"] for row in rows}
    found: dict[str, str] = {}
    for ref, row in _rows(drawing):
        parent = row.get("parentId") or row.get("parentNode")
        if isinstance(parent, str) and parent in known:
            found[ref] = parent
    for row in rows:
        nodes = row.get("nodes")
        for ref in nodes if isinstance(nodes, list) else ():
            if isinstance(ref, str):
                found[ref] = row["id"]
    return found


def _named(row: Json) -> bool:
    return isinstance(row, dict) and isinstance(row.get("id"), str)


def _rows(drawing: Json) -> list[tuple[str, dict[str, Json]]]:
    """The nodes of a drawing: a list of rows with ids, or rows by name."""
    nodes = drawing.get("nodes") if isinstance(drawing, dict) else None
    if isinstance(nodes, list):
        return [(row["id"], row) for row in nodes if _named(row)]
    return [(ref, row) for ref, row in nodes.items() if isinstance(row, dict)] if isinstance(nodes, dict) else []

"""A workflow as lines of text: each node with its action, and below it its transitions."""

from __future__ import annotations

from typing import Any

from treadle.display.layout import Box, EdgeLine, lay_out
from treadle.display.words import TEXT_MAX, WHOLE, badges, describe, edge_words, joins, kind_of
from treadle.graph.execution_graph import ExecutionGraph, GraphNode


def graph_text(graph: ExecutionGraph, most: int = TEXT_MAX) -> str:
    """● a start, ◉ an end, ⇒ several tokens, → one, ⇢ on a trigger. `most`: characters of a node's or edge's label."""
    rows: list[tuple[str, str]] = []
    for node in _from_top(graph):
        mark = "●" if node in graph.start else "◉" if node.terminal else "○"
        heads = [f"joins {head}" for head in joins(node, graph, most)]
        said = [text for text in (describe(node, most), *heads, " ".join(badges(node))) if text]
        rows.append((f"{mark} {_line(node.ref)}", "; ".join(said)))
        for t in graph.transitions.values():
            if t.source is node:
                arrow = "⇢" if t.definition.trigger is not None else "⇒" if t.replicates else "→"
                rows.append((f"    {arrow} {_line(t.target.ref)}", ", ".join(edge_words(t, most))))
    width = max((len(left) for left, _ in rows), default=0)
    lines = [f"{left:<{width}}   {right}".rstrip() for left, right in rows]
    return "\n".join([_line(graph.workflow_name), "", *map(_line, lines)]) + "\n"


def graph_json(graph: ExecutionGraph) -> dict[str, Any]:
    """The same as plain JSON, for other tools to draw."""
    nodes = [
        {
            "ref": n.ref,
            "kind": kind_of(n),
            "does": describe(n, WHOLE),
            "queue": n.definition.queue,
            "joins": joins(n, graph, WHOLE),
            "start": n in graph.start,
        }
        for n in graph.nodes.values()
    ]
    edges = [
        {"id": t.id, "from": t.source.ref, "to": t.target.ref, "many": t.replicates, "label": edge_words(t, WHOLE)}
        for t in graph.transitions.values()
    ]
    return {"workflow": graph.workflow_name, "nodes": nodes, "edges": edges}


def _from_top(graph: ExecutionGraph) -> list[GraphNode]:
    boxes = {ref: Box(1, 1) for ref in graph.nodes}
    lay_out(
        list(boxes.values()), [EdgeLine(boxes[t.source.ref], boxes[t.target.ref]) for t in graph.transitions.values()]
    )
    return sorted(graph.nodes.values(), key=lambda node: boxes[node.ref].rank)


def _line(text: str) -> str:
    """An author's text without characters that control the reader's terminal."""
    return "".join(c if c.isprintable() else "�" for c in text)

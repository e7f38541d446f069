"""A workflow as Mermaid text, for documents that draw it themselves."""

from __future__ import annotations

from treadle.display.words import describe, edge_words, joins, kind_of
from treadle.graph.execution_graph import ExecutionGraph, GraphNode, GraphTransition

_SHAPES = {
    "pass": ("([", "])"),
    "task": ("[", "]"),
    "human": ("[/", "\\]"),
    "waits": ("{{", "}}"),
    "calls": ("[[", "]]"),
    "native": ("[/", "/]"),
}


def mermaid(graph: ExecutionGraph) -> str:
    """A flowchart. Nodes are n0, n1…, so that no author's name can be read as syntax."""
    lines = ["flowchart TD"]
    lines += [f"  n{node.index}{_shape(node, graph)}" for node in graph.nodes.values()]
    lines += [f"  n{t.source.index} {_arrow(t)} n{t.target.index}" for t in graph.transitions.values()]
    return "\n".join(lines) + "\n"


def _shape(node: GraphNode, graph: ExecutionGraph) -> str:
    left, right = _SHAPES[kind_of(node)]
    words = [*(f"⋈ {head}" for head in joins(node, graph)), node.ref, describe(node)]
    return f'{left}"{"<br/>".join(_safe(word) for word in words if word)}"{right}'


def _arrow(t: GraphTransition) -> str:
    arrow = (
        "-.->" if t.definition.trigger is not None or t.definition.on == "failure" else "==>" if t.replicates else "-->"
    )
    words = edge_words(t)
    return f'{arrow}|"{"<br/>".join(map(_safe, words))}"|' if words else arrow


def _safe(text: str) -> str:
    """The text, with a numbered entity for every character that is no letter, digit, space or harmless sign."""
    return "".join(c if c.isalnum() or c in " .,_-+=×…/≤" else f"#{ord(c)};" for c in text)

"""A workflow as an SVG picture: shapes by kind, joins on a node's head, conditions on the edges."""

from __future__ import annotations

import itertools

from treadle.display.drawing import frame, write
from treadle.display.layout import Box, EdgeLine, lay_out
from treadle.display.words import badges, clip, describe, edge_words, joins, kind_of
from treadle.graph.execution_graph import ExecutionGraph, GraphNode, GraphTransition

MARGIN, LINE_HEIGHT = 28.0, 15.0
SIDE = 26.0
"""How far a back edge swings out."""
STYLE = """
.t .n{fill:$face;stroke:$line;stroke-width:1.3}.t .human{stroke:$amber;stroke-width:2}
.t .waits{stroke:$amber}.t .calls{stroke:$violet;stroke-width:2}.t .task{stroke:$blue}
.t .native{stroke:$grey}.t .pass{stroke-dasharray:3 3}.t .e{fill:none;stroke:$line;stroke-width:1.4}
.t .many{stroke-width:3.2}.t .failure{stroke:$red}.t .trigger{stroke-dasharray:5 4;stroke:$amber}
.t .tip{fill:$line}.t .join{fill:$blue;opacity:.16}.t .dot{fill:$ink}
"""


def graph_svg(graph: ExecutionGraph) -> str:
    """The picture, as SVG text."""
    boxes = {ref: box_of(node, graph) for ref, node in graph.nodes.items()}
    lines = {
        t.id: EdgeLine(boxes[t.source.ref], boxes[t.target.ref], label_size(t)) for t in graph.transitions.values()
    }
    width, height = lay_out(list(boxes.values()), list(lines.values()))
    for box in {id(b): b for b in [*boxes.values(), *(s for line in lines.values() for s in line.stations)]}.values():
        box.x += MARGIN
        box.y += MARGIN
    back = [t for t in graph.transitions.values() if lines[t.id].back]
    aside = max((label_size(t)[0] for t in back), default=0.0) + SIDE * len(back) + 8 if back else 0.0
    ports = _ports(lines)
    body = [
        _edge(t, lines[t.id], ports[t.id], width + MARGIN + SIDE * (1 + index)) for index, t in _numbered(graph, lines)
    ]
    body += [_node(node, boxes[ref], graph) for ref, node in graph.nodes.items()]
    return frame(width + 2 * MARGIN + aside, height + 2 * MARGIN, graph.workflow_name, body, STYLE)


def _numbered(graph: ExecutionGraph, lines: dict[str, EdgeLine]) -> list[tuple[int, GraphTransition]]:
    """Draws every edge. Back edges are numbered among themselves, so that each swings out further."""
    found, count = [], 0
    for t in graph.transitions.values():
        found.append((count, t))
        count += lines[t.id].back
    return found


def box_of(node: GraphNode, graph: ExecutionGraph) -> Box:
    lines = [clip(node.ref, 28), describe(node), *joins(node, graph)]
    width = max(len(line) * 7.2 for line in lines) + 26 + 14 * len(badges(node))
    return Box(max(84.0, width), 30 + (14 if describe(node) else 0) + 16 * len(joins(node, graph)))


def label_size(t: GraphTransition) -> tuple[float, float]:
    words = edge_words(t)
    return (max(len(line) for line in words) * 6.2 + 14, len(words) * LINE_HEIGHT) if words else (0.0, 0.0)


def _ports(lines: dict[str, EdgeLine]) -> dict[str, tuple[float, float]]:
    """The points at which edges leave and enter their nodes: spread out, in the order of the nodes they lead to."""
    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    for side, chosen in (("source", starts), ("target", ends)):
        groups: dict[int, list[tuple[float, str]]] = {}
        for name, line in lines.items():
            if not line.back:
                far = (line.stations[0] if side == "source" else line.stations[-1]).x
                groups.setdefault(id(getattr(line, side)), []).append((far, name))
        for group in groups.values():
            box = getattr(lines[group[0][1]], side)
            step = min(26.0, box.width / (len(group) + 1))
            for index, (_, name) in enumerate(sorted(group)):
                chosen[name] = box.x + (index - (len(group) - 1) / 2) * step
    return {name: (starts.get(name, line.source.x), ends.get(name, line.target.x)) for name, line in lines.items()}


def _edge(t: GraphTransition, line: EdgeLine, ports: tuple[float, float], outside: float) -> str:
    kind = "e" + (" many" if t.replicates else "") + (" failure" if t.definition.on == "failure" else "")
    kind += " trigger" if t.definition.trigger is not None else ""
    if line.back:
        return _back(t, line, kind, outside)
    bottom, top = line.source.y + line.source.height / 2, line.target.y - line.target.height / 2
    points = [(ports[0], bottom), *((s.x, s.y) for s in line.stations), (ports[1], top - 7)]
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        half = (y2 - y1) / 2
        path += f"C{x1:.1f} {y1 + half:.1f} {x2:.1f} {y2 - half:.1f} {x2:.1f} {y2:.1f}"
    tip = f'<path class="tip" d="M{ports[1]:.1f} {top:.1f}l-4.5 -8h9z"/>'
    post = line.signpost
    return f'<path class="{kind}" d="{path}"/>{tip}' + (_label(t, post.x, post.y) if post is not None else "")


def _back(t: GraphTransition, line: EdgeLine, kind: str, outside: float) -> str:
    x1, y1 = line.source.x + line.source.width / 2, line.source.y + 4
    x2, y2 = line.target.x + line.target.width / 2, line.target.y - 4
    if line.source is line.target:
        y1, y2 = y1 + 6, y2 - 6
    path = f"M{x1:.1f} {y1:.1f}C{outside:.1f} {y1:.1f} {outside:.1f} {y2:.1f} {x2 + 8:.1f} {y2:.1f}"
    tip = f'<path class="tip" d="M{x2:.1f} {y2:.1f}l8 -4.5v9z"/>'
    middle = (x1 + x2 + 8) / 8 + outside * 0.75
    return f'<path class="{kind}" d="{path}"/>{tip}' + _label(t, middle + label_size(t)[0] / 2 - 4, (y1 + y2) / 2)


def _label(t: GraphTransition, x: float, y: float) -> str:
    words = edge_words(t)
    if not words:
        return ""
    width, height = label_size(t)
    place = f'x="{x - width / 2:.1f}" y="{y - height / 2:.1f}"'
    box = f'<rect class="paper" {place} width="{width:.1f}" height="{height:.1f}"/>'
    first = y - height / 2 + 11
    return box + "".join(write(x, first + LINE_HEIGHT * i, word, "small mid") for i, word in enumerate(words))


def _node(node: GraphNode, box: Box, graph: ExecutionGraph) -> str:
    kind, heads = kind_of(node), joins(node, graph)
    left, top = box.x - box.width / 2, box.y - box.height / 2
    radius = box.height / 2 if kind in ("pass", "waits") else 3 if kind == "native" else 9
    size = f'x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="{radius:.1f}"'
    found = [f'<rect class="n {kind}" {size}/>']
    if kind == "calls":
        found += [
            f'<path class="e" d="M{x:.1f} {top + 3:.1f}v{box.height - 6:.1f}"/>'
            for x in (left + 5, left + box.width - 5)
        ]
    for index, head in enumerate(heads):
        y = top + 3 + 16 * index
        found.append(
            f'<rect class="join" x="{left + 4:.1f}" y="{y:.1f}" width="{box.width - 8:.1f}" height="14" rx="7"/>'
        )
        found.append(write(box.x, y + 11, head, "small mid"))
    y = top + 16 * len(heads) + 19
    found.append(write(box.x, y, clip(node.ref, 28), "bold mid"))
    if said := describe(node):
        found.append(write(box.x, y + 15, said, "small mid"))
    if marks := " ".join(badges(node)):
        found.append(write(left + box.width - 7, top + 13, marks, "small end"))
    if node in graph.start:
        found.append(f'<circle class="dot" cx="{box.x:.1f}" cy="{top - 12:.1f}" r="5"/>')
    if node.terminal:
        at = f'cx="{box.x:.1f}" cy="{top + box.height + 12:.1f}"'
        found.append(f'<circle class="e" {at} r="6"/><circle class="dot" {at} r="3"/>')
    return "".join(found)

"""A workflow's execution graph as data, laid out: what an SVG draws, for programs that draw themselves."""

from __future__ import annotations

from dataclasses import dataclass

from treadle.display.graph_svg import MARGIN, box_of, label_size
from treadle.display.layout import EdgeLine, lay_out
from treadle.display.words import WHOLE, Kind, badges, describe, edge_words, joins, kind_of, site_words
from treadle.graph.execution_graph import ExecutionGraph, GraphNode, GraphTransition


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node and its place: `x`, `y` is its middle."""

    ref: str
    kind: Kind
    words: str
    """Its action, in short."""
    joins: list[str]
    badges: list[str]
    start: bool
    terminal: bool
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """A transition and the points it is drawn along."""

    id: str
    source: str
    target: str
    on: str
    words: list[str]
    """Its label: what it waits for, its condition, how often."""
    condition: str | None
    replicates: bool
    triggered: bool
    back: bool
    """It leads back, and is drawn around the side."""
    points: list[tuple[float, float]]
    tier: float = 1
    """Its priority: transitions of the first tier of which one can be taken are taken."""
    loop_max: int | None = None
    """How often a token may take it, if it leads back."""
    group: str | None = None
    """The name that it gives to the group of its branches."""


@dataclass(frozen=True, slots=True)
class DrawnMeeting:
    """A node at which the branches of a group meet."""

    group: str
    """The group's name as the history has it: `name:x`, `transition:t` or `node:n`."""
    node: str
    words: str
    """How many of them it waits for."""
    timed: bool = False
    """Whether it waits for a limited time."""


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """The execution graph of one version."""

    workflow: str
    width: float
    height: float
    nodes: list[DrawnNode]
    transitions: list[DrawnEdge]
    meetings: list[DrawnMeeting]


def drawn_graph(graph: ExecutionGraph) -> DrawnGraph:
    """The graph with the places that `graph_svg` gives it. Deterministic."""
    boxes = {ref: box_of(node, graph) for ref, node in graph.nodes.items()}
    lines = {
        t.id: EdgeLine(boxes[t.source.ref], boxes[t.target.ref], label_size(t)) for t in graph.transitions.values()
    }
    width, height = lay_out(list(boxes.values()), list(lines.values()))
    starts = {node.ref for node in graph.start}
    nodes = [
        DrawnNode(
            ref=ref,
            kind=kind_of(node),
            words=describe(node, WHOLE),
            joins=joins(node, graph, WHOLE),
            badges=badges(node),
            start=ref in starts,
            terminal=node.terminal,
            x=_number(boxes[ref].x + MARGIN),
            y=_number(boxes[ref].y + MARGIN),
            width=_number(boxes[ref].width),
            height=_number(boxes[ref].height),
        )
        for ref, node in graph.nodes.items()
    ]
    edges = [_edge(t, lines[t.id]) for t in graph.transitions.values()]
    return DrawnGraph(
        graph.workflow_name, _number(width + 2 * MARGIN), _number(height + 2 * MARGIN), nodes, edges, meetings_of(graph)
    )


def meetings_of(graph: ExecutionGraph) -> list[DrawnMeeting]:
    """Where the branches of each group meet, in the order in which a history's groups have them."""
    return [
        DrawnMeeting(site.key, site.target.ref, site_words(site), site.sync.timeout_ms is not None)
        for site in graph.sites
    ]


def _edge(t: GraphTransition, line: EdgeLine) -> DrawnEdge:
    stations = [line.source, *line.stations, line.target]
    return DrawnEdge(
        id=t.id,
        source=_ref(t.source),
        target=_ref(t.target),
        on=t.definition.on,
        words=edge_words(t, WHOLE),
        condition=t.condition.text if t.condition is not None else None,
        replicates=t.replicates,
        triggered=t.definition.trigger is not None,
        back=line.back,
        points=[(_number(box.x + MARGIN), _number(box.y + MARGIN)) for box in stations],
        tier=t.definition.priority,
        loop_max=t.definition.loop_max_iterations,
        group=t.definition.sibling_group,
    )


def _ref(node: GraphNode) -> str:
    return node.ref


def _number(value: float) -> float:
    return round(value, 1)

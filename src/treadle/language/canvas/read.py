"""Reading a saved canvas: the fields of a workflow, as the tables of the grammar would have given them.

Unknown properties of nodes and edges are not errors here: a drawing tool keeps its own data there. Every node fires
when all its inbound edges are delivered; a splitter makes one group of its items; a collector joins the innermost
splitter that is not yet collected, or, without one, all its inbound edges.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from treadle.expression.paths import format_path, parse_path
from treadle.language.canvas.drawing import drawing_of
from treadle.language.canvas.lineage import Lineages
from treadle.language.canvas.nodes import passing_node, ux_node, worker_node
from treadle.language.grammar.transition import EdgeMapping
from treadle.language.grammar.workflow import HEAD
from treadle.language.phrases import canonical_path, path_problem
from treadle.language.problem import did_you_mean
from treadle.language.reading import ROOT, Place, Reading
from treadle.language.record import Field, Record
from treadle.language.shapes import ANYTHING, BAD, Json, Schema, Shape, found
from treadle.model import definition as d

Row = dict[str, Json]
_READERS: dict[str, Callable[[Row, Place, Reading], d.Node]] = {
    "worker": worker_node,
    "ux": ux_node,
    "splitter": passing_node,
    "collector": passing_node,
}
_TYPES = ("Worker", "UX", "Splitter", "Collector", "section", "item")
_FOR_THE_EYE = frozenset({"section", "group", "note", "label", "annotation", "comment"})


class Rows(Shape):
    """Nodes or edges as a drawing tool saves them: some keys are ours, the rest is the tool's."""

    wants = "a list"

    def __init__(self, needed: tuple[str, ...]) -> None:
        self.needed = needed

    def describe(self) -> Schema:
        properties: Schema = {name: {"type": "string"} for name in self.needed}
        properties |= {"id": {"type": "string"}, "data": {"type": "object"}}
        if "type" in properties:
            properties["type"] = {"anyOf": [{"enum": list(_TYPES)}, {"type": "string"}]}
        return {"type": "array", "items": {"type": "object", "properties": properties, "required": list(self.needed)}}


CANVAS_GRAPH = Record(
    "CanvasGraph",
    "A visual graph, as React Flow saves it.",
    (
        *(replace(field, required=False) for field in HEAD),
        Field("nodes", Rows(("id", "type")), "The nodes: {id, type, position, data}"),
        Field("edges", Rows(("source", "target")), "The edges: {id, source, target, data: {mapping?}}"),
        Field("viewport", ANYTHING, "What the drawing tool last showed"),
        Field("id", ANYTHING, "The drawing tool's own id"),
    ),
    make=dict,
)


def is_canvas(value: Json) -> bool:
    """Whether a definition is a canvas graph: its `nodes` is a list (1.10)."""
    return isinstance(value, dict) and isinstance(value.get("nodes"), list)


def read_canvas(value: Row, reading: Reading) -> dict[str, Any]:
    """The fields of the workflow that a canvas stands for."""
    reading.cycles_allowed = False
    values, _ = CANVAS_GRAPH.read_fields(value, ROOT, reading)
    graph = _Graph(reading)
    graph.take_nodes(value["nodes"])
    graph.take_edges(value.get("edges") or [])
    head = {key: part for key, part in values.items() if key not in ("nodes", "edges", "viewport", "id")}
    return {
        "workflow": _name_from(reading.source.file),
        "on_unhandled_failure": "let_others_finish",
        **head,
        "nodes": graph.canonical_nodes(),
        "transitions": graph.rows,
        "canvas": drawing_of(value, graph.nodes) | (head.get("canvas") or {}),
    }


def _name_from(file: str) -> str:
    """The workflow's name from the file's name: a saved canvas has none of its own."""
    name = re.sub(r"[^a-z0-9._-]+", "-", PurePath(file).stem.lower()).strip("-._")
    return "canvas" if file.startswith("<") or not name else name


class _Graph:
    """The executing part of a canvas while it is read."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.nodes: dict[str, d.Node] = {}
        self.kinds: dict[str, str] = {}
        self.places: dict[str, Place] = {}
        self.array_paths: dict[str, str | None] = {}
        self.left_out: set[str] = set()
        self.rows: list[dict[str, Any]] = []
        self._inbound: dict[str, list[int]] = {}

    def take_nodes(self, rows: list[Json]) -> None:
        for index, row in enumerate(rows):
            if not isinstance(row, dict) or not isinstance(row.get("id"), str) or not row["id"]:
                self.reading.problem("BAD_VALUE", ("nodes", index), f"expected a node with an `id`, found {found(row)}")
            elif row["id"] in self.nodes or row["id"] in self.left_out:
                self.reading.problem("BAD_VALUE", ("nodes", index, "id"), f"two nodes have the id `{row['id']}`")
            else:
                self._take_node(row, Place(("nodes", index), ("nodes", row["id"])))

    def _take_node(self, row: Row, at: Place) -> None:
        ref, kind = row["id"], row.get("type")
        lowered = kind.lower() if isinstance(kind, str) else ""
        if lowered in _FOR_THE_EYE or lowered.endswith("item"):
            self.left_out.add(ref)
            return
        self.reading.note(at)
        data = row.get("data")
        data = data if isinstance(data, dict) else {}
        if lowered in _READERS:
            self.nodes[ref] = _READERS[lowered](data, at, self.reading)
        else:
            self.nodes[ref] = d.Node()
            hint = did_you_mean(str(kind), _TYPES) or f"known types: {', '.join(_TYPES)}"
            place = at.key("type") if "type" in row else at
            message = f"there is no node type `{kind}`" if "type" in row else f"the node `{ref}` has no type"
            self.reading.problem("UNKNOWN_NODE_TYPE", place, message, hint)
        self.kinds[ref] = lowered
        self.places[ref] = at
        if lowered == "splitter":
            self.array_paths[ref] = self._array_path(data.get("arrayPath"), at)

    def _array_path(self, path: Json, at: Place) -> str | None:
        if path is None or path == "":
            return None
        place = Place((*at.written, "data", "arrayPath"), at.canonical)
        if not isinstance(path, str):
            self.reading.problem("BAD_VALUE", place, f"expected a path, found {found(path)}")
        elif (message := path_problem(path)) is not None:
            self.reading.problem("BAD_VALUE", place, message)
        else:
            return canonical_path(path)
        return None

    def take_edges(self, rows: Json) -> None:
        if not isinstance(rows, list):
            self.reading.problem("BAD_VALUE", ("edges",), f"expected a list of edges, found {found(rows)}")
            return
        for index, row in enumerate(rows):
            ends = [row.get(end) for end in ("source", "target")] if isinstance(row, dict) else []
            if not ends or not all(isinstance(end, str) for end in ends):
                self.reading.problem("BAD_VALUE", ("edges", index), "an edge needs `source` and `target`")
            elif not self.left_out & set(ends):
                self._take_edge(row, Place(("edges", index), ("transitions", len(self.rows))))

    def _take_edge(self, row: Row, at: Place) -> None:
        self.reading.note(at)
        for name, spelled in (("from", "source"), ("to", "target")):
            self.reading.note(at.key(name, spelled))
        fields: dict[str, Any] = {"from": row["source"], "to": row["target"]}
        if isinstance(row.get("id"), str) and row["id"]:
            fields["id"] = row["id"]
        data = row.get("data")
        mapping = data.get("mapping") if isinstance(data, dict) else None
        if mapping is not None:
            place = Place((*at.written, "data", "mapping"), (*at.canonical, "mapping"))
            self.reading.note(place)
            result = EdgeMapping().read(mapping, place, self.reading)
            if result is not BAD and result:
                fields["mapping"] = result
        self._inbound.setdefault(row["target"], []).append(len(self.rows))
        self.rows.append(fields)

    def canonical_nodes(self) -> dict[str, d.Node]:
        """The nodes with their joins and inputs; puts fan-outs and joins on the transitions."""
        wires = [(row["from"], row["to"]) for row in self.rows]
        known = [wire for wire in wires if wire[0] in self.nodes and wire[1] in self.nodes]
        lineages = Lineages(list(self.nodes), known, self._of("splitter"), self._of("collector"))
        for row in self.rows:
            if row["from"] in self.array_paths:
                row["sibling_group"] = items_of(row["from"])
                row["foreach"] = self._foreach(row["from"])
            if lineages.is_collected(row["from"], row["to"]):
                row["synchronization"] = _collect(lineages.collects[row["to"]])
        self._ends()
        for ref in lineages.mixed:
            message = f"edges from inside and outside a splitter meet at `{ref}`, which could never fire"
            hint = "put a Collector between the splitter's branches and this node"
            self.reading.problem("JOIN_CONFLICT", self.places[ref], message, hint)
        return {ref: self._wired(ref, node, lineages) for ref, node in self.nodes.items()}

    def _of(self, kind: str) -> set[str]:
        return {ref for ref, of in self.kinds.items() if of == kind}

    def _foreach(self, splitter: str) -> d.Foreach:
        path = self.array_paths[splitter]
        steps = parse_path(path) if path is not None else ()
        return d.Foreach(collection=format_path(("nodes", splitter, "output", *steps)), by_item=True)

    def _ends(self) -> None:
        sources = {row["from"] for row in self.rows}
        for ref in sorted(self._of("splitter") - sources):
            message = f"nothing follows the splitter `{ref}`"
            self.reading.problem("SPLITTER_WITHOUT_DOWNSTREAM", self.places[ref], message, "draw an edge from it")
        for ref in sorted(self._of("collector") - self._inbound.keys()):
            message = f"nothing leads to the collector `{ref}`"
            self.reading.problem("COLLECTOR_WITHOUT_UPSTREAM", self.places[ref], message, "draw an edge to it")

    def _wired(self, ref: str, node: d.Node, lineages: Lineages) -> d.Node:
        inbound = [self.rows[index] for index in self._inbound.get(ref, [])]
        items = bool(inbound) and all(row["from"] in self.array_paths for row in inbound)
        collecting = self.kinds[ref] == "collector" and ref not in lineages.collects
        beside = not collecting and any(not lineages.is_collected(row["from"], ref) for row in inbound)
        join = None
        if collecting or (ref in lineages.collects and beside):  # edges from outside the splitter are waited for too
            join = d.NodeJoin(kind="all_inbound", collect=True)
        elif len(inbound) > 1 and ref not in lineages.collects:
            join = d.NodeJoin(kind="all_inbound")
        fields = {name: getattr(node, name) for name in node.__struct_fields__}
        return d.Node(**{**fields, "input_mapping": "item" if items else "upstream", "join": join})


def items_of(splitter: str) -> str:
    """The name of the group that a splitter makes. Not its ref: that would name everything the visit started."""
    return f"{splitter}:items"


def _collect(splitter: str) -> d.Synchronization:
    return d.Synchronization(
        sibling_group=items_of(splitter),
        on_branch_failure="fail",
        merge=d.Merge(source="$._visit.output", target="$._visit.output"),
    )

"""The part of a canvas that is only drawn: kept as it was saved, so that the canvas can be drawn again."""

from __future__ import annotations

from typing import Any

from treadle.language.canvas.nodes import for_the_eye
from treadle.model.definition import Node

Json = Any


def drawing_of(value: dict[str, Json], executing: dict[str, Node]) -> dict[str, Json]:
    """Positions, sizes, labels, colours and sections of a saved canvas, without anything the execution graph holds."""
    nodes: dict[str, Json] = {}
    sections: list[Json] = []
    for row in value["nodes"]:
        if not isinstance(row, dict):
            continue
        if row.get("id") in executing:
            nodes[row["id"]] = _looks_of(row, "id") | _seen(row, executing[row["id"]])
        else:
            sections.append(row)
    rows = value.get("edges")
    edges = [
        _looks_of(row) | _rest(row.get("data"), "mapping")
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    ]
    drawing = {"nodes": nodes, "edges": edges, "sections": sections, "viewport": value.get("viewport")}
    return {key: part for key, part in drawing.items() if part}


def _looks_of(row: dict[str, Json], *left_out: str) -> dict[str, Json]:
    return {key: part for key, part in row.items() if key not in ("data", *left_out)}


def _seen(row: dict[str, Json], node: Node) -> dict[str, Json]:
    data, kind = row.get("data"), row.get("type")
    seen = for_the_eye(kind.lower(), data, node) if isinstance(data, dict) and isinstance(kind, str) else None
    return {"data": seen} if seen else {}


def _rest(data: Json, executed: str) -> dict[str, Json]:
    rest = {key: part for key, part in data.items() if key != executed} if isinstance(data, dict) else None
    return {"data": rest} if rest else {}

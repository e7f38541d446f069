"""What of a canvas is only for the eye: kept as it was saved, so that the canvas can be drawn again."""

from __future__ import annotations

from typing import Any

Json = Any


def drawing_of(value: dict[str, Json], executing: set[str]) -> dict[str, Json]:
    """Positions, sizes, labels and sections of a saved canvas, without what the execution graph holds."""
    nodes: dict[str, Json] = {}
    sections: list[Json] = []
    for row in value["nodes"]:
        if not isinstance(row, dict):
            continue
        if row.get("id") in executing:
            nodes[row["id"]] = {key: part for key, part in row.items() if key not in ("id", "data")} | _label(row)
        else:
            sections.append(row)
    rows = value.get("edges")
    edges = [
        {key: part for key, part in row.items() if key != "data"}
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    ]
    drawing = {"nodes": nodes, "edges": edges, "sections": sections, "viewport": value.get("viewport")}
    return {key: part for key, part in drawing.items() if part}


def _label(row: dict[str, Json]) -> dict[str, Json]:
    data = row.get("data")
    return {"label": data["label"]} if isinstance(data, dict) and "label" in data else {}

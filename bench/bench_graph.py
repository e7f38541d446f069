"""What compilation leaves: the execution graph against the drawing it came from, and what loading costs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import msgspec

from bench.report import Report
from treadle.graph.compile import compile_graph
from treadle.language import load_text

NAME = "graph"
CANVAS = Path("examples/content.canvas.json")


def run(report: Report) -> None:
    for label, drawing in (("example canvas", json.loads(CANVAS.read_text())), ("canvas of 200 workers", wide(200))):
        report.progress(label)
        text = json.dumps(drawing, separators=(",", ":"))
        workflow = load_text(text, label).workflow
        assert workflow is not None
        bare = msgspec.structs.replace(workflow, canvas=None)
        size = len(msgspec.json.encode(bare))
        report.figure(f"{label}: execution graph / drawing", size / len(text), "of its bytes", floor=1.0)
        begin = time.perf_counter()
        load_text(text, label)
        loaded = time.perf_counter()
        compile_graph(workflow)
        report.figure(f"{label}: load and check", (loaded - begin) * 1e3, "ms")
        report.figure(f"{label}: compile", (time.perf_counter() - loaded) * 1e3, "ms")


def wide(workers: int) -> dict[str, Any]:
    """A drawing as React Flow saves it: most of it is for the eye."""
    nodes = [
        {
            "id": f"w{i}",
            "type": "Worker",
            "position": {"x": 220.5 * i, "y": 120.25},
            "width": 180,
            "height": 64,
            "selected": False,
            "dragging": False,
            "positionAbsolute": {"x": 220.5 * i, "y": 120.25},
            "style": {"background": "#bfdbfe", "borderRadius": 8, "padding": 12},
            "data": {"label": f"Step number {i}", "icon": "sparkles", "webhookUrl": f"https://workers.example/{i}"},
        }
        for i in range(workers)
    ]
    edges = [
        {
            "id": f"e{i}",
            "source": f"w{i}",
            "target": f"w{i + 1}",
            "sourceHandle": "right",
            "targetHandle": "left",
            "animated": True,
            "type": "smoothstep",
            "style": {"stroke": "#64748b", "strokeWidth": 2},
        }
        for i in range(workers - 1)
    ]
    return {"workflow": "wide", "nodes": nodes, "edges": edges, "viewport": {"x": 0, "y": 0, "zoom": 0.75}}

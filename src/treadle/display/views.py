"""Objects that draw themselves in a notebook: a workflow's graph and a run's timeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treadle.display.graph_svg import graph_svg
from treadle.display.graph_text import graph_text
from treadle.display.timeline import Timeline, timeline_of
from treadle.display.timeline_svg import timeline_svg
from treadle.graph.compile import compile_graph
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model.definition import Workflow
from treadle.model.events import Event


class GraphView:
    """A workflow as a picture: `GraphView(flow)` as the last line of a cell. Takes a flow, a workflow or its graph."""

    def __init__(self, what: Any) -> None:
        built = what if isinstance(what, ExecutionGraph | Workflow) else what.build()
        self.graph: ExecutionGraph = built if isinstance(built, ExecutionGraph) else compile_graph(built)

    @property
    def svg(self) -> str:
        return graph_svg(self.graph)

    def _repr_mimebundle_(self, **_asked: Any) -> dict[str, str]:
        return {"text/html": _scrolling(self.svg), "text/plain": str(self)}

    def _repr_html_(self) -> str:
        return _scrolling(self.svg)

    def __str__(self) -> str:
        return graph_text(self.graph)


class TimelineView:
    """A run over time, from its history."""

    def __init__(self, what: Timeline | Iterable[Event], now: int | None = None) -> None:
        self.timeline = what if isinstance(what, Timeline) else timeline_of(what, now)

    @property
    def svg(self) -> str:
        return timeline_svg(self.timeline)

    def _repr_mimebundle_(self, **_asked: Any) -> dict[str, str]:
        return {"text/html": _scrolling(self.svg), "text/plain": str(self)}

    def _repr_html_(self) -> str:
        return _scrolling(self.svg)

    def __str__(self) -> str:
        run = self.timeline
        return f"{run.workflow}: {run.status}, {len(run.bars)} visits"


def _scrolling(svg: str) -> str:
    return f'<div style="overflow-x:auto">{svg}</div>'

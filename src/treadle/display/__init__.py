"""Workflows and runs as pictures and text, for notebooks, terminals and documents. Pure: data in, text out."""

from treadle.display.graph_svg import graph_svg
from treadle.display.graph_text import graph_text
from treadle.display.mermaid import mermaid
from treadle.display.timeline import Timeline, timeline_of
from treadle.display.timeline_svg import timeline_svg
from treadle.display.views import GraphView, TimelineView

__all__ = [
    "GraphView",
    "Timeline",
    "TimelineView",
    "graph_svg",
    "graph_text",
    "mermaid",
    "timeline_of",
    "timeline_svg",
]

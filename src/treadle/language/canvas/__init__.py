"""The canvas dialect (1.8): a visual graph, as React Flow saves it, compiled to the canonical definition.

    read      nodes and edges as they are saved → fields of a workflow
    nodes     Worker, UX, Splitter, Collector → canonical nodes
    lineage   which splitters each node is below, so that a collector knows whom it collects

Ids survive exactly. Properties that are only drawn (positions, colours, sections, labels) go to `canvas` and are not
executed.
"""

from treadle.language.canvas.read import is_canvas, read_canvas

__all__ = ["is_canvas", "read_canvas"]

"""`treadle graph FILE|WORKFLOW`: a workflow as text, Mermaid, SVG or JSON.

Exit codes: 0 drawn · 3 the definition is invalid · 4 no such file or workflow.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from treadle.cli.frame.exits import OK
from treadle.cli.frame.options import StoreOption, configuration
from treadle.model.definition import Workflow


def graph(
    workflow: Annotated[str, Parameter(help="A definition file, or the name of a deployed workflow.")],
    /,
    *,
    format: Annotated[
        Literal["text", "mermaid", "svg", "json"], Parameter(name=["--format", "-f"], help="Format of the drawing.")
    ] = "text",
    version: Annotated[int | None, Parameter(help="Version of a deployed workflow; else the newest.")] = None,
    store: StoreOption = None,
) -> int:
    """Draw a workflow."""
    from treadle.cli.frame.inputs import read_definitions, shared
    from treadle.cli.frame.opening import drive

    if Path(workflow).is_file() or workflow.endswith((".yaml", ".yml", ".json")):
        known = shared(configuration(store))
        drawings = [draw(definition, format) for definition in read_definitions(Path(workflow), known)]
    else:
        found: list[Workflow] = []
        drive(_fetch(workflow, version, store, found))
        drawings = [draw(found[0], format)]
    sys.stdout.write("\n".join(drawing.rstrip("\n") + "\n" for drawing in drawings))
    return OK


async def _fetch(name: str, version: int | None, store: str | None, found: list[Workflow]) -> int:
    from treadle.cli.frame.opening import reach

    async with reach(configuration(store)) as client:
        found.append(await client.definition(name, version))
    return OK


def draw(definition: Workflow, format: str) -> str:
    """One workflow in one format."""
    if format == "json":
        import msgspec

        return msgspec.json.format(msgspec.json.encode(definition), indent=2).decode()
    from treadle.display import graph_svg, graph_text, mermaid
    from treadle.display.words import TEXT_MAX, WHOLE
    from treadle.graph.compile import compile_graph

    graph = compile_graph(definition)
    if format == "text":
        return graph_text(graph, TEXT_MAX if sys.stdout.isatty() else WHOLE)
    return mermaid(graph) if format == "mermaid" else graph_svg(graph)

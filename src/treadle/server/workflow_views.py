"""Looking at deployed workflows over HTTP: the list, versions, pictures, differences, figures; and their drawings.

Owns the addresses; what is shown comes from the client. Definitions, graphs and differences never change under their
tag: ask again with `If-None-Match`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from treadle.display.graph_json import DrawnGraph
from treadle.runtime.view.stats import WorkflowStats
from treadle.runtime.view.workflow_shapes import DefinitionDifference, VersionRow, WorkflowRow
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.door import matches
from treadle.server.paging import Limit, PageQuery
from treadle.server.problems import HttpProblem, not_found
from treadle.server.routes import AUTHOR, VIEWER, Route
from treadle.server.run_views import Number
from treadle.server.workflows import LISTED, WorkflowView, version_of, version_view

COUNTS_FRESH_MS = 2_000
"""How long the counts of all runs are believed: counting a million takes a good part of a second."""
_MEDIA = {"json": "application/json", "mermaid": "text/vnd.mermaid; charset=utf-8", "svg": "image/svg+xml"}


class WorkflowList(Struct):
    """The newest version of each workflow, by name."""

    items: list[WorkflowRow]
    next: str | None


class VersionList(Struct):
    """Versions of a workflow, newest first."""

    items: list[VersionRow]
    next: str | None


class GraphQuery(Struct):
    """Which picture."""

    version: Number | None = None
    format: Literal["json", "mermaid", "svg"] = "json"


class VersionQuery(Struct):
    """Which version; without one, the newest."""

    version: Number | None = None


class VersionsQuery(Struct):
    """Between which versions."""

    begin: Number = field(name="from")
    end: Number = field(name="to")


class StatsQuery(Struct):
    """Since when runs have started."""

    since: Annotated[int | None, Meta(description="Milliseconds since 1970; without it, all runs.")] = None


class WorkflowQuery(Struct):
    """Which workflows."""

    text: Annotated[str | None, Meta(description="A part of the name.")] = None
    limit: Limit = 100
    cursor: str | None = None


class _Rows:
    """The rows of all workflows as they were a moment ago."""

    def __init__(self) -> None:
        self.rows: list[WorkflowRow] = []
        self.read = -COUNTS_FRESH_MS

    async def fresh(self, call: HttpCall) -> list[WorkflowRow]:
        if call.now() - self.read >= COUNTS_FRESH_MS:
            asked = call.now()
            self.rows = await call.client.workflow_rows()
            self.read = asked
        return self.rows


async def list_workflows(call: HttpCall) -> HttpAnswer:
    asked: WorkflowQuery = call.query
    known: _Rows = call.service.parts.setdefault(LISTED, _Rows())
    after, wanted = call.cursor() or "", (asked.text or "").casefold()
    rows = [
        row
        for row in await known.fresh(call)
        if row.workflow > after and call.sees(row.workflow) and wanted in row.workflow.casefold()
    ]
    shown = rows[: asked.limit]
    return HttpAnswer(WorkflowList(shown, call.next_cursor(shown[-1].workflow) if len(rows) > len(shown) else None))


async def versions(call: HttpCall) -> HttpAnswer:
    limit = call.query.limit
    rows = await call.client.versions(call.path["name"], before=call.cursor(), limit=limit)
    more = bool(rows) and rows[-1].version > 1
    return HttpAnswer(VersionList(rows, call.next_cursor(rows[-1].version) if more else None))


async def draw(call: HttpCall) -> HttpAnswer:
    deployed = await version_of(call, call.query.version)
    name, version = deployed.workflow, deployed.version
    before = await version_view(call, deployed)
    wanted = call.request.headers.get("if-match")
    if wanted is not None and not matches(wanted, before.etag or ""):
        raise HttpProblem(
            "STALE_VERSION",
            f"the drawing of {name!r} version {version} has changed, or another version is the newest",
            remedy="read the workflow again, and send its ETag as If-Match",
        )
    drawn = await call.client.drawn_version(name, version)
    if call.body != before.body.canvas:
        await call.client.redraw(name, call.body, version, drawn)
    after = await version_view(call, deployed)
    after.status = 200 if before.body.canvas is not None else 201
    return after


async def graph(call: HttpCall) -> HttpAnswer:
    deployed, format = await version_of(call, call.query.version), call.query.format
    tag = f"{deployed.version}-{deployed.hash[:16]}-{format}-1"
    if format == "json":
        return HttpAnswer(await call.client.drawn_graph(deployed.workflow, deployed.version), etag=tag)
    text = await call.client.graph_text(deployed.workflow, deployed.version, format=format)
    return HttpAnswer(text.encode(), media_type=_MEDIA[format], etag=tag)


async def diff(call: HttpCall) -> HttpAnswer:
    begin, end = call.query.begin, call.query.end
    shown = await call.client.workflow_difference(call.path["name"], begin, end)
    return HttpAnswer(shown, etag=f"{begin}-{end}-1")


async def stats(call: HttpCall) -> HttpAnswer:
    name = call.path["name"]
    if await call.client.deployed(name) is None:
        raise not_found(f"workflow {name!r}")
    return HttpAnswer(await call.client.stats(name, call.query.since))


def _read(path: str, handler: Any, summary: str, answer: Any, query: Any, **more: Any) -> Route:
    return Route(
        method="GET",
        path=f"/workflows/{{name}}{path}",
        handler=handler,
        access=VIEWER,
        about="workflow",
        noun="workflows",
        summary=summary,
        query=query,
        answers={200: answer},
        problems=("NOT_FOUND",),
        **more,
    )


ROUTES = (
    Route(
        method="GET",
        path="/workflows",
        handler=list_workflows,
        access=VIEWER,
        about="handler",
        noun="workflows",
        summary="The newest version of each workflow, with runs by status",
        query=WorkflowQuery,
        answers={200: WorkflowList},
    ),
    _read("/versions", versions, "Versions of a workflow, newest first", VersionList, PageQuery),
    Route(
        method="PUT",
        path="/workflows/{name}/canvas",
        handler=draw,
        access=AUTHOR,
        about="workflow",
        noun="workflows",
        summary="Replace the drawing of a version, which stays the version it is",
        description="With `If-Match` it is replaced only if nobody has changed it since it was read.",
        body=dict[str, Any],
        query=VersionQuery,
        reads_headers=("If-Match",),
        answers={200: WorkflowView, 201: WorkflowView},
        problems=("NOT_FOUND", "STALE_VERSION"),
    ),
    _read(
        "/graph",
        graph,
        "The execution graph of a version, laid out",
        DrawnGraph,
        GraphQuery,
        other_types=("text/vnd.mermaid", "image/svg+xml"),
        reads_headers=("If-None-Match",),
        description="As JSON, as Mermaid text (`text/vnd.mermaid`) or as a picture (`image/svg+xml`).",
    ),
    _read(
        "/diff",
        diff,
        "What changed between two versions",
        DefinitionDifference,
        VersionsQuery,
        reads_headers=("If-None-Match",),
    ),
    _read(
        "/stats",
        stats,
        "Figures by node and transition",
        WorkflowStats,
        StatsQuery,
        description="Runs are counted completely; the other figures are made of the newest runs, 1,000 at most, as far"
        " as their histories can be read within about a second (`counted`, `complete`).",
    ),
)

"""Questions about deployed workflows: rows with their runs, versions, pictures, differences, figures.

Owns how the library, the drawings and the histories of runs meet. `Client` has these methods. Must not deploy anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from treadle.errors import CommandRefused
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.command.commander import Commander
from treadle.runtime.coordinate.library import DEPLOYED, DRAWING, KIND, drawing_name
from treadle.runtime.view.stats import RunSummary, WorkflowStats, stats_of
from treadle.runtime.view.workflow_shapes import (
    DefinitionDifference,
    VersionRow,
    WorkflowRow,
    definition_difference,
)
from treadle.store.port import RunQuery, StoredDocument
from treadle.store.service import ServiceStore

if TYPE_CHECKING:
    from treadle.display.graph_json import DrawnGraph

Json = Any

COUNTED_RUNS_MAX = 1_000
"""Runs that figures are made of: the newest ones. Percentiles hardly move with more."""
COUNTED_EVENTS_MAX = 100_000
"""Events read anew for one answer, about a second of work; summaries of runs that were read before cost nothing."""
PAGE = 200


class WorkflowFace:
    """See the module's docstring."""

    _commander: Commander

    async def workflow_rows(self) -> list[WorkflowRow]:
        """The newest version of each workflow with its runs by status, by name."""
        store = self._commander.store
        counts: dict[str, dict[str, int]] = {}
        for one in await cast(ServiceStore, store).count_runs():
            counts.setdefault(one.workflow, {})[one.status.value] = one.runs
        deployed = {document.name: document.body["at"] for document in await store.documents(DEPLOYED)}
        return [
            WorkflowRow(
                document.name,
                document.version,
                document.hash,
                deployed.get(drawing_name(document.name, document.version)),
                runs=counts.get(document.name, {}),
            )
            for document in sorted(await store.documents(KIND), key=lambda document: document.name)
        ]

    async def versions(self, workflow: str, *, before: int | None = None, limit: int = 100) -> list[VersionRow]:
        """Versions of a workflow, newest first, those below `before`. Raises CommandRefused(NOT_FOUND)."""
        newest = (await self._document(workflow, None)).version
        top = min(newest, before - 1) if before is not None else newest
        found = []
        for version in range(top, max(top - limit, 0), -1):
            documents = await self._commander.store.documents(KIND, workflow, version)
            if documents:
                found.append(
                    VersionRow(workflow, version, documents[0].hash, await self.deployed_at(workflow, version))
                )
        return found

    async def deployed_at(self, workflow: str, version: int) -> int | None:
        """When a version was deployed; None: before that was written down."""
        kept = await self._commander.store.documents(DEPLOYED, drawing_name(workflow, version))
        return kept[0].body["at"] if kept else None

    async def drawn_version(self, workflow: str, version: int) -> int:
        """The number of a version's drawing, which grows with every change; 0: it was never drawn."""
        kept = await self._commander.store.documents(DRAWING, drawing_name(workflow, version))
        return kept[0].version if kept else 0

    async def redraw(self, workflow: str, drawing: Json, version: int, expected: int) -> int:
        """Replaces the drawing of a version if its number is `expected`, and returns the new number. Raises
        StoreConflict(STALE_VERSION)."""
        return await self._commander.library.redraw(workflow, version, drawing, expected)

    async def drawn_graph(self, workflow: str, version: int | None = None) -> DrawnGraph:
        """The execution graph as data, laid out. Raises CommandRefused(NOT_FOUND)."""
        from treadle.display.graph_json import drawn_graph

        return drawn_graph(await self._graph(workflow, version))

    async def graph_text(
        self, workflow: str, version: int | None = None, *, format: Literal["mermaid", "svg"] = "mermaid"
    ) -> str:
        """The execution graph as Mermaid text or as an SVG picture. Raises CommandRefused(NOT_FOUND)."""
        from treadle.display.graph_svg import graph_svg
        from treadle.display.mermaid import mermaid

        graph = await self._graph(workflow, version)
        return graph_svg(graph) if format == "svg" else mermaid(graph)

    async def workflow_difference(self, workflow: str, begin: int, end: int) -> DefinitionDifference:
        """What changed between two versions. Raises CommandRefused(NOT_FOUND)."""
        before, after = await self._graph(workflow, begin), await self._graph(workflow, end)
        return definition_difference(before.definition, after.definition, begin, end)

    async def stats(self, workflow: str, since: int | None = None) -> WorkflowStats:
        """Figures of a workflow's runs since an instant: visits, failures, retries, waiting and work by node and
        transition, made of the newest runs; runs by status of all. Raises CommandRefused(NOT_FOUND)."""
        await self._document(workflow, None)
        counts = await cast(ServiceStore, self._commander.store).count_runs(workflow, since)
        runs = {one.status.value: one.runs for one in counts}
        summaries, complete = await self._summaries(workflow, since)
        return stats_of(workflow, since, runs, summaries, complete=complete)

    async def _summaries(self, workflow: str, since: int | None) -> tuple[list[RunSummary], bool]:
        found: list[RunSummary] = []
        after: RunId | None = None
        left = COUNTED_EVENTS_MAX
        while True:
            query = RunQuery(workflow=workflow, started_from=since, newest_first=True, after=after, limit=PAGE)
            rows = await self._commander.store.find_runs(query)
            for row in rows:
                if len(found) == COUNTED_RUNS_MAX or left <= 0:
                    return found, False
                duration = row.changed - row.started if row.status in RUN_ENDED else None
                summary, read = await self._commander.readings.summary(row, duration)
                found.append(summary)
                left -= read
            if len(rows) < PAGE:
                return found, True
            after = rows[-1].run

    async def _document(self, workflow: str, version: int | None) -> StoredDocument:
        documents = await self._commander.store.documents(KIND, workflow, version)
        if not documents:
            raise self._unknown_workflow(workflow, version)
        return documents[0]

    async def _graph(self, workflow: str, version: int | None) -> ExecutionGraph:
        graph = await self._commander.library.graph(workflow, version)
        if graph is None:
            raise self._unknown_workflow(workflow, version)
        return graph

    @staticmethod
    def _unknown_workflow(workflow: str, version: int | None) -> CommandRefused:
        what = f"{workflow!r}" + (f" version {version}" if version is not None else "")
        return CommandRefused("NOT_FOUND", f"there is no workflow {what}")

"""Questions about workflows and many runs, asked of a service instead of a store.

Owns the translation of answers into the shapes that a client of a store gives. `ServiceClient` has these methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from treadle.display.graph_json import DrawnGraph
from treadle.errors import CommandRefused
from treadle.model.ids import RunId
from treadle.runtime.over_http.commanding import OverHttp
from treadle.runtime.over_http.connection import segment
from treadle.runtime.over_http.reading import fitted
from treadle.runtime.view.run_queue import QueuedRun
from treadle.runtime.view.stats import WorkflowStats
from treadle.runtime.view.workflow_shapes import DefinitionDifference, VersionRow, WorkflowRow

Json = Any


class ServiceWorkflows:
    """See the module's docstring."""

    _commander: OverHttp

    async def _get(self, workflow: str, path: str, **query: Json) -> Json:
        return await self._commander.connection.get(f"/workflows/{segment(workflow)}{path}", query)

    async def queue(self, workflow: str, limit: int = 100) -> list[QueuedRun]:
        """As that of a store."""
        rows = await self._get(workflow, "/queue", limit=limit)
        return [fitted(row, QueuedRun) for row in rows["items"]]

    async def workflow_rows(self) -> list[WorkflowRow]:
        """As that of a store."""
        return [fitted(row, WorkflowRow) async for row in self._commander.reader.pages("/workflows", {})]

    async def versions(self, workflow: str, *, before: int | None = None, limit: int = 100) -> list[VersionRow]:
        """As that of a store."""
        rows = self._commander.reader.pages(f"/workflows/{segment(workflow)}/versions", {})
        found = []
        async for row in rows:
            if before is None or row["version"] < before:
                found.append(fitted(row, VersionRow))
            if len(found) == limit:
                break
        return found

    async def deployed_at(self, workflow: str, version: int) -> int | None:
        """As that of a store."""
        at: int | None = (await self._get(workflow, f"/versions/{version}"))["deployed"]
        return at

    async def drawn_graph(self, workflow: str, version: int | None = None) -> DrawnGraph:
        """As that of a store."""
        return msgspec.convert(await self._get(workflow, "/graph", version=version), DrawnGraph)

    async def graph_text(
        self, workflow: str, version: int | None = None, *, format: Literal["mermaid", "svg"] = "mermaid"
    ) -> str:
        """As that of a store."""
        which = f"&version={version}" if version is not None else ""
        path = f"/workflows/{segment(workflow)}/graph?format={format}{which}"
        return (await self._commander.connection.download(path)).decode()

    async def workflow_difference(self, workflow: str, begin: int, end: int) -> DefinitionDifference:
        """As that of a store."""
        told = await self._get(workflow, "/diff", **{"from": begin, "to": end})
        return msgspec.convert(told, DefinitionDifference)

    async def stats(self, workflow: str, since: int | None = None) -> WorkflowStats:
        """As that of a store."""
        return msgspec.convert(await self._get(workflow, "/stats", since=since), WorkflowStats)

    async def run_counts(self, workflow: str | None = None, since: int | None = None) -> dict[str, dict[str, int]]:
        """As that of a store; `since` only of one workflow."""
        if workflow is not None:
            runs = (await self.stats(workflow, since)).runs
            return {workflow: runs} if runs else {}
        if since is not None:
            raise CommandRefused("BAD_REQUEST", "a service counts runs since an instant for one workflow at a time")
        return {row.workflow: row.runs for row in await self.workflow_rows() if row.runs}

    async def signal_all(
        self,
        name: str,
        data: Json = None,
        *,
        key: Json = None,
        id: str | None = None,
        sees: Callable[[str], bool] | None = None,
    ) -> list[RunId]:
        """As that of a store. The service knows which workflows its caller sees."""
        if sees is not None:
            raise CommandRefused("BAD_REQUEST", "a key says which workflows a service's caller sees")
        given = {"name": name, "data": data, "key": key, "id": id}
        body = {field: value for field, value in given.items() if value is not None}
        told = await self._commander.connection.send("POST", "/signals", body)
        return [RunId(run) for run in told["runs"]]

    async def signal(self, name: str, data: Json = None, *, key: Json = None, id: str | None = None) -> list[str]:
        """As that of a store."""
        return list(await self.signal_all(name, data, key=key, id=id))

    async def drop_letter(self, row: int) -> None:
        """As that of a store."""
        await self._commander.connection.send("DELETE", f"/dead-letters/{row}")

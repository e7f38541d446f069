"""The deployed workflows: documents of the store, compiled when they are first needed.

Owns the graphs. Implements the kernel's catalog port: the newest version of every name is found without waiting, an
older one once `graph` has read it. A version is immutable, so only the number of the newest version can become stale;
`refresh` reads it anew.

A workflow's `canvas` is its drawing, the layout that an editor shows. It is a document of its own beside the version
and may change without a new version. No graph holds it, and no engine reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from treadle.expression.view import CEL_BYTES_MAX
from treadle.graph.compile import compile_graph
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model.definition import Workflow
from treadle.model.errors import Rejection
from treadle.model.events import Beginning, Event, RunMigrated, RunQueued, RunStarted
from treadle.store.port import Store, StoredDocument
from treadle.store.service import ServiceStore

Json = Any
KIND = "workflow"
DRAWING = "_drawing"
"""Kind of the documents with drawings. Their names are `<workflow>@<version>`; only the newest drawing is kept."""

DEPLOYED = "_deployed"
"""Kind of the documents that say when a version was deployed. Their names are those of drawings."""


class VersionMissing(Exception):
    """The kernel asked for a version that is not in memory, or for the newest version of an unknown name. The
    coordinator reads it from the store and decides again."""

    def __init__(self, name: str, version: int | None) -> None:
        super().__init__(f"{name} version {version or 'unknown'}")
        self.name = name
        self.version = version


class Library:
    """See the module's docstring."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._newest: dict[str, StoredDocument] = {}
        self._graphs: dict[tuple[str, int], ExecutionGraph] = {}
        self._versions: dict[str, dict[int, ExecutionGraph]] = {}
        """By name: the same graphs by version. Each of them refers to this dict."""
        self._absent: set[tuple[str, int]] = set()
        self._given: dict[str, tuple[Workflow, ExecutionGraph]] = {}
        """By name: the object last deployed, and its graph. Many programs deploy the same object before every run."""
        self._drawn: dict[str, Workflow] = {}
        """By name: the object whose drawing was last kept."""
        self._deployed = 0
        self.cel_bytes_max = CEL_BYTES_MAX
        """How much data an expression may read, as set by the operator. Applies to graphs compiled from now on."""

    async def refresh(self) -> None:
        """Reads the newest version of every workflow."""
        deployed = -1
        while deployed != self._deployed:  # a version deployed here meanwhile may not be in the list
            deployed = self._deployed
            documents = await self._store.documents(KIND)
        self._newest = {document.name: document for document in documents}
        self._absent.clear()

    async def refresh_some(self, names: Iterable[str]) -> None:
        """Reads the newest version of these workflows only: there may be thousands, and each is a whole definition."""
        for name in names:
            for document in await self._store.documents(KIND, name):
                known = self._newest.get(name)
                if known is None or known.version < document.version:
                    self._newest[name] = document
        self._absent.clear()

    def names(self) -> list[str]:
        """Names of all deployed workflows, sorted."""
        return sorted(self._newest)

    async def deploy(self, workflow: Workflow, expected: int | None = None) -> ExecutionGraph:
        """Deploys a workflow as a new version. Deploying the newest version again changes nothing; deploying the same
        object again does not even ask the store. Raises StoreConflict(STALE_VERSION) if the newest version is not the
        `expected` one; 0: there is none."""
        same = self._given.get(workflow.workflow)
        if (
            expected is None
            and same is not None
            and same[0] is workflow
            and same[1].version == self.newest(workflow.workflow)
        ):
            return same[1]
        graph = self._compile(workflow)
        store = cast(ServiceStore, self._store)
        body = as_document(graph.definition)
        document = await store.put_document(KIND, workflow.workflow, graph.hash, body, expected)
        self._newest[document.name] = document
        self._deployed += 1
        key = (document.name, document.version)
        if key not in self._graphs:
            self._keep(key, graph)
        self._given[workflow.workflow] = (workflow, self._graphs[key])
        return self._graphs[key]

    async def note_deployed(self, graph: ExecutionGraph, at: int) -> None:
        """Keeps when a version was deployed."""
        name = drawing_name(graph.workflow_name, graph.version)
        if not await self._store.documents(DEPLOYED, name):
            await self._store.put_document(DEPLOYED, name, graph.hash, {"at": at})

    async def drawing(self, name: str, version: int) -> Json:
        """The drawing of a version; None if it has none. Version 0.1 of Treadle kept it in the definition."""
        kept = await self._store.documents(DRAWING, drawing_name(name, version))
        if kept:
            return kept[0].body
        documents = await self._store.documents(KIND, name, version)
        return documents[0].body.get("canvas") if documents else None

    async def draw(self, name: str, version: int, drawing: Json) -> bool:
        """Keeps the drawing of a version. Returns whether it has changed."""
        if await self.drawing(name, version) == drawing:
            return False
        hash = hashlib.sha256(msgspec.json.encode(drawing, order="sorted")).hexdigest()
        await self._store.put_document(DRAWING, drawing_name(name, version), hash, drawing)
        return True

    async def redraw(self, name: str, version: int, drawing: Json, expected: int) -> int:
        """Keeps the drawing of a version if the one that stands has the number `expected`; 0: there is none. Returns
        its new number. Raises StoreConflict(STALE_VERSION)."""
        hash = hashlib.sha256(msgspec.json.encode(drawing, order="sorted")).hexdigest()
        store = cast(ServiceStore, self._store)
        kept = await store.put_document(DRAWING, drawing_name(name, version), hash, drawing, expected)
        return kept.version

    async def draw_deployed(self, workflow: Workflow, version: int) -> bool:
        """Keeps the drawing in a definition; a definition without one leaves the kept drawing alone. Returns whether it
        has changed. The same object given again does not ask the store."""
        if workflow.canvas is None or self._drawn.get(workflow.workflow) is workflow:
            return False
        changed = await self.draw(workflow.workflow, version, workflow.canvas)
        self._drawn[workflow.workflow] = workflow
        return changed

    def newest(self, name: str) -> int | None:
        """Number of the newest version known in this process; None: the name is unknown."""
        document = self._newest.get(name)
        return document.version if document is not None else None

    async def graph(self, name: str, version: int | None = None) -> ExecutionGraph | None:
        """The graph of a version, None for the newest. Reads the store if need be. Returns None if there is none."""
        try:
            found = self.lookup(name, version)
        except VersionMissing:
            documents = await self._store.documents(KIND, name, version)
            if documents:
                if version is None:
                    self._newest[name] = documents[0]
                return self._compiled(documents[0])
            self._absent.add((name, version or 0))
            return None
        if found is None and version is None:
            documents = await self._store.documents(KIND, name)
            if documents:
                self._newest[name] = documents[0]
                return self._compiled(documents[0])
        return found

    def lookup(self, name: str, version: int | None) -> ExecutionGraph | None:
        """The graph of a version for the kernel, which cannot wait. Returns None only after the store was asked:
        another process may have deployed the workflow a moment ago. Raises VersionMissing if the store must be read."""
        if version is None:
            document = self._newest.get(name)
            if document is not None:
                return self._compiled(document)
            if (name, 0) in self._absent:
                return None
            raise VersionMissing(name, None)
        known = self._graphs.get((name, version))
        if known is not None:
            return known
        newest = self._newest.get(name)
        if newest is not None and newest.version == version:
            return self._compiled(newest)
        if (name, version) in self._absent:
            return None
        raise VersionMissing(name, version)

    def _compiled(self, document: StoredDocument) -> ExecutionGraph:
        key = (document.name, document.version)
        if key not in self._graphs:
            graph = self._compile(msgspec.convert(document.body, Workflow))
            graph.hash = document.hash
            self._keep(key, graph)
        return self._graphs[key]

    def _keep(self, key: tuple[str, int], graph: ExecutionGraph) -> None:
        name, graph.version = key
        graph.versions = self._versions.setdefault(name, {})
        graph.versions[graph.version] = self._graphs[key] = graph

    async def load_versions(self, name: str, history: Iterable[Event]) -> None:
        """Loads the versions that this part of a run's history names, so that it can be folded."""
        for event in history:
            kind = type(event)
            if kind is RunStarted or kind is RunMigrated or kind is RunQueued:
                await self.graph(name, event.version if isinstance(event, Beginning) else event.to)  # type: ignore[attr-defined]

    async def graph_of(self, history: Sequence[Event]) -> ExecutionGraph | None:
        """The graph with which a whole history is folded, from its first event on. None: the version is gone."""
        started = history[0]
        assert isinstance(started, Beginning)
        await self.load_versions(started.workflow, history)
        return await self.graph(started.workflow, started.version)

    def _compile(self, workflow: Workflow) -> ExecutionGraph:
        graph = compile_graph(_bare(workflow))
        graph.cel_bytes_max = self.cel_bytes_max
        graph.shards = self._store.shards
        return graph


def not_deployed(workflow: str, version: int) -> Rejection:
    """The rejection of a start whose workflow, or that version of it, was never deployed. Version 0: any."""
    which = f"version {version} of it" if version else "it"
    return Rejection("NOT_FOUND", f"there is no workflow {workflow!r}: deploy {which} first")


def _bare(workflow: Workflow) -> Workflow:
    """The workflow without its drawing."""
    return workflow if workflow.canvas is None else msgspec.structs.replace(workflow, canvas=None)


def drawing_name(name: str, version: int) -> str:
    """The name of the documents about one version."""
    return f"{name}@{version}"


def as_document(workflow: Workflow) -> Any:
    """The canonical definition as plain JSON, as it is stored."""
    return msgspec.to_builtins(workflow)

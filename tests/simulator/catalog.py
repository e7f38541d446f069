"""The deployed workflows of a simulated world: the kernel's catalog port over what the seed generated."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from treadle.graph.compile import compile_graph
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model.definition import Workflow


class Deployment:
    """Every workflow, perhaps in several versions: those of one name in the order in which they are deployed."""

    def __init__(self, workflows: Iterable[Workflow]) -> None:
        self._versions: dict[str, dict[int, ExecutionGraph]] = {}
        self._compiled: dict[tuple[str, str | None], ExecutionGraph] = {}
        for workflow in workflows:
            graph = compile_graph(workflow)
            graph.versions = self._versions.setdefault(workflow.workflow, {})
            graph.version = len(graph.versions) + 1
            graph.versions[graph.version] = graph
            self._compiled[workflow.workflow, workflow.description] = graph

    def lookup(self, name: str, version: int | None) -> ExecutionGraph | None:
        return self._versions.get(name, {}).get(version or 1)

    def compile(self, workflow: Workflow) -> ExecutionGraph:
        """What a library would compile, compiled once for all of them. Each library gets a copy of the outermost part,
        because it notes there which other versions it knows. Versions of a workflow differ in their description."""
        return copy(self._compiled[workflow.workflow, workflow.description])

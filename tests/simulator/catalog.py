"""The deployed workflows of a simulated world: the kernel's catalog port over what the seed generated."""

from __future__ import annotations

from collections.abc import Iterable

from treadle.graph.compile import compile_graph
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model.definition import Workflow


class Deployment:
    """Every workflow in one version."""

    def __init__(self, workflows: Iterable[Workflow]) -> None:
        self._graphs = {workflow.workflow: compile_graph(workflow) for workflow in workflows}

    def lookup(self, name: str, version: int | None) -> ExecutionGraph | None:
        return self._graphs.get(name) if version in (None, 1) else None

    def compile(self, workflow: Workflow) -> ExecutionGraph:
        """What a library would compile, compiled once for all of them: a graph never changes."""
        return self._graphs[workflow.workflow]

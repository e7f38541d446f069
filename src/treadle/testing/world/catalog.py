"""The workflows of a world: every deployed version, compiled, with its mocks in place.

Owns the replacement of mocked tasks in a *definition*: a mocked node of any kind becomes an ordinary node with a
one-step task, so that the kernel needs to know nothing about mocks. Promises the kernel's catalog port.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from treadle.graph.compile import compile_graph
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model.definition import Action, Compensation, Node, Step, Task, Workflow
from treadle.store.port import Store
from treadle.testing.world.instant import Wait
from treadle.testing.world.mocks import MockPlace, Script

WHOLE = "mock"
"""Ref of the one step that stands for a whole mocked task."""


@dataclass(slots=True)
class MockedVersion:
    """One version: as the author wrote it, and as it runs here."""

    original: Workflow
    graph: ExecutionGraph
    version: int


class WorldCatalog:
    """Deployed versions by name. The store gives the version numbers."""

    def __init__(self, store: Store, script: Script, wait: Wait) -> None:
        self._store = store
        self._wait = wait
        self._script = script
        self._versions: dict[tuple[str, int], MockedVersion] = {}
        self._graphs: dict[str, dict[int, ExecutionGraph]] = {}
        self._newest: dict[str, int] = {}

    def deploy(self, workflow: Workflow) -> MockedVersion:
        """Deploys a version; deploying the newest again changes nothing."""
        self._script.learn(workflow.nodes)
        played = mocked(workflow, self._script)
        graph = compile_graph(played)
        stored = self._wait(self._store.put_document("workflow", workflow.workflow, graph.hash, played))
        graph.version, graph.shards = stored.version, self._store.shards
        graph.versions = self._graphs.setdefault(workflow.workflow, {})
        graph.versions.setdefault(stored.version, graph)
        deployed = MockedVersion(workflow, graph, stored.version)
        self._newest[workflow.workflow] = stored.version
        return self._versions.setdefault((workflow.workflow, stored.version), deployed)

    def find(self, name: str, version: int | None = None) -> MockedVersion | None:
        wanted = self._newest.get(name, 0) if version is None else version
        return self._versions.get((name, wanted))

    def lookup(self, name: str, version: int | None) -> ExecutionGraph | None:
        """The graph of a version, as the kernel asks for it."""
        deployed = self.find(name, version)
        return deployed.graph if deployed else None


def mocked(workflow: Workflow, script: Script) -> Workflow:
    """The definition with every mocked task replaced."""
    nodes = {ref: _mocked_node(ref, node, script) for ref, node in workflow.nodes.items()}
    return replace(workflow, nodes=nodes)


def _mocked_node(ref: str, node: Node, script: Script) -> Node:
    if script.covers(MockPlace(ref)):
        node = replace(node, task=mocked_task(node.task))
    if node.compensate is not None and script.covers(MockPlace(ref, compensation=True)):
        undo: Compensation = node.compensate
        node = replace(node, compensate=replace(undo, task=mocked_task(undo.task)))
    return node


def mocked_task(task: Task | None) -> Task:
    """The task that a whole mock is executed as: one step, under the schemas and limits of the task it replaces."""
    steps = [Step(ref=WHOLE, action=Action(kind="mock"))]
    return Task(steps=steps) if task is None else replace(task, steps=steps)

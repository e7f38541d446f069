"""Outputs that another version reads and the run's own has not kept (6.5).

A run keeps a node's output in scope only if some expression of its version reads it. A version that it is migrated to
may read others; these are in the history. `unkept` says which nodes they are of, `outputs_of` finds them.
"""

from __future__ import annotations

from collections.abc import Iterable

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.renaming import Renaming
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.ids import Frame, Frames, GroupId, TokenId
from treadle.model.references import NodeOutput
from treadle.model.states import Mode, Waiting


class HistoryNeeded(Exception):
    """A migration cannot be decided without the history: `MigrateRun.outputs` must be filled in from it."""


def unkept(old: ExecutionGraph, new: ExecutionGraph, nodes: dict[str, str]) -> frozenset[str]:
    """Nodes of the new version whose outputs it reads, although the old version has not kept them."""
    names = Renaming(old, new, nodes)
    found = {names.ref(ref) for ref, node in old.nodes.items() if not node.read}
    return frozenset(ref for ref in found if ref in new.nodes and new.nodes[ref].read)


def outputs_of(
    history: Iterable[e.Event], state: RunState, new: ExecutionGraph, nodes: dict[str, str]
) -> tuple[NodeOutput, ...]:
    """The latest of those outputs in every scope that is still there. `state` is what the history leads to."""
    reader = _Reader(state)
    for event in history:
        reader.take(event)
    wanted = unkept(state.graph, new, nodes)
    return tuple(
        NodeOutput(scope, nodes.get(node, node), output)
        for (scope, node), output in reader.outputs.items()
        if nodes.get(node, node) in wanted
    )


class _Reader:
    """Folds a history into the latest outputs by scope and node."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._visits: dict[TokenId, tuple[str, Frames]] = {}
        self._joined: set[GroupId] = set()
        """Groups with a join: the outputs of their branches are visible inside them alone."""
        self.outputs: dict[tuple[Frame | None, str], e.Json] = {}

    def take(self, event: e.Event) -> None:
        if isinstance(event, e.TokenCreated):
            if event.mode is Mode.FORWARD:
                self._visits[event.token] = (event.node, event.frames)
        elif isinstance(event, e.GroupOpened):
            if self._state.graph.sites_of(event.names):
                self._joined.add(event.group)
        elif isinstance(event, e.RunMigrated):
            self._rename(event.nodes)
        elif isinstance(event, e.TokenCompleted):
            if event.output is not None:
                self._keep(event.token, event.output)
        elif isinstance(event, e.TokenWaiting) and event.reason is Waiting.SIBLINGS and event.output is not None:
            self._keep(event.token, event.output)

    def _rename(self, nodes: dict[str, str]) -> None:
        if nodes:
            self._visits = {token: (nodes.get(node, node), at) for token, (node, at) in self._visits.items()}
            self.outputs = {(scope, nodes.get(node, node)): output for (scope, node), output in self.outputs.items()}

    def _keep(self, token: TokenId, output: e.Json) -> None:
        visit = self._visits.get(token)
        if visit is None:
            return
        node, frames = visit
        for frame in reversed(frames):
            group = self._state.groups.get(frame[0])
            if group is None and frame[0] in self._joined:
                return
            if group is not None and group.isolating:
                self.outputs[frame, node] = output
                return
        self.outputs[None, node] = output

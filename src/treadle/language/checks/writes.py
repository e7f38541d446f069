"""Writes to the run's state, and which of them can come before which node.

A write is seen behind its node, unless every way there leads through a join that drops the branch's
overlay: a join with `merge` keeps nothing of a branch but what it merges (2.4). What may run at the same
time counts as "can have written".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from treadle.expression.paths import Path as DataPath
from treadle.expression.paths import parse_path
from treadle.language.checks.flow import Flow
from treadle.language.checks.regions import Regions
from treadle.language.problem import Path
from treadle.model.definition import Transition

State = DataPath
"""A path below `state` (or `output`), its root included."""


class Write(NamedTuple):
    """One place that is written: by a node's output mapping, or by a join's merge."""

    path: State
    at: Path
    node: str
    """The node whose output is written; for a merge the node behind the join, which reads it."""
    merge: Transition | None = None


def writes_of(flow: Flow) -> list[Write]:
    """Every write of the workflow."""
    found = [
        Write(parse_path(target), ("nodes", ref, "output_mapping", target), ref)
        for ref, node in flow.workflow.nodes.items()
        for target in node.output_mapping or ()
    ]
    for index, transition in flow.edges:
        sync = transition.synchronization
        if sync is not None and sync.merge is not None and not sync.merge.target.startswith("$._visit"):
            at: Path = ("transitions", index, "synchronization", "merge", "target")
            found.append(Write(parse_path(sync.merge.target), at, transition.to, transition))
    return found


class Paths:
    """A set of paths that finds quickly those that touch another one. Each has a root and at least one key."""

    def __init__(self, paths: Iterable[DataPath]) -> None:
        self._by_key: dict[DataPath, list[DataPath]] = {}
        for path in dict.fromkeys(paths):
            self._by_key.setdefault(path[:2], []).append(path)

    def touching(self, path: DataPath) -> list[DataPath]:
        return [other for other in self._by_key.get(path[:2], ()) if overlap(other, path)]


def overlap(one: DataPath, other: DataPath) -> bool:
    """Whether two paths touch: one is the beginning of the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


class Visibility:
    """The writes that a node can see."""

    def __init__(self, flow: Flow, regions: Regions) -> None:
        self.flow = flow
        self.regions = regions
        self._seen: dict[str, frozenset[str]] = {}

    def can_precede(self, write: Write, node: str) -> bool:
        """Whether the write can have happened, and be visible, before a visit of the node begins."""
        if write.merge is not None:
            sync = write.merge.synchronization
            if sync is not None and sync.merge is not None and sync.merge.streaming:
                return True
            if write.node == node:
                return True
        return node in self.seen_from(write.node) or self._beside(write.node, node)

    def seen_from(self, ref: str) -> frozenset[str]:
        """The nodes that can see what a visit of `ref` wrote."""
        if ref not in self._seen:
            dropping = {name for name in self.regions.isolating if ref in self.regions.strictly_inside(name)}
            starts = [t.to for _, t in self.flow.out[ref] if not _drops(t, dropping)]
            self._seen[ref] = self.flow.reach(starts, lambda transition: not _drops(transition, dropping))
        return self._seen[ref]

    def _beside(self, writer: str, reader: str) -> bool:
        """Whether the writer may run at the same time and is not hidden in a branch that the reader is not part of."""
        for name in self.regions.isolating:
            region = self.regions.strictly_inside(name)
            if writer in region and reader not in region:
                return False
        return self.regions.may_overlap(writer, reader)


def _drops(transition: Transition, groups: set[str]) -> bool:
    sync = transition.synchronization
    return (
        sync is not None
        and sync.sibling_group in groups
        and sync.merge is not None
        and sync.on_early_complete != "pass_through"
    )

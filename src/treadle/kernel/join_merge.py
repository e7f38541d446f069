"""Merging at a firing join: the writes into the enclosing scope, from merged contributions or from the branches' own
writes laid over one another (2.4, 1.7)."""

from __future__ import annotations

from typing import Any

from treadle.expression.paths import Path
from treadle.expression.values import json_equal
from treadle.graph.execution_graph import JoinSite
from treadle.kernel import merge
from treadle.kernel.deciding import Deciding
from treadle.kernel.group_state import Arrival, Group, SiteState
from treadle.model.events import Write
from treadle.model.ids import Frame, Frames

Json = Any


def arrivals_in_order(d: Deciding, state: SiteState, site: JoinSite) -> list[tuple[int, Arrival]]:
    """The arrivals of branches that have arrived, by branch index, then path (a canvas collector: inbound edge)."""
    found: list[tuple[int, Arrival]] = []
    arrivals = d.state.arrivals
    for branch in sorted(branch for branch in state.waiting if branch not in state.live):
        waiting = state.waiting[branch]
        if len(waiting) == 1:
            found.append((branch, arrivals[waiting[0]]))
            continue
        held = sorted((arrivals[identity] for identity in waiting), key=lambda arrival: path_key(arrival.path))
        if site.collects:
            held.sort(key=lambda arrival: d.graph.transitions[arrival.via].index)
        found.extend((branch, arrival) for arrival in held)
    return found


def path_key(path: str) -> list[str]:
    """Paths in the order people expect: branch 2 before branch 10."""
    return [f"{part:>20}" if part.isdigit() else part for part in path.split(".")]


def contributions(d: Deciding, group: Group, state: SiteState, site: JoinSite) -> list[merge.Contribution]:
    """The contribution of each arrival, and the error objects of failed branches where they count."""
    parts = [(branch, arrival.value) for branch, arrival in arrivals_in_order(d, state, site)]
    if site.sync.on_branch_failure == "include_errors" and site.sync.strategy.kind in ("all", "cel"):
        parts.extend((branch, {"_error": error.as_json()}) for branch, error in group.failed.items())
        parts.sort(key=lambda part: part[0])
    return parts


def merged_writes(d: Deciding, group: Group, state: SiteState, site: JoinSite) -> tuple[list[Write], Json, list[Path]]:
    """(writes to the enclosing scope, output of a collecting target, paths written differently by two branches)."""
    overlay = OverlayedWrites()
    branches: dict[int, list[Arrival]] = {}
    if len(d.state.scopes) > 1:  # else no branch has anything left of its own
        for branch, arrival in arrivals_in_order(d, state, site):
            branches.setdefault(branch, []).append(arrival)
    for branch, arrivals in branches.items():
        for frame in frames_inwards([arrival.frames[_depth(arrival, group) :] for arrival in arrivals]):
            scope = d.state.scopes.get(frame)
            for path, value in scope.leaves() if scope is not None else ():
                if path[0] == "nodes" or site.merge_source is None:
                    overlay.write(path, value, branch)
    output: Json = None
    if site.sync.merge is not None and site.merge_target is not None:
        value = merge.STRATEGIES[site.sync.merge.strategy](contributions(d, group, state, site))
        if site.collects:
            output = value
        else:
            overlay.write(site.merge_target, value, -1)
    return overlay.writes(), output, overlay.conflicts


def frames_inwards(stacks: list[Frames]) -> list[Frame]:
    """Every frame of the stacks once, outermost first: an inner branch has written later than the branch around it."""
    ordered: dict[Frame, None] = {}
    for depth in range(max(map(len, stacks), default=0)):
        for stack in stacks:
            if depth < len(stack):
                ordered[stack[depth]] = None
    return list(ordered)


class OverlayedWrites:
    """Writes of several branches laid over one another: later ones win, and paths with different values are
    remembered."""

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[Json, int]] = {}
        self._deep = False
        self.conflicts: list[Path] = []

    def write(self, path: Path, value: Json, branch: int) -> None:
        """Add a write of a branch."""
        before = self._kept.pop(path, None)
        if path[0] != "nodes":
            differs = before is not None and before[1] != branch and not json_equal(before[0], value)
            if (differs or self._overlaps(path, branch)) and path not in self.conflicts:
                self.conflicts.append(path)
            self._deep = self._deep or len(path) > 2
        self._kept[path] = (value, branch)

    def _overlaps(self, path: Path, branch: int) -> bool:
        """Whether another branch wrote a part of this value, or a value this is a part of."""
        if not self._deep and len(path) == 2:
            return False
        shorter = (min(len(path), len(other)) for other in self._kept)
        return any(
            other != path and other[:length] == path[:length] and by != branch
            for (other, (_, by)), length in zip(self._kept.items(), shorter, strict=True)
        )

    def writes(self) -> list[Write]:
        """All of them, in the order in which they must be made."""
        return [(path, value) for path, (value, _) in self._kept.items()]


def _depth(arrival: Arrival, group: Group) -> int:
    return next(place for place, (identity, _) in enumerate(arrival.frames) if identity == group.id)

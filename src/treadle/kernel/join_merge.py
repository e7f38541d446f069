"""What a firing join writes into the enclosing scope: merged contributions, or the branches' own writes overlaid
(2.4, 1.7)."""

from __future__ import annotations

from typing import Any

from treadle.expression.paths import Path
from treadle.graph.execution_graph import JoinSite
from treadle.kernel import merge
from treadle.kernel.deciding import Deciding
from treadle.kernel.state import Arrival, Group, SiteState
from treadle.model.events import Write

Json = Any


def arrivals_in_order(d: Deciding, state: SiteState, site: JoinSite) -> list[tuple[int, Arrival]]:
    """The arrivals of branches that have arrived, by branch index, then path (a canvas collector: inbound edge)."""
    found: list[tuple[int, Arrival]] = []
    for branch in sorted(branch for branch in state.waiting if branch not in state.live):
        held = [d.state.arrivals[identity] for identity in state.waiting[branch]]
        if len(held) > 1:
            held.sort(key=lambda a: (d.graph.transitions[a.via].index if site.collects else 0, path_key(a.path)))
        found.extend((branch, arrival) for arrival in held)
    return found


def path_key(path: str) -> list[tuple[int, int, str]]:
    """Paths in the order people expect: branch 2 before branch 10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in path.split(".")]


def contributions(d: Deciding, group: Group, state: SiteState, site: JoinSite) -> list[merge.Contribution]:
    """What each arrival brings, and the error objects of failed branches where they count."""
    parts = [(branch, arrival.value) for branch, arrival in arrivals_in_order(d, state, site)]
    if site.sync.on_branch_failure == "include_errors" and site.sync.strategy.kind in ("all", "cel"):
        parts.extend((branch, {"_error": error.as_json()}) for branch, error in group.failed.items())
        parts.sort(key=lambda part: part[0])
    return parts


def merged_writes(d: Deciding, group: Group, state: SiteState, site: JoinSite) -> tuple[list[Write], Json, list[Path]]:
    """(writes to the enclosing scope, output of a collecting target, paths written differently by two branches)."""
    kept: dict[Path, Json] = {}
    conflicts: list[Path] = []
    owner: dict[Path, int] = {}
    for branch, arrival in arrivals_in_order(d, state, site):
        for frame in arrival.frames[_depth(arrival, group) :]:
            scope = d.state.scopes.get(frame)
            if scope is None:
                continue
            for path, value in scope.leaves():
                if path[0] != "nodes" and site.merge_source is not None:
                    continue
                if path in kept and kept[path] != value and owner[path] != branch and path[0] != "nodes":
                    conflicts.append(path)
                kept[path] = value
                owner[path] = branch
    writes: list[Write] = list(kept.items())
    output: Json = None
    if site.sync.merge is not None and site.merge_target is not None:
        value = merge.STRATEGIES[site.sync.merge.strategy](contributions(d, group, state, site))
        if site.collects:
            output = value
        else:
            writes.append((site.merge_target, value))
    return writes, output, list(dict.fromkeys(conflicts))


def _depth(arrival: Arrival, group: Group) -> int:
    return next(place for place, (identity, _) in enumerate(arrival.frames) if identity == group.id)

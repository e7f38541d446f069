"""Bringing a token along a transition to its target: a visit begins, or an arrival is held at a join."""

from __future__ import annotations

from typing import Any

from treadle.expression.paths import MISSING
from treadle.graph.execution_graph import GraphNode, GraphTransition, JoinSite
from treadle.kernel import entity, merge, node_join_arrival, standing, timers, writing
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.evolve_tokens import scope_frame
from treadle.kernel.group_state import Group, SiteState
from treadle.kernel.join_merge import contributions
from treadle.kernel.route import Origin
from treadle.kernel.view import TokenView, branch_output
from treadle.model.errors import Error
from treadle.model.events import Write
from treadle.model.ids import Frames, TokenId

Json = Any


def deliver(d: Deciding, t: GraphTransition, origin: Origin, frames: Frames, path: str) -> None:
    """One token goes along `t` with these frames and this path."""
    if d.state.entity is not None:
        entity.depart(d, t, origin)
    loops = origin.loops
    if loops and t.resets:
        loops = {name: count for name, count in loops.items() if name not in t.resets} or None
    if t.definition.loop_max_iterations is not None:
        loops = {**(loops or {}), t.id: (loops or {}).get(t.id, 0) + 1}
    if t.site is not None:
        _arrive(d, t, origin, frames, path, loops)
    else:
        enter(d, t, origin, frames, path, loops)


def enter(
    d: Deciding, t: GraphTransition, origin: Origin, frames: Frames, path: str, loops: dict[str, int] | None
) -> None:
    """Enter the target: be held at the node's own join if it has one, else begin a new visit."""
    if t.target.definition.join is not None:
        node_join_arrival.arrive(d, t, origin, frames, path, loops)
    else:
        create(d, t.target, t, origin, frames=frames, path=path, loops=loops)


def create(
    d: Deciding,
    node: GraphNode,
    t: GraphTransition | None,
    origin: Origin,
    *,
    frames: Frames,
    path: str,
    loops: dict[str, int] | None,
    output: Json = None,
    merged: list[str] | None = None,
) -> TokenId:
    """A new visit of `node`."""
    mutex = node.definition.mutex
    identity = d.token_created(
        node.ref,
        path,
        frames,
        t.id if t is not None else None,
        origin.token or None,
        why=t.condition.text if t is not None and t.condition is not None else None,
        output=output,
        last_error=origin.last_error,
        loops=loops,
        holds=mutex.name if mutex is not None and mutex.keep and origin.holds == mutex.name else None,
        merged=merged,
    )
    d.ready.append(identity)
    if node.triggers:
        timers.arm(d, d.state.tokens[identity])
    return identity


def _arrive(
    d: Deciding, t: GraphTransition, origin: Origin, frames: Frames, path: str, loops: dict[str, int] | None
) -> None:
    site = t.site
    assert site is not None
    holder = origin.token if origin.attached else TokenId(0)
    group = answering(d, frames, site.key)
    if group is None:
        if not passes_silently(d, site):
            d.join_mismatch(origin.token, t.id, site.sync.sibling_group)
        _check_limit(d, t, path)
        enter(d, t, origin, frames, path, loops)
        return
    state = standing.site_of(group, site.target.ref)
    if state.status == "open":
        value = contribution(d, site, origin.token, origin.output, frames, group)
        d.join_arrived(holder, t.target.ref, t.id, path, frames, group=group.id, value=value, loops=loops)
        if site.notices:
            notice_arrival(d, site, state, group)
        d.touch(frames)
        return
    d.join_arrived(holder, t.target.ref, t.id, path, frames, group=group.id, absorbed=True)
    d.touch(frames)
    if state.status == "fired" and site.sync.on_early_complete == "pass_through":
        alone = origin._replace(attached=False)
        _keep_writes(d, site, frames, group)
        _check_limit(d, t, group.path)
        enter(d, t, alone, group.frames, group.path, loops)


def _keep_writes(d: Deciding, site: JoinSite, frames: Frames, group: Group) -> None:
    """Keep what the branch of a token wrote that passes a fired join alone: the outputs of its visits, and its other
    writes unless the join merges those itself."""
    inside = frames[standing.position(frames, group.id) :]
    scopes = [scope for frame in inside if (scope := d.state.scopes.get(frame)) is not None]
    writes: list[Write] = [
        (path, value)
        for scope in scopes
        for path, value in scope.leaves()
        if path[0] == "nodes" or site.merge_source is None
    ]
    if writes and writing.merge_problem(d, group.frames, writes) is None:
        d.context_updated(writes, scope_frame(d.state, group.frames))


def _check_limit(d: Deciding, t: GraphTransition, path: str) -> None:
    """Check the limit of visits for a visit that no dispatch has counted."""
    limit = d.graph.definition.limits.max_tokens_per_run
    if d.state.visits >= limit and t.target.definition.join is None:
        text = f"max_tokens_per_run is {limit} and transition {t.id!r} would exceed it"
        raise RunFails(Error("LIMIT_EXCEEDED", text, t.target.ref, path))


def notice_arrival(d: Deciding, site: JoinSite, state: SiteState, group: Group) -> None:
    """Start the join's clock with the first arrival, and write a streaming merge with each."""
    if site.sync.timeout_ms is not None and state.timer is None:
        timers.start_join(d, d.now + site.sync.timeout_ms, group.id, site.target.ref)
    spec = site.sync.merge
    if spec is not None and spec.streaming and site.merge_target is not None and not site.collects:
        try:
            value = merge.STRATEGIES[spec.strategy](contributions(d, group, state, site))
        except merge.MergeType:
            return  # reported when the join fires
        writes: list[Write] = [(site.merge_target, value)]
        if writing.merge_problem(d, group.frames, writes) is None:
            d.context_updated(writes, scope_frame(d.state, group.frames), streamed=True)


def answering(d: Deciding, frames: Frames, key: str) -> Group | None:
    """The innermost group around with this name."""
    for identity, _ in reversed(frames):
        group = d.state.groups[identity]
        if key in group.names:
            return group
    return None


def passes_silently(d: Deciding, site: JoinSite) -> bool:
    """A join on a static `spawn_count: 1` without a name: there never is a group, deploy has warned (2.3)."""
    if not site.key.startswith("transition:"):
        return False
    t = d.graph.transitions[site.key.removeprefix("transition:")]
    return not t.replicates and t.definition.sibling_group is None


def contribution(d: Deciding, site: JoinSite, token: TokenId, output: Json, frames: Frames, group: Group) -> Json:
    """The value that a visit, or a fan-out drawn straight into its join, contributes to the merge."""
    path = site.merge_source
    if path is None:
        return None
    if site.branch_path is not None:
        return branch_output(d.state, frames, group.id, site.branch_path)
    if path[0] == "_visit":
        if group.items is not None and group.origin == token:  # a splitter drawn straight into its collector
            return group.items[standing.branch_in(frames, group.id)]
        return output
    value = TokenView(d.state, frames).get(path)
    return None if value is MISSING else value

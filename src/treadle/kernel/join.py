"""Joins on sibling groups: when they fire, fail or die, and what happens to the visits at them (2.5, 2.16, A7, A10).

Theory of operation. For a join J of group instance G every *branch* is exactly one of

    live      some unit of it, not waiting at J, can still reach J by the static graph (or it is not spawned yet)
    arrived   at least one arrival waits at J and no unit of it is live
    failed    a failure inside it went unhandled
    ended     none of these: it routed away, or was cancelled

and J is decided by these four numbers alone, never by tokens or hops. `units` keeps them; `evaluate` is called for
every group in which something moved, once the dispatch that moved it is complete; one that rests is passed over.

Invariants
 1. A site leaves `open` exactly once: fired, failed or dead. Firing is one event; the continuation is created with it.
 2. A continuation has the frames and the path of the fan-out's origin: the group's frame and all inside it are popped.
 3. A fired join completes the visits that waited at it; a failed one cancels them (SYNC_TIMEOUT: times them out).
 4. A fan-in that fails is a failure at the target before it ran, in the enclosing scope; it is no visit of the target.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import GraphTransition, JoinSite
from treadle.kernel import cancel, causes, deliver, failure, merge, spawning, standing, writing
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.group_state import Arrival, Group, SiteState
from treadle.kernel.join_merge import merged_writes
from treadle.kernel.join_verdict import verdict
from treadle.kernel.route import Origin
from treadle.kernel.short_ways import counting
from treadle.kernel.standing import unspawned
from treadle.kernel.view import group_name, item_of, races
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.ids import TokenId

Json = Any


def evaluate(d: Deciding, group: Group) -> None:
    """Evaluate every join of a group, then let further branches begin."""
    if counting.rests(group):
        return
    for state in group.sites:
        if state.status == "open":
            _evaluate_site(d, group, state)
    _close_when_drained(d, group)
    if unspawned(group) and d.running:
        spawning.spawn_branches(d, group)
    _unblock(d, group)


def _evaluate_site(d: Deciding, group: Group, state: SiteState) -> None:
    site = d.graph.sites[state.index]
    if state.arrived and races(d.graph, group, "on_first_completion"):
        cancel_live(d, group, state, "first completion")
    action, kind, why = verdict(d, group, state, site)
    if action == "fire" and not _blocked(d, group, site):
        fire(d, group, state, site, why)
    elif action == "fail":
        fail(d, group, state, site, Error(kind, f"join at {site.target.ref!r}: {why}", site.target.ref, group.path))
    elif action == "dead":
        _clear_timer(d, state)
        d.join_dead(site.target.ref, group.id)


def fire(d: Deciding, group: Group, state: SiteState, site: JoinSite, why: str, policy: str | None = None) -> None:
    """Fire the join: merge, complete the waiting visits, create one continuation, and deal with the rest."""
    minimum = site.sync.min_success_count
    if minimum is not None and state.arrived < minimum:
        why = f"{state.arrived} branches succeeded, min_success_count is {minimum}"
        fail(d, group, state, site, _join_error("MIN_SUCCESS_NOT_MET", why, group, site))
        return
    try:
        writes, output, conflicts = merged_writes(d, group, state, site)
    except merge.MergeType as problem:
        fail(d, group, state, site, _join_error("MERGE_TYPE", str(problem), group, site))
        return
    refusal = writing.merge_problem(d, group.frames, writes)
    if refusal is not None:
        fail(d, group, state, site, _join_error("SCHEMA", refusal, group, site))
        return
    limit = d.graph.definition.limits.max_tokens_per_run
    if d.state.visits + 1 > limit and site.target.definition.join is None:
        text = f"max_tokens_per_run is {limit} and the join at {site.target.ref!r} would exceed it"
        raise RunFails(Error("LIMIT_EXCEEDED", text, site.target.ref, group.path))
    waiting = [d.state.arrivals[i] for ids in state.waiting.values() for i in ids]
    early = [branch for branch in state.live if branch in group.members]
    more = bool(early) or unspawned(group) > 0
    rest = (policy or site.sync.on_early_complete) if more else None
    _clear_timer(d, state)
    d.join_fired(
        site.target.ref,
        group=group.id,
        arrivals=[],
        arrived=state.arrived,
        failed=len(group.failed),
        total=group.total,
        writes=writes,
        rest=rest,
        why=why,
    )
    for path in conflicts:
        d.context_conflict(path, site.target.ref)
    _close(d, group, "join")
    origin = _continuation_origin(d, group, waiting)
    complete_visits(d, waiting)
    if rest in (
        "abandon",
        "block",
    ):  # stragglers meet only one another at a node's own join: that one may be complete now
        d.items.update(((group.id, branch), None) for branch in early)
    if rest == "cancel":
        for branch in early:
            cancel.cancel_branch(d, group, branch, f"join at {site.target.ref}")
    t = d.graph.transitions[waiting[-1].via] if waiting else _any_transition(d, site)
    _continue(d, group, t, origin, output)
    d.touch(group.frames)
    d.mark(group.id)


def _continue(d: Deciding, group: Group, t: GraphTransition, origin: Origin, output: Json) -> None:
    """One token goes on behind the join, with the frames and the path of the fan-out's origin."""
    frames, path, loops = group.frames, group.path, origin.loops
    if t.target.definition.join is not None:
        deliver.enter(d, t, origin._replace(output=output), frames, path, loops)
    else:
        deliver.create(d, t.target, t, origin, frames=frames, path=path, loops=loops, output=output)


def _continuation_origin(d: Deciding, group: Group, waiting: list[Arrival]) -> Origin:
    loops = group.loops
    holds = None
    for arrival in waiting:
        if arrival.loops:
            loops = {k: max((loops or {}).get(k, 0), n) for k, n in {**(loops or {}), **arrival.loops}.items()}
        token = d.state.tokens.get(arrival.token)
        holds = token.mutex if token is not None and token.mutex is not None else holds
    return Origin(group.origin, d.graph.nodes[group.node], group.path, group.frames, loops, holds=holds)


def _any_transition(d: Deciding, site: JoinSite) -> GraphTransition:
    return next(t for t in d.graph.transitions.values() if t.site is site)


def complete_visits(d: Deciding, waiting: list[Arrival]) -> None:
    """Complete the visits whose last arrival was consumed."""
    for arrival in waiting:
        token = d.state.tokens.get(arrival.token)
        if token is not None and not token.arrivals:
            d.token_completed(token.id)
            d.touch(token.frames)


def fail(d: Deciding, group: Group, state: SiteState, site: JoinSite, error: Error) -> None:
    """Fail the fan-in before its target runs."""
    bare, error = error, causes.with_branches(error, group)
    _clear_timer(d, state)
    waiting = [d.state.arrivals[i] for ids in state.waiting.values() for i in ids]
    live = [branch for branch in state.live if branch in group.members]
    limit = d.graph.definition.limits.max_tokens_per_run
    if d.state.failed_joins >= limit:
        text = f"{limit} fan-ins have failed, as many as max_tokens_per_run; a failure transition leads in a circle"
        raise RunFails(Error("LIMIT_EXCEEDED", text, site.target.ref, group.path))
    loops = _continuation_origin(d, group, waiting).loops
    origin = Origin(TokenId(0), site.target, group.path, group.frames, loops, error)

    def record(frame: Any, unhandled: bool) -> int:
        d.join_failed(site.target.ref, error, group=group.id, fails=frame, unhandled=unhandled)
        failed_at = d.state.seq
        d.because = failed_at if unhandled or frame is not None else 0
        _close(d, group, "join")
        _end_waiting(d, waiting, bare)  # without causes: the fan-in's own event has them
        for branch in live:
            cancel.cancel_branch(d, group, branch, f"join at {site.target.ref}", error.kind)
        d.because = 0
        return failed_at

    failure.fail_at(d, origin, error, record)


def _end_waiting(d: Deciding, waiting: list[Arrival], error: Error) -> None:
    for arrival in waiting:
        token = d.state.tokens.get(arrival.token)
        if token is None or len(token.arrivals) > 1:  # it stands alone, or waits at another join too
            cancel.cancel_units(d, [-arrival.id], "join", error.kind)
        elif error.kind == "SYNC_TIMEOUT":
            frames = token.frames
            d.token_timed_out(token.id, error)
            d.touch(frames)
        else:
            cancel.cancel_token(d, token, "join", error.kind)


def time_out(d: Deciding, group: Group, state: SiteState, site: JoinSite) -> None:
    """Time out the join: the clock that started with its first arrival has run out."""
    text = f"join at {site.target.ref!r} waited {site.sync.timeout_ms} ms since the first arrival"
    error = _join_error("SYNC_TIMEOUT", text, group, site)
    if site.sync.on_timeout == "fail":
        fail(d, group, state, site, error)
        return
    for branch in list(state.live):
        stragglers = standing.units_of(group, branch)
        inner = cancel.inner_groups(d, group, stragglers)
        for unit in stragglers:
            _time_out_unit(d, unit, error, state)
        cancel.close_joins(d, inner)
    if state.status == "open":
        fire(d, group, state, site, "timed out; proceeding with what has arrived")


def _time_out_unit(d: Deciding, unit: int, error: Error, state: SiteState) -> None:
    if unit < 0:
        if not any(-unit in held for held in state.waiting.values()):
            cancel.cancel_units(d, [unit], "join", error.kind)
        return
    token = d.state.tokens.get(TokenId(unit))
    if token is not None:
        frames = token.frames
        cancel.stop_outside(d, token)
        d.token_timed_out(token.id, error)
        d.touch(frames)


def _join_error(kind: str, why: str, group: Group, site: JoinSite) -> Error:
    return Error(kind, f"join of {group_name(group)!r} at {site.target.ref!r}: {why}", site.target.ref, group.path)


def complete_now(d: Deciding, group: Group, join: str, by: str) -> None:
    """Complete a cancelled group: `fire` its join with what has arrived, or `drop` it."""
    cancel.withdraw_cursor(d, group, by)
    open_sites = [state for state in group.sites if state.status == "open"]
    chosen = next((s for s in open_sites if s.waiting), open_sites[0] if open_sites else None)
    for state in open_sites:
        site = d.graph.sites[state.index]
        if join == "fire" and state is chosen:
            fire(
                d, group, state, site, f"completed by {by}", "abandon"
            )  # only the acting token is left, which is spared
        else:
            _clear_timer(d, state)
            waiting = [d.state.arrivals[i] for ids in state.waiting.values() for i in ids]
            d.join_dead(site.target.ref, group.id)
            complete_visits(d, waiting)


def cancel_live(d: Deciding, group: Group, state: SiteState, by: str) -> None:
    """Cancel every branch that has not arrived at this join."""
    cancel.withdraw_cursor(d, group, by)
    for branch in list(group.members):
        if branch not in state.waiting or branch in state.live:
            cancel.cancel_branch(d, group, branch, by)


def _blocked(d: Deciding, group: Group, site: JoinSite) -> bool:
    """Whether another instance of the group, of the same item and target, has fired and is not yet drained (A7)."""
    if site.sync.on_early_complete != "block":
        return False
    item = item_of(d.state, group.frames)
    return any(
        _is_draining(other, site) and item_of(d.state, other.frames) == item for other in d.state.groups.values()
    )


def _is_draining(group: Group, site: JoinSite) -> bool:
    fired = next((s for s in group.sites if s.index == site.index and s.status == "fired"), None)
    return fired is not None and any(branch in fired.live for branch in group.abandoned)


def _unblock(d: Deciding, group: Group) -> None:
    """Fire the instances that were ready, in order of creation, once a blocking instance has drained."""
    for state in group.sites:
        site = d.graph.sites[state.index]
        if state.status == "fired" and site.sync.on_early_complete == "block" and not _is_draining(group, site):
            for other in list(d.state.groups.values()):
                for waiting in other.sites:
                    if waiting.index == state.index and waiting.status == "open" and waiting.waiting:
                        _evaluate_site(d, other, waiting)


def _close_when_drained(d: Deciding, group: Group) -> None:
    if group.open and not group.units and not unspawned(group):
        _close(d, group, "drained")


def _close(d: Deciding, group: Group, by: str) -> None:
    if group.open:
        d.group_closed(group.id, by)


def _clear_timer(d: Deciding, state: SiteState) -> None:
    if state.timer is not None:
        d.effect(x.ClearTimer(state.timer))

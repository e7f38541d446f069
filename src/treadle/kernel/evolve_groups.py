"""Folding events of groups and joins, and of the scopes their merges write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.kernel import evolve_budget, fallen, standing, units
from treadle.kernel.evolve_endings import (
    consume_arrivals,
    drop_sync_timer,
    drop_timers,
    forget_group,
    leave,
    release_mutex,
    withdraw_arrival,
)
from treadle.kernel.evolve_tokens import scope_at, scope_frame, spawn_progress
from treadle.kernel.group_state import Arrival, Group, NodeJoinState, SiteState
from treadle.kernel.members import FORWARD
from treadle.kernel.short_ways import counting
from treadle.kernel.state import RunState, Token
from treadle.kernel.view import join_item, races
from treadle.model import events as e
from treadle.model.ids import ArrivalId
from treadle.model.states import Mode


def opened(state: RunState, event: e.GroupOpened) -> None:
    graph = state.graph
    _sweep(state, event)
    names = tuple(event.names)
    sites = graph.sites_of(names)
    enclosing = any(state.groups[g].isolating for g, _ in event.frames)
    group = Group(
        event.group,
        names,
        event.origin,
        event.node,
        event.path,
        event.frames,
        total=event.total,
        transitions=tuple(event.transitions),
        items=event.items,
        item_var=event.item_var,
        replicated=event.replicated,
        isolating=bool(sites) or (event.replicated and enclosing),
        open=event.open,
        max_in_flight=event.max_in_flight,
        ordinal=event.ordinal,
        shared=event.shared,
    )
    group.sites = [SiteState(site.index, site.target.ref) for site in sites]
    group.loops = event.loops
    group.bounds = tuple(event.bounds)
    group.last_error = event.last_error
    group.patient = all(site.patient for site in sites) and not races(graph, group, "on_first_completion")
    if not event.replicated and event.names[0].startswith("node:"):
        group.spawned = event.total  # its branches are the transitions of one dispatch, whatever they spawn
        state.idle[event.group] = None
    state.groups[event.group] = group
    state.last_group = event.group
    if sites and not event.total:
        state.empty[event.group] = None
    units.update_cursor(state, group)


def _sweep(state: RunState, event: e.GroupOpened) -> None:
    """Forget groups that nothing refers to. Those around the new group stay: its origin's tokens are inside them."""
    around = {group for group, _ in event.frames}
    for pending in state.empty:
        around.update(group for group, _ in state.groups[pending].frames)
    for identity in list(state.idle):
        group = state.groups[identity]
        if identity in around or group.retained or standing.unspawned(group):
            continue
        if all(site.status != "open" for site in group.sites):
            del state.idle[identity]
            forget_group(state, identity)


def grew(state: RunState, event: e.GroupGrew) -> None:
    group = state.groups[event.group]
    before, group.total = group.total, event.total
    if event.items is not None:
        group.items = [*(group.items if group.items is not None else [None] * before), *event.items]
    if event.command is not None:
        state.seen.add(event.command)
    units.update_cursor(state, group)


def closed(state: RunState, event: e.GroupClosed) -> None:
    group = state.groups[event.group]
    if event.because:
        fallen.keep_closed(state, group, event.because)
    group.open = False
    group.withdrawn = group.withdrawn or event.withdrawn
    units.update_cursor(state, group)


def arrived(state: RunState, event: e.JoinArrived) -> None:
    token = state.tokens.get(event.token)
    turned = False
    if event.absorbed:
        _absorb(state, event)
    else:
        turned = _hold(state, event, token)
    if token is not None and not token.held:
        token.held = True
        leave(state, token, counted=not turned)
        if token.timers:
            drop_timers(state, token)
        if token.mutex is not None and not keeps_mutex(state, token, event.target):
            release_mutex(state, token)


def keeps_mutex(state: RunState, token: Token, target: str) -> bool:
    """Whether the critical section goes on behind the join (A4); otherwise it ends with the visit's own work."""
    own, ahead = state.graph.nodes[token.node].definition.mutex, state.graph.nodes[target].definition.mutex
    return own is not None and own.keep and ahead is not None and ahead.keep and ahead.name == token.mutex


def _absorb(state: RunState, event: e.JoinArrived) -> None:
    for identity, index in event.frames:
        group = state.groups[identity]
        group.spawned = max(group.spawned, index + 1)
        if not group.units:
            state.idle[identity] = None
        units.update_cursor(state, group)
    if event.group is None:
        join = state.node_joins[event.target, event.item]
        join.absorbed = (*join.absorbed, event.via)


def _hold(state: RunState, event: e.JoinArrived, token: Token | None) -> bool:
    """Hold the arrival. Returns whether the token is out of its groups already, because it has turned into the
    arrival."""
    arrival = Arrival(
        event.arrival,
        event.token,
        event.target,
        event.via,
        event.path,
        event.frames,
        event.group,
        event.item,
        event.value,
        event.loops,
    )
    state.arrivals[event.arrival] = arrival
    state.last_arrival = event.arrival
    turned = False
    if token is not None:
        token.arrivals = (*token.arrivals, event.arrival)
        turned = not token.held and token.mode is FORWARD and counting.turn(state, token, arrival)
    else:
        state.live += 1
    if not turned:
        units.add_arrival(state, arrival)
    if state.cursors:
        spawn_progress(state, event.frames)
    if event.group is None:
        key = (event.target, event.item)
        join = state.node_joins.get(key)
        if join is None:
            join = state.node_joins[key] = NodeJoinState(event.target, event.item)
        if event.rearmed:
            join.used = ()
            join.absorbed = ()
        join.held.append(event.arrival)
    return turned


def fired(state: RunState, event: e.JoinFired) -> None:
    if event.group is None:
        _node_join_fired(state, event)
        return
    group = state.groups[event.group]
    site = standing.site_of(group, event.target)
    site.status = "fired"
    site.passes = event.rest == "pass_through"
    state.empty.pop(group.id, None)
    units.update_cursor(state, group)
    drop_sync_timer(state, site)
    fallen.settle(state, group, used=True)
    _apply(state, group, event)
    consume_arrivals(state, group, site)
    if event.rest in ("abandon", "block"):
        _abandon(state, group, [branch for branch in site.live if branch in group.members])


def _abandon(state: RunState, group: Group, branches: list[int]) -> None:
    """Mark branches that no join waits for any more. Arrivals they hold at node joins meet only one another from now
    on."""
    held = [
        state.arrivals[ArrivalId(-unit)]
        for branch in branches
        for unit in standing.units_of(group, branch)
        if standing.CURSOR <= unit < 0 and state.arrivals[ArrivalId(-unit)].group is None
    ]
    for arrival in held:
        units.remove_arrival(state, arrival)
        state.node_joins[arrival.target, arrival.item].held.remove(arrival.id)
    units.abandon(state, group, branches)
    for arrival in held:
        arrival.item = join_item(state, arrival.frames)
        units.add_arrival(state, arrival)
        key = (arrival.target, arrival.item)
        state.node_joins.setdefault(key, NodeJoinState(*key)).held.append(arrival.id)


def _apply(state: RunState, group: Group, event: e.JoinFired) -> None:
    if event.writes:
        scope = scope_at(state, scope_frame(state, group.frames))
        for path, value in event.writes:
            scope.write(tuple(path), value)


def _node_join_fired(state: RunState, event: e.JoinFired) -> None:
    join = state.node_joins[event.target, event.item]
    used = tuple(state.arrivals[arrival].via for arrival in event.arrivals)
    if event.writes:
        scope = scope_at(state, event.scope)
        for path, value in event.writes:
            scope.write(tuple(path), value)
    for arrival in list(event.arrivals):
        withdraw_arrival(state, arrival)
    definition = state.graph.nodes[event.target].definition.join
    if definition is not None and definition.kind == "inbound" and definition.rest != "cancel":
        join.used = used
        join.absorbed = ()
    elif not join.held:
        del state.node_joins[event.target, event.item]


def updated(state: RunState, event: e.ContextUpdated) -> None:
    if event.armed is not None and event.token is not None:
        token = state.tokens[event.token]
        token.when = {**(token.when or {}), **event.armed}
        return
    scope = scope_at(state, event.scope)
    for path, value in event.writes:
        scope.write(tuple(path), value)
        if event.branch is not None:
            state.writers[event.scope, tuple(path)] = event.branch


def was_empty(state: RunState, event: e.FanOutEmpty) -> None:
    group = state.groups[event.group] if event.group is not None else None
    if group is not None and not group.sites and group.frames:
        state.groups[group.frames[-1][0]].empties += 1


def ignored(state: RunState, event: e.ResultIgnored) -> None:
    stopped = state.stopping.pop(event.token, None)
    if event.spent is not None and (stopped is None or stopped.mode is Mode.FORWARD):
        evolve_budget.spent(state, None, event.spent)


def _progressed(state: RunState, event: e.TokenProgress) -> None:
    token = state.tokens.get(event.token)
    if event.spent is not None:
        evolve_budget.spent(state, token, event.spent)
    if token is not None and event.part:
        token.progress = (event.attempt, token.recoveries, event.part)


def _custom(state: RunState, event: e.Custom) -> None:
    """Fold an event of `emit`. With a part: progress, as histories of an older Treadle have it."""
    if event.part and event.token is not None:
        token = state.tokens[event.token]
        token.progress = (token.attempt, token.recoveries, event.part)


def _note(state: RunState, event: e.Event) -> None:
    """Fold an event that explains something and changes nothing."""


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {
    e.GroupOpened: opened,
    e.GroupGrew: grew,
    e.GroupClosed: closed,
    e.JoinArrived: arrived,
    e.JoinFired: fired,
    e.ContextUpdated: updated,
    e.FanOutEmpty: was_empty,
    e.JoinMismatch: _note,
    e.ContextConflict: _note,
    e.ResultIgnored: ignored,
    e.CallbackRefused: _note,
    e.TokenProgress: _progressed,
    e.Custom: _custom,
}

"""Folding a migration: the run has another graph from here on (6.5).

Theory of operation. `migration_plan` has found that everything the run refers to has its place in the new version, so
this fold only gives things their new names and counts anew what depends on the static graph:

    visits      their node, and the definition their attempt was begun under (`Token.under`)
    triggers    those of the new node watch; clocks of triggers that are gone are dropped
    groups      the names they answer to, their transitions, and their joins, with what waits there
    counters    live branches of joins, visits by node, and passive waits: recounted by the new graph

A version equal to the old one leaves everything as it was but the version's number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from treadle.graph.execution_graph import GraphNode
from treadle.kernel import evolve_budget, standing, units
from treadle.kernel.evolve_endings import forget_group, is_passive, wait_for_signal
from treadle.kernel.evolve_tokens import arm
from treadle.kernel.group_state import Arrival, Group, SiteState
from treadle.kernel.migration_parts import arrivals, is_needed, visits
from treadle.kernel.migration_waits import is_backing_off
from treadle.kernel.renaming import Renaming
from treadle.kernel.scope import Overlay
from treadle.kernel.signal_lines import leave_line
from treadle.kernel.state import RunState, Timer, Token
from treadle.kernel.view import join_item, races
from treadle.model import events as e
from treadle.model.states import Mode, TokenState, Waiting


def migrated(state: RunState, event: e.RunMigrated) -> None:
    names = Renaming(state.graph, state.graph.at_version(event.to), event.nodes)
    watched = {
        token.id: dict(token.when or {})
        for token in state.tokens.values()
        if standing.is_standing(token) and _disarm(state, token, names)
    }
    for token in visits(state):
        _rename_visit(state, token, names)
    for arrival in arrivals(state):
        _rename_arrival(arrival, names)
    _rename_rest(state, names)
    state.had_queue = state.had_queue or names.old.has_queue
    state.graph = names.new
    state.version = event.to
    if state.budget is None:
        evolve_budget.begin(state, event.at)  # the new version may have a budget: it counts from here on
    if state.parent is None:
        state.depth_max = names.new.definition.limits.max_nesting_depth
    for identity, before in watched.items():
        _arm_again(state, state.tokens[identity], before, names)
    _regroup(state, names)
    _rejoin(state, names)
    _retime(state, names)
    _recount(state)


# Visits


def _rename_visit(state: RunState, token: Token, names: Renaming) -> None:
    if token.under is None and _is_under_way(state, token):
        token.under = (state.version, token.node)
    token.node = names.ref(token.node)
    if token.via is not None:
        token.via = names.via(token.via)
    if token.merged is not None:
        token.merged = [names.via(name) for name in token.merged]
    if token.when is not None:
        token.when = {names.via(name): held for name, held in token.when.items()}
    token.loops = names.counters(token.loops)


def _is_under_way(state: RunState, token: Token) -> bool:
    """Whether an attempt, gate or wait has begun that ends under the old definition."""
    if token.held or token.mode is not Mode.FORWARD or token.waiting is Waiting.MUTEX:
        return False
    if token.state not in (TokenState.DISPATCHED, TokenState.EXECUTING, TokenState.WAITING):
        return False
    return not is_backing_off(state, token)


def _disarm(state: RunState, token: Token, names: Renaming) -> bool:
    """Withdraw the triggers of the visit's node if those of its new node are others. Returns whether they are."""
    before, after = names.old.nodes[token.node], names.node(token.node)
    if after is None or _watches(before, names) == _watches(after, None):
        return False
    for signal in _signals(before):
        leave_line(state.lines, signal, token.id)
    state.watching.pop(token.id, None)
    return True


def _watches(node: GraphNode, names: Renaming | None) -> list[Any]:
    return [(names.via(t.id) if names is not None else t.id, t.definition.trigger) for t in node.triggers]


def _signals(node: GraphNode) -> set[str]:
    return {t.definition.trigger.signal for t in node.triggers if t.definition.trigger and t.definition.trigger.signal}


def _marks(token: Token) -> dict[str, bool | None] | None:
    return token.when


def _arm_again(state: RunState, token: Token, before: dict[str, bool | None], names: Renaming) -> None:
    """Let the triggers of the new node watch. A condition that held keeps its mark, so that it does not fire again."""
    token.when = None
    arm(state, token)
    armed = _marks(token)  # the type checker, and so the compiled kernel, would believe that it is still None
    if armed is not None:
        held = {names.via(name): value for name, value in before.items()}
        token.when = {name: held.get(name, value) for name, value in armed.items()}
    old = names.old.nodes[token.under[1]] if token.under is not None else None
    if token.waiting is Waiting.SIGNAL and old is not None and token.detail["signal"] in _signals(old):
        wait_for_signal(state, token.id, token.detail)  # disarming has taken it out of the same line


# Arrivals and groups


def _rename_arrival(arrival: Arrival, names: Renaming) -> None:
    arrival.target = names.ref(arrival.target)
    arrival.via = names.via(arrival.via)
    arrival.loops = names.counters(arrival.loops)


def _regroup(state: RunState, names: Renaming) -> None:
    """Give groups their names and joins in the new version. One that nothing refers to, and whose transitions are gone,
    is forgotten."""
    for group in list(state.groups.values()):
        known = [names.transition(name) for name in group.transitions]
        if any(t is None for t in known) and not is_needed(state, group):
            state.idle.pop(group.id, None)
            forget_group(state, group.id)
            continue
        renamed = names.names(group.names)
        group.node = _source(group, names)
        group.transitions = tuple(names.via(name) for name in group.transitions)
        group.names = renamed
        group.loops = names.counters(group.loops)
        sites = state.graph.sites_of(renamed)
        kept = {names.ref(site.target): site for site in group.sites}
        group.sites = [_site(kept.get(site.target.ref), site.index, site.target.ref) for site in sites]
        group.isolating = group.isolating or bool(sites)
        group.patient = all(site.patient for site in sites) and not races(state.graph, group, "on_first_completion")


def _source(group: Group, names: Renaming) -> str:
    """The node that the group's branches come from: that of its transition, wherever that begins now."""
    t = names.transition(group.transitions[0]) if group.transitions else None
    return t.source.ref if t is not None else names.ref(group.node)


def _site(before: SiteState | None, index: int, target: str) -> SiteState:
    if before is None:
        return SiteState(index, target)
    before.index, before.target = index, target
    return before


def _rejoin(state: RunState, names: Renaming) -> None:
    """Joins of nodes under their new names. The item that an arrival belongs to depends on the joins around it."""
    joins = list(state.node_joins.values())
    state.node_joins = {}
    for join in joins:
        for identity in join.held:
            arrival = state.arrivals[identity]
            arrival.item = join_item(state, arrival.frames)
        item = state.arrivals[join.held[0]].item if join.held else join.item
        join.node, join.item = names.ref(join.node), item
        join.used = tuple(names.via(name) for name in join.used)
        join.absorbed = tuple(names.via(name) for name in join.absorbed)
        other = state.node_joins.setdefault((join.node, item), join)
        if other is not join:
            other.held = sorted([*other.held, *join.held])


# Everything else


def _rename_rest(state: RunState, names: Renaming) -> None:
    for failure in state.failures.values():
        if failure.target is not None:
            failure.target = names.ref(failure.target)
        failure.joins = [(group, names.ref(target)) for group, target in failure.joins]
    for record in state.records.values():
        record.node = names.ref(record.node)
    for stopped in state.stopping.values():
        stopped.node = names.ref(stopped.node)
    place = state.position
    if place is not None:
        place.node = names.ref(place.node) if place.node is not None else None
        place.edge = names.via(place.edge) if place.edge is not None else None
    if names.nodes:
        for scope in state.scopes.values():
            outputs = scope.tree.get("nodes")
            if isinstance(outputs, dict):
                renamed = {names.ref(ref): value for ref, value in outputs.items()}
                scope.tree["nodes"] = Overlay(renamed) if type(outputs) is Overlay else renamed


def _retime(state: RunState, names: Renaming) -> None:
    """Clocks of triggers and joins under their new names; those that have nothing to start any more are dropped."""
    for timer in list(state.timers.values()):
        if timer.purpose == "trigger":
            assert timer.token is not None and timer.target is not None
            token = state.tokens[timer.token]
            timer.target = names.via(timer.target)
            if not any(t.id == timer.target for t in state.graph.nodes[token.node].triggers):
                del state.timers[timer.id]
                token.timers = tuple(other for other in token.timers if other != timer.id)
        elif timer.purpose == "sync":
            assert timer.target is not None
            timer.target = names.ref(timer.target)
            _retime_join(state, timer)


def _retime_join(state: RunState, timer: Timer) -> None:
    assert timer.group is not None
    sites = state.groups[timer.group].sites
    site = next((site for site in sites if site.target == timer.target), None)
    if site is None or state.graph.sites[site.index].sync.timeout_ms is None:
        del state.timers[timer.id]
        if site is not None:
            site.timer = None


def _recount(state: RunState) -> None:
    state.at_node = dict(Counter(token.node for token in state.tokens.values() if standing.is_standing(token)))
    state.passive = sum(
        1 for token in state.tokens.values() if standing.is_standing(token) and is_passive(state, token, token.waiting)
    )
    state.witness.clear()
    units.recount(state)


HANDLERS: dict[type[e.Event], Callable[[RunState, Any], None]] = {e.RunMigrated: migrated}

"""Numbered statements that hold of every run's state between two commands. Used by tests, the simulator and `fsck`.

Each check recounts from scratch what `evolve` keeps incrementally, so it costs O(run): never called while deciding.

 1. `live` and `working` equal a recount of the tokens.
 2. `at_node` equals a recount.
 3. Every group a live unit refers to exists, and `members` and `units` are exactly the units inside it.
 4. Of every join site, `live`, `waiting` and `arrived` equal a recount from the static graph.
 5. A fired, failed or dead join holds no arrival.
 6. Timers belong to live tokens or open joins; a timer's token knows it.
 7. Holders of a mutex are live; those in its queue wait for it; without `keep` at most one holds it.
 8. A run that is over has no live token, arrival, timer or deferred answer.
 9. A running run has something live.
10. At most one compensation is running, and only while compensating.
11. Visits never exceed `max_tokens_per_run`.
12. Every token's state agrees with the reason it waits for.
13. An entity is in exactly one place.
14. Groups count the tokens kept inside them for an operator's retry, until compensation begins; kept tokens are not
    live.
15. Each person has answered an open gate once, and its answers do not decide it yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel import standing
from treadle.kernel.group_state import Group, SiteState
from treadle.kernel.invited import verdict
from treadle.kernel.lifecycle import LIVE
from treadle.kernel.state import RunState, Token
from treadle.model.ids import ArrivalId, Frames, GroupId, TokenId
from treadle.model.states import RUN_ENDED, ExternalState, GateState, Mode, RunStatus, TokenState, Waiting


def violations(graph: ExecutionGraph, state: RunState) -> list[str]:
    """Every statement that does not hold, in words."""
    checks = (
        _counts(state),
        _membership(state),
        _sites(graph, state),
        _timers(state),
        _mutexes(state),
        _status(graph, state),
        _waiting(state),
        _kept(state),
    )
    return [problem for check in checks for problem in check]


def _live_tokens(state: RunState) -> list[Token]:
    return [token for token in state.tokens.values() if token.state in LIVE]


def _counts(state: RunState) -> Iterator[str]:
    live = _live_tokens(state)
    alone = sum(1 for arrival in state.arrivals.values() if not arrival.token)
    if state.live != len(live) + alone:
        yield f"1: live is {state.live}, recount gives {len(live) + alone}"
    working = sum(1 for token in live if not token.held)
    if state.working != working:
        yield f"1: working is {state.working}, recount gives {working}"
    at_node = Counter(t.node for t in live if not t.held and t.mode is Mode.FORWARD)
    if state.at_node != dict(at_node):
        yield f"2: at_node is {state.at_node}, recount gives {dict(at_node)}"


def _standing_units(state: RunState) -> Iterator[tuple[int, Frames]]:
    for token in _live_tokens(state):
        if not token.held and token.mode is Mode.FORWARD:
            yield token.id, token.frames
    for arrival in state.arrivals.values():
        yield -arrival.id, arrival.frames
    for group in state.cursors:
        yield standing.CURSOR - group, state.groups[group].frames


def _membership(state: RunState) -> Iterator[str]:
    inside: dict[GroupId, set[tuple[int, int]]] = {}
    for unit, frames in _standing_units(state):
        for around, branch in frames:
            inside.setdefault(around, set()).add((branch, unit))
            if around not in state.groups:
                yield f"3: unit {unit} is in group {around}, which does not exist"
    for identity, group in state.groups.items():
        kept = {(branch, unit) for branch in group.members for unit in standing.units_of(group, branch)}
        if kept != inside.get(identity, set()):
            yield f"3: group {identity} keeps members {kept}, recount gives {inside.get(identity, set())}"
        if group.units != len(kept):
            yield f"3: group {identity} keeps {group.units} units and has {len(kept)}"
        if group.spawned and not group.units and identity not in state.idle:
            yield f"3: group {identity} is empty and not marked idle"


def _sites(graph: ExecutionGraph, state: RunState) -> Iterator[str]:
    for group in state.groups.values():
        for site in group.sites:
            yield from _site(graph, state, group, site)


def _site(graph: ExecutionGraph, state: RunState, group: Group, site: SiteState) -> Iterator[str]:
    target = graph.sites[site.index].target.ref
    name = f"join of group {group.id} at {target!r}"
    live = _recount_live(graph, state, group, site)
    if site.live != live:
        yield f"4: {name} counts live {site.live}, recount gives {live}"
    waiting: dict[int, list[int]] = {}
    for arrival in state.arrivals.values():
        if arrival.group == group.id and arrival.target == target:
            waiting.setdefault(standing.branch_in(arrival.frames, group.id), []).append(arrival.id)
    if {b: sorted(ids) for b, ids in site.waiting.items()} != {b: sorted(ids) for b, ids in waiting.items()}:
        yield f"4: {name} holds {site.waiting}, recount gives {waiting}"
    arrived = sum(1 for branch in waiting if branch not in live)
    if site.arrived != arrived:
        yield f"4: {name} counts {site.arrived} arrived, recount gives {arrived}"
    if site.status != "open" and site.waiting:
        yield f"5: {name} is {site.status} and still holds {site.waiting}"


def _recount_live(graph: ExecutionGraph, state: RunState, group: Group, site: SiteState) -> dict[int, int]:
    reach = graph.sites[site.index].reach
    live: dict[int, int] = {}
    for unit, frames in _standing_units(state):
        place = next((p for p, (identity, _) in enumerate(frames) if identity == group.id), None)
        if place is None or any(b in state.groups[g].abandoned for g, b in frames[place + 1 :]):
            continue
        lazy = standing.cursor_group(unit)
        if lazy is not None:
            mask = standing.entry_mask(state, state.groups[lazy])
        elif unit < 0:
            arrival = state.arrivals[ArrivalId(-unit)]
            if arrival.group is not None and standing.position(frames, arrival.group) <= place:
                continue
            mask = graph.nodes[arrival.target].bit
        else:
            mask = graph.nodes[state.tokens[TokenId(unit)].node].bit
        if reach & mask:
            branch = frames[place][1]
            live[branch] = live.get(branch, 0) + 1
    return live


def _timers(state: RunState) -> Iterator[str]:
    for timer in state.timers.values():
        if timer.token is None:
            continue
        token = state.tokens.get(timer.token)
        if token is None or token.state not in LIVE:
            yield f"6: timer {timer.id} ({timer.purpose}) belongs to visit {timer.token}, which has ended"
        elif timer.id not in token.timers:
            yield f"6: visit {token.id} does not know its timer {timer.id}"


def _mutexes(state: RunState) -> Iterator[str]:
    for name, mutex in state.mutexes.items():
        for holder in mutex.holders:
            token = state.tokens.get(holder)
            if token is None or token.state not in LIVE or token.mutex != name:
                yield f"7: mutex {name!r} is held by visit {holder}, which does not hold it"
        for waiter in mutex.queue:
            token = state.tokens.get(waiter)
            if token is None or token.waiting is not Waiting.MUTEX:
                yield f"7: visit {waiter} queues for mutex {name!r} and does not wait for it"
        kept = any(
            (m := state.graph.nodes[state.tokens[holder].node].definition.mutex) is not None and m.keep
            for holder in mutex.holders
            if holder in state.tokens
        )
        if len(mutex.holders) > 1 and not kept:
            yield f"7: mutex {name!r} is held by {list(mutex.holders)} at once"


def _status(graph: ExecutionGraph, state: RunState) -> Iterator[str]:
    if state.status in RUN_ENDED and (state.live or state.arrivals or state.timers or state.deferred):
        yield f"8: the run is {state.status} and has live={state.live} timers={list(state.timers)}"
    if state.status is RunStatus.RUNNING and not state.live:
        yield "9: the run is running and nothing in it is live"
    running = [record.id for record in state.records.values() if record.status == "running"]
    if len(running) > 1 or (running and (state.stands or state.status) is not RunStatus.COMPENSATING):
        yield f"10: compensations {running} are running while the run is {state.status}"
    if state.visits > graph.definition.limits.max_tokens_per_run:
        yield f"11: {state.visits} visits exceed max_tokens_per_run"
    position = state.position
    if position is not None and sum(p is not None for p in (position.node, position.edge, position.section)) > 1:
        yield f"13: the entity is in several places: {position}"


def _waiting(state: RunState) -> Iterator[str]:
    for token in state.tokens.values():
        if token.state is TokenState.WAITING and token.waiting is None:
            yield f"12: visit {token.id} waits for nothing"
        if token.waiting is Waiting.SIBLINGS and not token.arrivals:
            yield f"12: visit {token.id} waits for siblings at no join"
        if token.waiting is Waiting.HUMAN and token.gate is not GateState.OPEN and not state.deferred:
            yield f"12: visit {token.id} waits for a person and its gate is {token.gate}"
        if token.gate is GateState.OPEN and token.state in LIVE and token.asked is not None and token.asked.answers:
            people = [answer.by for answer in token.asked.answers]
            if len(set(people)) < len(people):
                yield f"15: the gate of visit {token.id} has answers of {people}"
            if verdict(token.asked) != "open" and token.id not in state.deferred:
                yield f"15: the gate of visit {token.id} is decided and still open"
        if token.waiting is Waiting.QUEUE and token.external is not ExternalState.OFFERED:
            yield f"12: visit {token.id} is queued and its task is {token.external}"


def _kept(state: RunState) -> Iterator[str]:
    if state.cause is not None:
        return  # nothing is taken back any more
    frames = [token.frames for token in state.tokens.values() if token.state not in LIVE]
    for kept in state.fallen.values():
        frames += [kept.token.frames, *(arrival.frames for arrival in kept.arrivals)]
        if kept.token.id in state.tokens:
            yield f"14: visit {kept.token.id} went down and is there all the same"
    frames += [arrival.frames for arrival in state.fallen_arrivals.values()]
    retained = Counter(group for stack in frames for group, _ in stack)
    retained.update(group for failure in state.failures.values() for group in failure.pinned)
    for identity, group in state.groups.items():
        if group.retained != retained[identity]:
            yield f"14: group {identity} counts {group.retained} kept, recount gives {retained[identity]}"

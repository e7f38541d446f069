"""A node's own join (`join:` on a node): arrivals are held per item until enough have come (2.5, A0, A8, A12).

Kinds, and when they fire:
    all_inbound, inbound_fifo   one arrival from every inbound transition; the oldest of each; the surplus waits
    all_reachable               at least one is held and no other live unit of the item can still reach the node
    {inbound: M, rest}          arrivals on M different transitions; then a pause until the others have come or
    cannot come
    {tokens: N}                 every N arrivals, in order

The continuation carries the frames all consumed arrivals share.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import GraphNode, GraphTransition
from treadle.kernel import cancel, deliver, failure, join, standing, writing
from treadle.kernel.deciding import Deciding, RunFails
from treadle.kernel.evolve_tokens import scope_frame
from treadle.kernel.group_state import Arrival, NodeJoinState
from treadle.kernel.join_merge import OverlayedWrites, frames_inwards, path_key
from treadle.kernel.node_join_reach import can_still_come, reaches, rearmed
from treadle.kernel.route import Origin
from treadle.model import definition as dd
from treadle.model.errors import Error
from treadle.model.ids import ArrivalId, Frame, Frames, TokenId

Json = Any


def evaluate_all(d: Deciding) -> bool:
    """Fire every node join that is complete, in the run and in the items in which something moved. Returns whether one
    fired."""
    fired = False
    for item in (None, *d.items):
        for ref in d.graph.join_nodes:
            state = d.state.node_joins.get((ref, item))
            while state is not None and state.held and _try_fire(d, state):
                fired = True
                state = d.state.node_joins.get((ref, item))
    d.items.clear()
    return fired


def fire_stuck(d: Deciding) -> bool:
    """Fire the `all_reachable` join that was reached first, because nothing in the run can move: tokens it still waits
    for are stuck themselves and cannot come. Returns whether there was such a join."""
    stuck = [
        state
        for (ref, _), state in d.state.node_joins.items()
        if state.held and _definition(d, ref).kind == "all_reachable"
    ]
    if not stuck:
        return False
    state = min(stuck, key=lambda candidate: candidate.held[0])
    node = d.graph.nodes[state.node]
    _fire(d, node, _definition(d, state.node), state, [d.state.arrivals[identity] for identity in state.held])
    return True


def _definition(d: Deciding, ref: str) -> dd.NodeJoin:
    definition = d.graph.nodes[ref].definition.join
    assert definition is not None
    return definition


def _try_fire(d: Deciding, state: NodeJoinState) -> bool:
    node = d.graph.nodes[state.node]
    definition = node.definition.join
    assert definition is not None
    chosen = _complete_set(d, node, definition, state)
    if chosen is None:
        return False
    _fire(d, node, definition, state, chosen)
    return True


def _complete_set(d: Deciding, node: GraphNode, definition: dd.NodeJoin, state: NodeJoinState) -> list[Arrival] | None:
    if definition.kind == "tokens" and len(state.held) < definition.count:
        return None
    if definition.kind == "all_reachable" and can_still_come(d, node, state):
        return None
    held = [d.state.arrivals[identity] for identity in state.held]
    if definition.kind == "tokens":
        return held[: definition.count]
    if definition.kind == "all_reachable":
        return held
    oldest: dict[str, Arrival] = {}
    for arrival in held:
        oldest.setdefault(_lane(d.graph.transitions[arrival.via]), arrival)
    if definition.kind == "inbound":
        if state.used and not rearmed(d, node, state):
            return None
        return list(oldest.values())[: definition.count] if len(oldest) >= definition.count else None
    lanes = list(dict.fromkeys(_lane(t) for t in node.inbound))
    return [oldest[lane] for lane in lanes] if len(oldest) == len(lanes) else None


def _lane(t: GraphTransition) -> str:
    """The lane of a transition. Transitions of one synchronization deliver together, once, so to the node's own join
    they are one lane."""
    return t.id if t.site is None else t.site.key


def _fire(d: Deciding, node: GraphNode, definition: dd.NodeJoin, state: NodeJoinState, chosen: list[Arrival]) -> None:
    limit = d.graph.definition.limits.max_tokens_per_run
    if d.state.visits + 1 > limit:
        text = f"max_tokens_per_run is {limit} and the join at {node.ref!r} would exceed it"
        raise RunFails(Error("LIMIT_EXCEEDED", text, node.ref, chosen[0].path))
    frames = shared_frames([arrival.frames for arrival in chosen])
    overlay = _overlaid(d, chosen, frames)
    refusal = writing.merge_problem(d, frames, overlay.writes())
    if refusal is not None:
        _fail(d, node, state, chosen, frames, refusal)
        return
    output = _collected(d, chosen) if definition.collect else None
    item = state.item
    if definition.kind == "inbound" and definition.rest == "cancel":
        _withdraw_coming(d, node, state, [arrival.id for arrival in chosen])
    d.join_fired(
        node.ref,
        item=item,
        arrivals=[arrival.id for arrival in chosen],
        arrived=len(chosen),
        total=len(node.inbound),
        writes=overlay.writes(),
        rest=definition.rest if definition.kind == "inbound" else None,
        why=f"{definition.kind}: {len(chosen)} arrivals",
        scope=scope_frame(d.state, frames),
    )
    for path in overlay.conflicts:
        d.context_conflict(path, node.ref)
    origin = _origin(d, chosen, frames)
    join.complete_visits(d, chosen)
    t = d.graph.transitions[chosen[-1].via]
    deliver.create(
        d,
        node,
        t,
        origin,
        frames=frames,
        path=shared_path(chosen),
        loops=origin.loops,
        output=output,
        merged=_vias(chosen),
    )
    d.touch(frames)


def _vias(chosen: list[Arrival]) -> list[str] | None:
    vias = list(dict.fromkeys(arrival.via for arrival in chosen))
    return vias if len(vias) > 1 else None


def _collected(d: Deciding, chosen: list[Arrival]) -> list[Json]:
    """The array of a canvas collector: the items of its splitter first, then the values that came along other edges."""
    items: list[Json] = []
    others: list[Json] = []
    for arrival in chosen:
        site = d.graph.transitions[arrival.via].site
        if site is not None and site.collects and isinstance(arrival.value, list):
            items.extend(arrival.value)
        else:
            others.append(arrival.value)
    return [*items, *others]


def _fail(d: Deciding, node: GraphNode, state: NodeJoinState, chosen: list[Arrival], frames: Frames, why: str) -> None:
    """Fail at the node before it runs, because the arrivals' writes do not fit together."""
    path = shared_path(chosen)
    error = Error("SCHEMA", f"join at {node.ref!r}: {why}", node.ref, path)
    item = state.item

    def record(frame: Frame | None, unhandled: bool) -> int:
        d.join_failed(node.ref, error, item=item, fails=frame, unhandled=unhandled)
        failed_at = d.state.seq
        d.because = failed_at if unhandled or frame is not None else 0
        cancel.cancel_units(d, [-arrival.id for arrival in chosen], f"join at {node.ref}", error.kind)
        d.because = 0
        return failed_at

    failure.fail_at(d, Origin(TokenId(0), node, path, frames, None, error), error, record)


def _origin(d: Deciding, chosen: list[Arrival], frames: Frames) -> Origin:
    last = max(chosen, key=lambda arrival: arrival.id)
    loops: dict[str, int] | None = None
    holds = None
    for arrival in chosen:
        if arrival.loops:
            loops = {**(loops or {}), **{k: max((loops or {}).get(k, 0), n) for k, n in arrival.loops.items()}}
        token = d.state.tokens.get(arrival.token)
        holds = token.mutex if token is not None and token.mutex is not None else holds
    source = d.graph.transitions[last.via].source
    return Origin(last.token, source, shared_path(chosen), frames, loops, holds=holds)


def shared_frames(stacks: list[Frames]) -> Frames:
    """The frames all stacks have in common."""
    shared = stacks[0]
    for stack in stacks[1:]:
        length = 0
        while length < min(len(shared), len(stack)) and shared[length] == stack[length]:
            length += 1
        shared = shared[:length]
    return shared


def shared_path(chosen: list[Arrival]) -> str:
    """The path the merged tokens share: that of the fan-out they stem from."""
    if len({arrival.path for arrival in chosen}) == 1:
        return chosen[0].path
    parts = [arrival.path.split(".") for arrival in chosen]
    length = 0
    while all(len(p) > length for p in parts) and len({p[length] for p in parts}) == 1:
        length += 1
    if length % 2 == 0:  # root, then pairs of node and ordinal: never end between the two
        length -= 1
    return ".".join(parts[0][:length]) or "root"


def _overlaid(d: Deciding, chosen: list[Arrival], frames: Frames) -> OverlayedWrites:
    """The writes of branches that end at the join, laid over one another in the order of their paths."""
    overlay = OverlayedWrites()
    branches: dict[Frame | None, list[Arrival]] = {}
    for arrival in sorted(chosen, key=lambda a: path_key(a.path)):
        branches.setdefault(next(iter(arrival.frames[len(frames) :]), None), []).append(arrival)
    for number, arrivals in enumerate(branches.values()):
        for frame in frames_inwards([arrival.frames[len(frames) :] for arrival in arrivals]):
            scope = d.state.scopes.get(frame)
            for path, value in scope.leaves() if scope is not None else ():
                overlay.write(path, value, number)
    return overlay


def _withdraw_coming(d: Deciding, node: GraphNode, state: NodeJoinState, chosen: list[ArrivalId]) -> None:
    """Cancel the tokens that could still come, and the surplus held here (`rest: cancel`)."""
    coming = [
        unit
        for unit in standing.item_units(d.state, state.item)
        if any(reaches(d, unit, t.source, state, t) for t in node.inbound)
    ]
    cancel.cancel_units(d, coming, f"join at {node.ref}")
    surplus = [-identity for identity in state.held if identity not in chosen]
    cancel.cancel_units(d, surplus, f"join at {node.ref}")

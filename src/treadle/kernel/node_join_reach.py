"""Reachability of a node's own join: whether live units of the item can still come, by the static graph less spent
loops (A8, A12)."""

from __future__ import annotations

from treadle.graph.execution_graph import GraphNode, GraphTransition
from treadle.graph.reach import reach_without
from treadle.kernel import standing
from treadle.kernel.deciding import Deciding
from treadle.kernel.group_state import NodeJoinState
from treadle.model.ids import ArrivalId, Frames, TokenId
from treadle.model.states import TokenState


def can_still_come(d: Deciding, node: GraphNode, state: NodeJoinState, via: GraphTransition | None = None) -> bool:
    """Whether a live unit of the item, other than those held here, can still reach the node (along `via`)."""
    goal = via.source if via is not None else node
    key = (goal.ref, state.item)
    if reaches(d, d.state.witness.get(key, 0), goal, state, via):
        return True
    for unit in standing.item_units(d.state, state.item):
        if reaches(d, unit, goal, state, via):
            d.state.witness[key] = unit
            return True
    return False


def reaches(d: Deciding, unit: int, goal: GraphNode, state: NodeJoinState, via: GraphTransition | None) -> bool:
    lazy = standing.cursor_group(unit)
    if lazy is not None:
        group = d.state.groups.get(lazy)
        if group is None or not standing.unspawned(group) or _is_abandoned(d, group.frames, state):
            return False
        entries = [d.graph.transitions[name].target for name in group.transitions]
        return any((entry.reach | entry.bit) & goal.bit for entry in entries)
    if unit > 0:
        token = d.state.tokens.get(TokenId(unit))
        if token is None or token.held or token.state in (TokenState.FAILED, TokenState.TIMED_OUT):
            return False
        if _is_abandoned(d, token.frames, state):
            return False
        here, loops, inclusive = d.graph.nodes[token.node], token.loops, via is not None
    elif unit < 0:
        arrival = d.state.arrivals.get(ArrivalId(-unit))
        if arrival is None or (arrival.target == state.node and arrival.item == state.item):
            return False
        if _is_abandoned(d, arrival.frames, state):
            return False
        here, loops, inclusive = d.graph.nodes[arrival.target], arrival.loops, True
    else:
        return False
    mask = _reach(d, here, loops) | (here.bit if inclusive else 0)
    return bool(mask & goal.bit)


def _is_abandoned(d: Deciding, frames: Frames, state: NodeJoinState) -> bool:
    """Whether these frames are in an abandoned branch. Stragglers of an early join are live for no join around it, but
    they are for one another."""
    held = d.state.arrivals[state.held[0]].frames if state.held else ()
    return any(frame[1] in d.state.groups[frame[0]].abandoned and frame not in held for frame in frames)


def _reach(d: Deciding, node: GraphNode, loops: dict[str, int] | None) -> int:
    if not loops:
        return node.reach
    spent = frozenset(
        name
        for name, count in loops.items()
        if count >= (d.graph.transitions[name].definition.loop_max_iterations or 0)
    )
    return reach_without(node, spent) if spent else node.reach


def rearmed(d: Deciding, node: GraphNode, state: NodeJoinState) -> bool:
    """Whether a counting join begins a new round: every other transition has delivered once, or nothing can come along
    it."""
    waiting = [t for t in node.inbound if t.id not in state.used and t.id not in state.absorbed]
    return not any(can_still_come(d, node, state, t) for t in waiting)

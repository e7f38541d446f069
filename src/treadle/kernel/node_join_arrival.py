"""Arriving at a node's own join: the token is held there (2.5, A8). `node_join` decides when the join fires."""

from __future__ import annotations

from treadle.graph.execution_graph import GraphTransition
from treadle.kernel.deciding import Deciding
from treadle.kernel.node_join_reach import rearmed
from treadle.kernel.route import Origin
from treadle.kernel.view import join_item
from treadle.model.ids import Frames, TokenId


def arrive(
    d: Deciding,
    t: GraphTransition,
    origin: Origin,
    frames: Frames,
    path: str,
    loops: dict[str, int] | None,
) -> None:
    """Hold a token that comes along `t` to a node with a join of its own, or absorb it."""
    item = join_item(d.state, frames)
    definition = t.target.definition.join
    assert definition is not None
    state = d.state.node_joins.get((t.target.ref, item))
    begins_round = False
    absorbed = False
    if definition.kind == "inbound" and state is not None and state.used:
        begins_round = rearmed(d, t.target, state)
        absorbed = not begins_round and (definition.rest == "absorb" or t.id not in state.used)
    holder = origin.token if origin.attached else TokenId(0)
    d.join_arrived(
        holder,
        t.target.ref,
        t.id,
        path,
        frames,
        item=item,
        value=origin.output if definition.collect else None,
        loops=loops,
        absorbed=absorbed,
        rearmed=begins_round,
    )
    d.touch(frames)

"""The journey of a run's entity (2.12): every move is one event, and the entity is in exactly one place."""

from __future__ import annotations

from treadle.graph.execution_graph import GraphNode, GraphTransition
from treadle.kernel.deciding import Deciding
from treadle.kernel.route import Origin
from treadle.model.ids import TokenId


def enter(d: Deciding) -> None:
    """At the start the entity appears on the edge that leads into the first start node."""
    if d.state.entity is not None:
        edge = f"->{d.graph.start[0].ref}"
        d.entity_moved("entered", edge=edge, progress=0.0)


def arrive(d: Deciding, node: GraphNode, token: TokenId) -> None:
    """A visit begins: the entity is at its node."""
    position = d.state.position
    if travels(d) and position is not None and position.node != node.ref:
        d.entity_moved("arrived", node=node.ref, token=token)


def depart(d: Deciding, t: GraphTransition, origin: Origin) -> None:
    """A visit has completed: the entity is on its way along the transition."""
    position = d.state.position
    if travels(d) and position is not None and position.edge != t.id and position.node == origin.node.ref:
        d.entity_moved("departed", edge=t.id, progress=0.0, token=origin.token or None)


def travels(d: Deciding) -> bool:
    """Whether the entity still follows this run. Once moved to a section, or completed, it stays there (2.16)."""
    position = d.state.position
    return position is not None and not (position.section is not None and _moved(d)) and position.completed_as is None


def _moved(d: Deciding) -> bool:
    entity, position = d.state.entity, d.state.position
    assert entity is not None and position is not None
    return position.node is None and position.edge is None and d.state.visits > 0


def outcome(d: Deciding, node: GraphNode, token: TokenId, *, success: bool) -> None:
    """Move the entity as `entity.on_success` or `on_failure` of the node says."""
    moves = node.definition.entity
    if d.state.entity is None or moves is None:
        return
    move = moves.on_success if success else moves.on_failure
    if move is None:
        return
    here = d.state.position
    d.entity_moved(
        "completed" if move.complete_as is not None else "moved",
        node=here.node if here is not None and move.section is None else None,
        edge=here.edge if here is not None and move.section is None else None,
        progress=here.progress if here is not None and move.section is None else None,
        section=move.section,
        completed_as=move.complete_as,
        entity_type=move.set_type,
        token=token,
    )

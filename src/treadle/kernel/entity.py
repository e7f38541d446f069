"""The journey of a run's entity (2.12): every move is one event, and the entity is in exactly one place. With each
event goes an effect of the same content, by which the store keeps journeys over many runs."""

from __future__ import annotations

from treadle.graph.execution_graph import GraphNode, GraphTransition
from treadle.kernel.deciding import Deciding, Refused
from treadle.kernel.evolve_runs import is_over
from treadle.kernel.lifecycle import LIVE
from treadle.kernel.route import Origin
from treadle.model import commands as c
from treadle.model.effects import NoteMove
from treadle.model.ids import TokenId
from treadle.model.references import EntityRef
from treadle.model.states import RunStatus


def enter(d: Deciding) -> None:
    """At the start the entity appears on the edge that leads into the first start node."""
    if d.state.entity is not None:
        edge = f"->{d.graph.start[0].ref}"
        d.entity_moved("entered", edge=edge, progress=0.0)
        _note(d, d.state.entity, "entered")


def enter_fork(d: Deciding) -> None:
    """The journey of a fork's entity begins where the run is, not where the other run began."""
    entity, here = d.state.entity, d.state.position
    assert entity is not None and here is not None
    live = next((t.node for t in d.state.tokens.values() if t.state in LIVE), None)
    somewhere = here.node is not None or here.edge is not None or here.section is not None
    node = here.node if somewhere else live
    edge = here.edge if somewhere or live is not None else f"->{d.graph.start[0].ref}"
    d.entity_moved("entered", node=node, edge=edge, progress=0.0 if edge else None, section=here.section)
    _note(d, entity, "entered")


def arrive(d: Deciding, node: GraphNode, token: TokenId) -> None:
    """A visit begins: the entity is at its node."""
    position = d.state.position
    if travels(d) and position is not None and position.node != node.ref:
        d.entity_moved("arrived", node=node.ref, token=token)
        _note(d, _address(d), "arrived")


def depart(d: Deciding, t: GraphTransition, origin: Origin) -> None:
    """A visit has completed: the entity is on its way along the transition."""
    position = d.state.position
    if travels(d) and position is not None and position.edge != t.id and position.node == origin.node.ref:
        d.entity_moved("departed", edge=t.id, progress=0.0, token=origin.token or None)
        _note(d, _address(d), "departed")


def travels(d: Deciding) -> bool:
    """Whether the entity still follows this run. Once moved to a section, or completed, it stays there (2.16)."""
    position = d.state.position
    return position is not None and not (position.section is not None and _moved(d)) and position.completed_as is None


def _moved(d: Deciding) -> bool:
    entity, position = d.state.entity, d.state.position
    assert entity is not None and position is not None
    return position.node is None and position.edge is None and d.state.visits > 0


def outcome(d: Deciding, node: GraphNode, token: TokenId, *, success: bool) -> None:
    """Move the entity as `entity.on_success` or `on_failure` of the node says. Without a section it stays in its
    place."""
    moves = node.definition.entity
    here = d.state.position
    if d.state.entity is None or moves is None or here is None:
        return
    move = moves.on_success if success else moves.on_failure
    if move is None:
        return
    event = "completed" if move.complete_as is not None else "moved"
    stays = move.section is None
    d.entity_moved(
        event,
        node=here.node if stays else None,
        edge=here.edge if stays else None,
        progress=here.progress if stays else None,
        section=here.section if stays else move.section,
        completed_as=move.complete_as,
        entity_type=move.set_type,
        token=token,
    )
    _note(d, _address(d), event, completed_as=move.complete_as, set_type=move.set_type)


def move_entity(d: Deciding, command: c.MoveEntity) -> None:
    """A person moves the entity by hand. In a section it stays and no longer travels with the run (2.16); from a node
    the next visit takes it along again. The run itself goes on as before: its tokens are not moved."""
    if d.state.entity is None:
        raise Refused("INVALID_STATE", f"run {d.state.run} is about no entity")
    if is_over(d.state.status):
        raise Refused("INVALID_STATE", f"run {d.state.run} is {d.state.status}: its entity travels with it no longer")
    if d.state.status is RunStatus.QUEUED:
        raise Refused("INVALID_STATE", f"run {d.state.run} is queued: its entity enters when the run starts")
    if (command.node is None) == (command.section is None):
        raise Refused("BAD_REQUEST", "an entity is moved either to a node or to a section")
    if command.node is not None and command.node not in d.graph.nodes:
        raise Refused("NOT_FOUND", f"{d.graph.workflow_name!r} has no node {command.node!r}")
    d.entity_moved("moved", node=command.node, section=command.section, by=command.by, reason=command.reason)
    _note(d, _address(d), "moved", by=command.by, reason=command.reason)


def _address(d: Deciding) -> EntityRef:
    entity = d.state.entity
    assert entity is not None
    return EntityRef(entity.id, entity.type)


def _note(
    d: Deciding,
    entity: EntityRef,
    event: str,
    *,
    completed_as: str | None = None,
    set_type: str | None = None,
    by: str | None = None,
    reason: str | None = None,
) -> None:
    """Ask the store to keep the move that was just recorded."""
    here = d.state.position
    assert here is not None
    d.effect(
        NoteMove(
            d.state.seq,
            here.at,
            d.graph.workflow_name,
            entity,
            event,
            node=here.node,
            edge=here.edge,
            progress=here.progress,
            section=here.section,
            completed_as=completed_as,
            set_type=set_type,
            by=by,
            reason=reason,
        )
    )

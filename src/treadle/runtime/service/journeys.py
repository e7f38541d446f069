"""A journey, run by run: moves of an entity gathered into legs, with what each stay cost.

Owns the shape. Costs are those of the answers of language models, as their outputs say (`cost`); other work reports no
cost yet. Must not read a store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.graph.execution_graph import ExecutionGraph
from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.model.states import RUN_ENDED
from treadle.store.entities import BY_HAND, MoveRow
from treadle.store.port import RunRow


class JourneyMove(Struct, frozen=True, omit_defaults=True):
    """One move."""

    at: int
    event: str
    """entered | arrived | departed | moved | completed"""
    seq: int
    """The number of its event in the history of the run."""
    node: str | None = None
    edge: str | None = None
    section: str | None = None
    progress: float | None = None
    completed_as: str | None = None
    type: str | None = None
    """The type it was given."""
    by: str | None = None
    reason: str | None = None
    until: int | None = None
    """When the entity moved on in this workflow; None: it is still there."""
    cost: float | None = None
    """Cost of the visits that ended during the stay."""


class Leg(Struct, frozen=True):
    """The moves of one run, or one move by hand."""

    workflow: str
    run: str | None
    """None: by hand."""
    status: str | None
    """Of the run; None: by hand, or the run was forgotten."""
    started: int
    ended: int | None
    cost: float | None
    """None: nothing is known of costs."""
    moves: list[JourneyMove]

    @property
    def first(self) -> tuple[int, str, int]:
        """The order of its first move: legs are listed by it."""
        return self.moves[0].at, self.run or BY_HAND, self.moves[0].seq

    def of(self, row: RunRow, costs: dict[int, float] | None) -> Leg:
        """The leg with what is known of its run. `costs`: number of an event → cost of the visit that ended with it."""
        spent = list(self.moves)
        for seq, cost in (costs or {}).items():
            last = max((at for at, move in enumerate(spent) if move.seq < seq), default=0)
            spent[last] = replace(spent[last], cost=(spent[last].cost or 0) + cost)
        ended = row.changed if row.status in RUN_ENDED else None
        total = sum(costs.values()) if costs is not None else None
        return replace(self, status=str(row.status), started=row.started, ended=ended, cost=total, moves=spent)


def legs_of(moves: Sequence[MoveRow]) -> list[Leg]:
    """Moves in order, by run; a leg comes where its first move does."""
    following: dict[str, int] = {}
    until: list[int | None] = []
    for move in reversed(moves):
        until.append(following.get(move.workflow))
        following[move.workflow] = move.at
    legs: dict[Any, Leg] = {}
    for move, left in zip(moves, reversed(until), strict=True):
        name = move.run if move.run != BY_HAND else move.order
        leg = legs.get(name)
        if leg is None:
            by_hand = move.run == BY_HAND
            leg = Leg(
                move.workflow,
                None if by_hand else move.run,
                status=None,
                started=move.at,
                ended=move.at if by_hand else None,
                cost=None,
                moves=[],
            )
            legs[name] = leg
        leg.moves.append(_told(move, left))
    return list(legs.values())


def cost_of_run(history: Sequence[e.Event], graph: ExecutionGraph, row: RunRow) -> dict[int, float] | None:
    """Number of the event → cost of the visit that ended with it; None if the history was trimmed."""
    if len(history) != row.seq:
        return None
    nodes: dict[TokenId, str] = {}
    waiting: dict[TokenId, float] = {}
    found: dict[int, float] = {}
    for event in history:
        if isinstance(event, e.TokenCreated):
            nodes[event.token] = event.node
        elif isinstance(event, e.TokenWaiting | e.TokenCompleted):
            cost = _cost(getattr(event, "output", None)) if _is_model(graph, nodes.get(event.token)) else None
            if isinstance(event, e.TokenWaiting):
                if cost is not None:
                    waiting[event.token] = cost
            elif (spent := cost if cost is not None else waiting.get(event.token)) is not None:
                found[event.seq] = spent
    return found


def _is_model(graph: ExecutionGraph, ref: str | None) -> bool:
    node = graph.nodes.get(ref) if ref is not None else None
    task = node.task if node is not None else None
    return task is not None and any(step.action.kind == "llm" for step in task.steps)


def _cost(output: Any) -> float | None:
    cost = output.get("cost") if isinstance(output, dict) else None
    return float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) else None


def _told(move: MoveRow, until: int | None) -> JourneyMove:
    return JourneyMove(
        move.at,
        move.event,
        move.seq,
        node=move.place if move.kind == "node" else None,
        edge=move.place if move.kind == "edge" else None,
        section=move.place if move.kind == "section" else None,
        progress=move.progress,
        completed_as=move.completed_as,
        type=move.set_type,
        by=move.by,
        reason=move.reason,
        until=until,
    )

"""Comparison of rows kept beside a run with its history: timers, deliveries still to be made, moves of its entity,
items of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.effects import OfferWork, OpenGate, RunTask
from treadle.model.ids import RunId, TimerId
from treadle.model.states import RunStatus
from treadle.store.entities import MoveRow, place_of
from treadle.store.port import OutboxRow

_Move = tuple[int, int, str, str, str, float | None, str | None, str | None, str | None, str | None]
"""Time, number, kind of move, kind of place, place, progress, completed as, type, person, reason."""


def item_problems(history: Sequence[e.Event], kept: Mapping[RunId, str | None]) -> list[str]:
    """Rows of starts that did not become items of the run. Rows may be missing: a run may be older than they are."""
    told = {(event.alias, event.idempotency_key) for event in history if isinstance(event, e.RunQueued)}
    return [
        f"the start {start!r} with the key {key!r} is noted as its item, and its history has none"
        for start, key in kept.items()
        if (start, key) not in told
    ]


def move_problems(history: Sequence[e.Event], kept: Sequence[MoveRow]) -> list[str]:
    """The differences. Moves may be missing from the beginning (the run began before moves were kept) or altogether
    (the record of the entity was deleted); there may be earlier ones of a forgotten run that had the same id."""
    told = [event for event in history if isinstance(event, e.EntityMoved)]
    count = min(len(told), len(kept))
    if count == 0:
        return []
    pairs = zip(told[-count:], kept[-count:], strict=True)
    return [
        f"event {event.seq} moves its entity by {_of_event(event)!r}, its journey says {_of_row(move)!r}"
        for event, move in pairs
        if _of_event(event) != _of_row(move)
    ]


def _of_event(event: e.EntityMoved) -> _Move:
    place = place_of(event.node, event.edge, event.section)
    told = event.progress, event.completed_as, event.entity_type, event.by, event.reason
    return event.at, event.seq, event.event, *place, *told


def _of_row(move: MoveRow) -> _Move:
    told = move.progress, move.completed_as, move.set_type, move.by, move.reason
    return move.at, move.seq, move.event, move.kind, move.place, *told


def timer_problems(state: RunState, rows: dict[TimerId, int]) -> list[str]:
    """The differences. A queued fork sets the timers it has inherited when it starts."""
    wanted = {timer.id: timer.due for timer in state.timers.values()}
    is_ahead = state.status is RunStatus.QUEUED
    missing = [f"timer {timer} has no row" for timer in wanted if timer not in rows and not is_ahead]
    extra = [f"timer {timer} is a row and unknown to the run" for timer in rows if timer not in wanted]
    moved = [
        f"timer {timer} is due {due}, its row says {rows[timer]}"
        for timer, due in wanted.items()
        if timer in rows and rows[timer] != due
    ]
    return missing + extra + moved


def outbox_problems(state: RunState, rows: list[OutboxRow]) -> list[str]:
    """A row may be a moment behind its run (a stopped task, a closed gate), never ahead of it."""
    found = []
    for row in rows:
        token = getattr(row.effect, "token", None)
        if isinstance(row.effect, RunTask | OfferWork | OpenGate) and token is not None and token > state.last_token:
            found.append(f"outbox row {row.id} is about visit {token}, which was never created")
    return found

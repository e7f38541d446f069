"""Moments of a run that people name: the number of an event, an instant, or a visit (6.1).

Owns what each of them means: the end of a decision, because between two events of one decision the run is on its way
from one state to another. Must not fold anything.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from msgspec import Struct

from treadle.errors import CommandRefused
from treadle.model import events as e
from treadle.model.states import Mode
from treadle.store.port import RunRow, Store
from treadle.store.service import ServiceStore

PAGE = 5_000


class AtVisit(Struct, frozen=True):
    """The moment at which a visit had been made, or the first one of a node."""

    visit: int | None = None
    node: str | None = None


Moment = int | datetime | AtVisit
"""The number of an event, an instant, or a visit."""


def moment_of(text: str) -> Moment:
    """A moment as people write it: `42` is an event, `visit:7` a visit, `2026-11-18T02:30` an instant, anything else a
    node. Raises CommandRefused(BAD_REQUEST)."""
    if text.isdecimal():
        return int(text)
    if text.startswith("visit:") and text.removeprefix("visit:").isdecimal():
        return AtVisit(visit=int(text.removeprefix("visit:")))
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return AtVisit(node=text.removeprefix("node:"))
    return instant if instant.tzinfo is not None else instant.astimezone()


async def end_of_decision(store: Store, row: RunRow, seq: int) -> int:
    """The end of the decision that an event lies in. Raises CommandRefused if there is no such event."""
    if seq < 1:
        raise CommandRefused("BAD_REQUEST", f"events are counted from 1, got {seq}")
    if seq > row.seq:
        raise CommandRefused("NOT_FOUND", f"run {row.run!r} has {row.seq} events, none is number {seq}")
    ends = await cast(ServiceStore, store).decisions(row.run, seq - 1, 1)
    return ends[0] if ends else seq


async def seq_of(store: Store, row: RunRow, moment: Moment) -> int:
    """The number of the last event of the decision that a moment means. Raises CommandRefused."""
    if isinstance(moment, int):
        return await end_of_decision(store, row, moment)
    if isinstance(moment, datetime):
        return await end_of_decision(store, row, await _before(store, row, moment))
    return await end_of_decision(store, row, await _created(store, row, moment))


async def _before(store: Store, row: RunRow, instant: datetime) -> int:
    until, found, after = int(instant.timestamp() * 1_000), 0, 0
    while page := await store.history(row.run, after, PAGE):
        for event in page:
            if event.at > until:
                page = []
                break
            found = event.seq
        if not page:
            break
        after = page[-1].seq
    if not found:
        began = datetime.fromtimestamp(row.started / 1_000, UTC).isoformat()
        raise CommandRefused(
            "NOT_FOUND", f"run {row.run!r} had not begun at {instant.isoformat()}: it began at {began}"
        )
    return found


async def _created(store: Store, row: RunRow, moment: AtVisit) -> int:
    after = 0
    while page := await store.history(row.run, after, PAGE):
        for event in page:
            if isinstance(event, e.TokenCreated) and _is_meant(event, moment):
                return event.seq
        after = page[-1].seq
    what = f"visit {moment.visit}" if moment.visit is not None else f"visit of a node {moment.node!r}"
    raise CommandRefused("NOT_FOUND", f"run {row.run!r} has no {what}")


def _is_meant(event: e.TokenCreated, moment: AtVisit) -> bool:
    if moment.visit is not None:
        return event.token == moment.visit
    return event.node == moment.node and event.mode is Mode.FORWARD

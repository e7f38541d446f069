"""Conversion of rows that differ between stores, for a move: queue work, numbers of the outbox.

Must not know a database. A damaged value is moved as it is: the target's checks find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from treadle.model.effects import OfferWork
from treadle.model.ids import RunId
from treadle.store.packing import pack, unpack
from treadle.store.seals import MARK, about_effect, about_request, seal, unseal
from treadle.store.transfer import SHELVES

COMMAND = SHELVES["requests"].index("command")
_unpack_offer = msgspec.msgpack.Decoder(OfferWork).decode  # values that were moved out stay marks


def as_task(run: RunId, effect: bytes) -> bytes:
    """An offer of queue work as the outbox row that it is in other stores."""
    about = about_effect(run)
    content = unseal(effect, about)
    if content is None:
        return effect
    packed = pack(_unpack_offer(content).task())
    return seal(packed, about) if effect[0] == MARK else packed


def with_wish(row: tuple[Any, ...], change: Callable[[int], int]) -> tuple[Any, ...]:
    """Changes the outbox number in a request that revives a dead letter."""
    run, request, workflow, at, kept = row[: COMMAND + 1]
    about = about_request(run, request, workflow, at)
    content = unseal(kept, about)
    wish = unpack(content) if content is not None else None
    if not isinstance(wish, int):
        return row
    packed = pack(change(wish))
    return (*row[:COMMAND], seal(packed, about) if kept[0] == MARK else packed, *row[COMMAND + 1 :])

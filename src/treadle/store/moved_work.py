"""Queue work as it is moved from one store to another: as rows of the outbox, which the new owner offers again.

Must not know a database. A damaged value is moved as it is: the target's checks find it.
"""

from __future__ import annotations

import msgspec

from treadle.model.effects import OfferWork
from treadle.model.ids import RunId
from treadle.store.packing import pack
from treadle.store.seals import MARK, Unreadable, about_effect, read, seal

_unpack_offer = msgspec.msgpack.Decoder(OfferWork).decode  # values that were moved out stay marks


def as_task(run: RunId, effect: bytes) -> bytes:
    """An offer of queue work as the outbox row of its task."""
    about = about_effect(run)
    try:
        packed = pack(read(effect, about, _unpack_offer).task())
    except Unreadable:
        return effect
    return seal(packed, about) if effect[0] == MARK else packed

"""Conversion of rows that differ between stores, for a move: numbers of the outbox.

Must not know a database. A damaged value is moved as it is: the target's checks find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.store.packing import pack, unpack
from treadle.store.seals import MARK, about_request, seal, unseal
from treadle.store.transfer import SHELVES, After

COMMAND = SHELVES["requests"].index("command")
OF_ENTITIES: dict[str, After] = {
    "entities": (0,),
    "addresses": ("", ""),
    "moves": ("", 0, "", 0),
    "positions": ("", ""),
}
"""The positions before the first row of each shelf about entities."""


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

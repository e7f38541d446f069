"""An entry to be appended to a log, as every store takes it: alone (`store.service`) or with a batch of decisions
(`store.port`)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

Json = Any


class Entry(Struct, frozen=True):
    """An entry to be appended to a log."""

    log: str
    subject: str
    """What the entry is about; entries are found by it."""
    body: Json
    at: int

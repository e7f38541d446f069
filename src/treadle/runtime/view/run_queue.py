"""The queued runs of a workflow, in the order in which they will start (6.7), for people.

Owns the shape. Any process may look: the order is computed from the store. The owner of the queue also remembers which
key it served last, so that among equal keys its choice may differ from the order shown here.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from treadle.runtime.coordinate.book_reading import read_book
from treadle.runtime.coordinate.library import Library
from treadle.store.port import Store

Json = Any


class QueuedRun(Struct, frozen=True):
    """A run that waits for its start."""

    run: str
    workflow: str
    version: int
    position: int
    """1: the next."""
    why: str
    """concurrency, rate, debounce or batch."""
    key: Json = None
    """The value of its key; null if there is none."""
    priority: int = 0
    since: int = 0
    """When it came; of a debounced run when its flurry began."""
    due: int | None = None
    """Of a debounced run or a batch: when it stops waiting for further starts."""
    items: int = 1
    """Starts in a batch so far."""


async def queue_of(store: Store, library: Library, workflow: str, limit: int) -> list[QueuedRun]:
    """The next `limit` queued runs of a workflow."""
    read = await read_book(store, library, workflow)
    return [
        QueuedRun(
            place.run,
            workflow,
            place.version,
            position,
            place.why,
            key=msgspec.json.decode(place.keys.fair) if place.keys.fair else None,
            priority=place.priority,
            since=place.since,
            due=place.due,
            items=place.count,
        )
        for position, place in enumerate(read.book.order()[:limit], 1)
    ]

"""The place of a run in the book of its workflow: what flow control has to know of a run that is live or queued (6.7).

Owns nothing but the shapes.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from treadle.graph.execution_graph import GraphFlow
from treadle.model.ids import RunId


class StartKeys(NamedTuple):
    """The values of a start's keys as JSON texts; empty: the limit has no key."""

    concurrency: str
    rate: str
    fair: str
    """The key between whose values turns are taken."""
    group: str
    """The key of its debounce or batch."""


class StartPlace(Struct, gc=False):
    """A run in the book."""

    run: RunId
    version: int
    flow: GraphFlow
    keys: StartKeys
    priority: int = 0
    why: str = ""
    due: int | None = None
    since: int = 0
    count: int = 1
    """Items of a batch."""
    joining: int = 0
    """Starts that are about to become items of it."""
    number: int = 0
    """In the order of arrival."""
    rows: tuple[int, ...] = ()
    """Its rows in the outbox, as far as they are known."""
    started: int | None = None
    """When it was chosen to start; None: it is queued."""

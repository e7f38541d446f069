"""The way to a store that somebody else coordinates, or nobody at the moment.

Part of the composition root, apart from `engine.py` because it needs neither executor nor network: whoever only looks
should not wait for those to be imported.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from treadle.runtime.client import Client
from treadle.runtime.clock import SystemClock
from treadle.runtime.commander import Remote
from treadle.store.rows import SHARD


@asynccontextmanager
async def connect(store: str | Path = "treadle.db") -> AsyncIterator[Client]:
    """The face of a store another process coordinates, or nobody at the moment. Reading always works; commands wait in
    the inbox for the owner."""
    from treadle.store.sqlite import Ownership, SqliteStore

    opened = await SqliteStore.open(store)
    remote = Remote(opened, SystemClock(), lambda: Ownership.wake_of(store))
    try:
        yield Client(remote, SHARD)
    finally:
        await remote.close()
        await opened.close()

"""The way to a store that somebody else coordinates, or nobody at the moment.

Part of the composition root, apart from `engine.py` because it needs neither executor nor network: whoever only looks
should not wait for those to be imported.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.errors import StorePlaceError
from treadle.runtime.client import Client
from treadle.runtime.clock import SystemClock
from treadle.runtime.commander import Remote
from treadle.store.rows import SHARD

if TYPE_CHECKING:
    from treadle.runtime import blocking_types


class connect:  # used as a function is: `async with connect(…) as client`
    """The face of a store another process coordinates, or nobody at the moment. Reading always works; commands wait in
    the inbox for the owner. `async with` gives a `Client`, plain `with` one whose methods wait. A store that does not
    exist is a slip of the pen unless `create` says otherwise. Raises StorePlaceError."""

    def __init__(self, store: str | Path = "treadle.db", *, create: bool = False) -> None:
        self._place = store
        self._create = create
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Client:
        from treadle.store.sqlite import Ownership, SqliteStore

        if not self._create and not Path(self._place).exists():
            raise StorePlaceError(str(self._place), "there is no such store", "an Engine makes one, or create=True")
        opened = await SqliteStore.open(self._place)
        self._open.push_async_callback(opened.close)
        remote = Remote(opened, SystemClock(), lambda: Ownership.wake_of(self._place))
        self._open.push_async_callback(remote.close)
        return Client(remote, SHARD)

    async def __aexit__(self, *_exception: object) -> None:
        await self._open.aclose()

    def __enter__(self) -> blocking_types.Client:
        from treadle.runtime.blocking import opened_client

        self._blocking = opened_client(self)
        client: blocking_types.Client = self._blocking
        return client

    def __exit__(self, *_exception: object) -> None:
        self._blocking.close()

"""Connects to a store that another process coordinates, or nobody at the moment.

Part of the composition root, apart from `engine.py` because it needs neither executor nor network: a process that only
looks should not wait until those are imported.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.errors import StorePlaceError
from treadle.runtime.client import Client
from treadle.runtime.cluster.file_notices import FileNotices
from treadle.runtime.cluster.store_ownership import open_channel, open_database
from treadle.runtime.command import presence
from treadle.runtime.command.commander import Remote
from treadle.runtime.surroundings.clock import SystemClock
from treadle.runtime.surroundings.patience import PATIENCE_S, until_open
from treadle.store.places import MEMORY, StoreLocation, place_of

if TYPE_CHECKING:
    from treadle.runtime import blocking_types
    from treadle.runtime.over_http.commanding import OverHttp


class connect:  # used as a function is: `async with connect(…) as client`
    """The face of a store other processes coordinate, or nobody at the moment. Reading always works; commands wait in
    the inbox for the owner. `async with` gives a `Client`, plain `with` one whose methods wait. A store that does not
    exist is a slip of the pen unless `create` says otherwise; one that does not answer is waited for. `http(s)://HOST`
    is a service, which `key` opens. Raises StorePlaceError; StoreUnavailable after `wait_s`."""

    def __init__(
        self,
        store: str | Path | StoreLocation = "treadle.db",
        *,
        key: str | None = None,
        create: bool = False,
        wait_s: float = PATIENCE_S,
    ) -> None:
        self._wait_ms = int(wait_s * 1_000)
        self._url = store if isinstance(store, str) and store.startswith(("http://", "https://")) else None
        self._place = place_of(store) if self._url is None else StoreLocation(MEMORY)
        self._key = key
        self._create = create
        self._open = AsyncExitStack()
        self.remote: Remote | OverHttp

    async def __aenter__(self) -> Client:
        try:
            if self._url is not None:
                return await self._service(self._url)
            remote = await until_open(self._remote, self._open.aclose, self._wait_ms)
            self.remote = remote
            return Client(remote)
        except BaseException:
            await self._open.aclose()
            raise

    async def _service(self, url: str) -> Client:
        from treadle.runtime.over_http.client import ServiceClient
        from treadle.runtime.over_http.commanding import OverHttp
        from treadle.runtime.over_http.connection import Connection

        connection = Connection(url, self._key, self._wait_ms / 1_000)
        await connection.open()
        self._open.push_async_callback(connection.close)
        commander = OverHttp(connection)
        self.remote = commander
        commander.user = (await connection.get("/me"))["user"]
        return ServiceClient(commander)

    async def _remote(self) -> Remote:
        path, dsn = self._place.path, self._place.dsn
        if dsn is not None:
            store = await open_database(dsn, make=self._create)
            self._open.push_async_callback(store.close)
            notices = open_channel(dsn)
            self._open.push_async_callback(notices.close)
            return Remote(store, SystemClock(), notices, presence.Shared(store))
        if path is None or (not self._create and not path.exists()):
            raise StorePlaceError(str(self._place), "there is no such store", "an Engine makes one, or create=True")
        from treadle.store.sqlite import Ownership, SqliteStore

        file = await SqliteStore.open(path)
        self._open.push_async_callback(file.close)
        bells = FileNotices(lambda: Ownership.wake_of(path))
        self._open.push_async_callback(bells.close)

        def who() -> tuple[str, int] | None:
            other = Ownership.who(path)
            return (other.owner or other.description, other.since) if other is not None else None

        clock = SystemClock()
        return Remote(file, clock, bells, presence.Alone(file, who, clock.now))

    async def __aexit__(self, *_exception: object) -> None:
        self.remote.close()
        await self._open.aclose()

    def __enter__(self) -> blocking_types.Client:
        from treadle.runtime.blocking import opened_client

        self._blocking = opened_client(self)
        client: blocking_types.Client = self._blocking
        return client

    def __exit__(self, *_exception: object) -> None:
        self._blocking.close()

"""Engines, workers and clients that are started while the store does not answer wait for it, and say so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import Server, binaries
from tests.runtime.cores import one
from tests.runtime.executing import on_loop
from tests.torture.tight import TightDisk
from treadle import Engine, connect
from treadle.errors import StoreUnavailable
from treadle.runtime.engine import EngineSettings
from treadle.runtime.surroundings import patience
from treadle.runtime.surroundings.outage import Outage
from treadle.runtime.worker import Worker

SETTINGS = EngineSettings(grace_ms=0)


class Felt(Outage):
    """Knows when somebody has waited for the store."""

    def __init__(self) -> None:
        super().__init__()
        self.felt = asyncio.Event()
        self.what: set[str] = set()

    def failed(self, what: str, problem: StoreUnavailable) -> None:
        self.what.add(what)
        self.felt.set()
        super().failed(what, problem)


async def opens_when(
    opening: AbstractAsyncContextManager[Any], mend: Callable[[], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits, and opens once the store is mended."""
    outage = Felt()
    monkeypatch.setattr(patience, "OUTAGE", outage)
    entering = asyncio.ensure_future(opening.__aenter__())
    await asyncio.wait([entering, asyncio.ensure_future(outage.felt.wait())], return_when=asyncio.FIRST_COMPLETED)
    assert not entering.done(), "it should wait"
    assert outage.what == {"opening the store"}
    await mend()
    await entering
    await opening.__aexit__(None, None, None)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server(binaries())
    yield made
    made.close()


def made(kind: str, address: str) -> AbstractAsyncContextManager[Any]:
    if kind == "engine":
        return Engine(address, settings=SETTINGS)
    return Worker(address, queues={"q": 1}, settings=SETTINGS) if kind == "worker" else connect(address)


@pytest.mark.parametrize("kind", ["engine", "worker", "client"])
@on_loop
async def test_a_database_that_is_down_is_waited_for(
    kind: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Engine(server.address(), settings=SETTINGS):
        pass  # its tables are there
    await asyncio.to_thread(server.crash)
    await opens_when(made(kind, server.address()), lambda: asyncio.to_thread(server.start), monkeypatch)


@on_loop
async def test_a_full_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = TightDisk()
    try:
        disk.room = 0

        async def free() -> None:
            disk.room = None

        engine = Engine(tmp_path / "treadle.db", settings=SETTINGS)
        await opens_when(engine, free, monkeypatch)
        assert disk.refusals
        async with engine:
            await engine.deploy(one("waits", {"kind": "signal", "name": "go"}))
    finally:
        disk.unregister()


@pytest.mark.parametrize("kind", ["engine", "worker", "client"])
@on_loop
async def test_who_must_not_wait_fails_at_once_with_the_reason(kind: str) -> None:
    address, settings = "postgresql://nobody@127.0.0.1:1/none", EngineSettings(open_wait_ms=0)
    opening: AbstractAsyncContextManager[Any] = connect(address, wait_s=0)
    if kind != "client":
        opening = Engine(address, settings=settings)
    if kind == "worker":
        opening = Worker(address, queues={"q": 1}, settings=settings)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await opening.__aenter__()

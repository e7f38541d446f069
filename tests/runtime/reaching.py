"""The ways to reach an engine: by itself, through its store, or over HTTP on loopback. What works one way works every
way (5.8), so tests of clients are run for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from treadle import Engine, connect
from treadle.runtime.client import Client
from treadle.server import app
from treadle.server.serving import address_of, bound, serve

USER = "Ada"
"""The person whom the key of a client over HTTP stands for."""


@asynccontextmanager
async def reached(engine: Engine, way: str, place: str | Path = "") -> AsyncIterator[Client]:
    """A client of an engine: `itself`, a client of its store at `place` (`store`), or one of a service (`server`)."""
    if way == "itself":
        yield engine
    elif way == "store":
        async with connect(place) as client:
            yield client
    else:
        async with serving(engine) as (url, key), connect(url, key=key) as client:
            yield client


@asynccontextmanager
async def serving(engine: Engine) -> AsyncIterator[tuple[str, str]]:
    """The address of a service in this process, and a key that may do everything."""
    application = app(engine)
    listening = bound("127.0.0.1", 0)
    ready, stopping = asyncio.Event(), asyncio.Event()

    async def drain() -> None:
        await application.service.close()

    task = asyncio.create_task(serve(application, listening, ready=ready.set, stopping=stopping, drain=drain))
    try:
        await ready.wait()
        yield address_of(listening), (await engine.keys.create("tests", ["admin"], user=USER))[1]
    finally:
        stopping.set()
        await task

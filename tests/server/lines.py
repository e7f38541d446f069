"""A service in this process on a real socket, with waits that are short enough to see them end, and raw connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from treadle import connect
from treadle.server.application import app
from treadle.server.connection import BoundedConnection
from treadle.server.serving import bound, serve
from treadle.server.settings import ServerSettings

DEADLINE_S = 20.0


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> Any:
        assert self.headers["content-type"] == "application/problem+json", self
        return json.loads(self.body)


class Impatient(BoundedConnection):
    """Waits that a test can see the end of."""

    connections_max = 20
    head_wait_s = 0.3
    rest_wait_s = 0.3
    read_wait_s = 0.5


class Line:
    """One raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> Answer:
        async with asyncio.timeout(DEADLINE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").strip().split("\r\n")
            headers = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in lines)}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
            return Answer(int(first.split()[1]), headers, body)

    async def closed(self) -> bytes:
        """What comes until the service closes the connection."""
        async with asyncio.timeout(DEADLINE_S):
            with suppress(ConnectionError):
                return await self.reader.read()
            return b""

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class Serving:
    """The service, and its key."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.key = key
        self.lines: list[Line] = []

    async def line(self) -> Line:
        line = Line(*await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26))
        self.lines.append(line)
        return line

    def head(self, method: str, path: str, *more: str) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {self.key}", *more]
        return "\r\n".join([*lines, "", ""]).encode()

    async def get(self, path: str = "/api/v1/me") -> Answer:
        line = await self.line()
        await line.send(self.head("GET", path))
        return await line.answer()


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Serving]:
    stopping = asyncio.Event()
    ready = asyncio.Event()
    store = str(folder / "treadle.db")
    async with connect(store, create=True) as client:
        _, key = await client.keys.create("all", ["admin"])
        listening = bound("127.0.0.1", 0)

        async def drain() -> None:
            return

        application = app(client, ServerSettings(body_wait_s=0.4))
        going = asyncio.create_task(
            serve(application, listening, ready=ready.set, stopping=stopping, drain=drain, connection=Impatient)
        )
        await ready.wait()
        service = Serving(listening.getsockname()[1], key)
        try:
            yield service
        finally:
            for line in service.lines:
                await line.close()
            stopping.set()
            await going
            await application.service.close()


Play = Callable[[Serving], Awaitable[None]]


def played(folder: Path, play: Play) -> None:
    async def whole() -> None:
        async with serving(folder) as service:
            await play(service)
            assert (await service.get()).status == 200, "the service answers everybody else"

    asyncio.run(whole())

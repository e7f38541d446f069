"""`python -m tests.torture.many.proxy`: TCP lines to a server that can be made bad, each by itself.

Owns the connections that go through it. Told what to do in lines of JSON on standard input, answers each in one line;
ends with its standard input. A line is one way to the server, for one process.

    {"open": "engine-1", "server": 5432}       → {"port": 40001}
    {"fault": "delay", "on": …, "ms": 200}     every piece takes so much longer, both ways
    {"fault": "reset", "on": …}                every connection is reset, on both sides
    {"fault": "orphan", "on": …}               reset on the client's side only; the server waits on, locks in hand
    {"fault": "hole", "on": …}                 nothing passes and nothing is closed: neither way
    {"fault": "deaf", "on": …}                 what is asked arrives, no answer comes back
    {"fault": "swallow", "on": …, "count": 3}  the next answers are thrown away and their connections reset: whatever
                                               was asked has happened, and nobody hears of it
    {"heal": …}                                delay, hole and deaf are over; what was held back goes on its way

Bytes are never repeated: TCP does not, and PostgreSQL's protocol has no message that could be said twice. What is
repeated are requests, by whoever sends them (`replaying`).
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from contextlib import suppress

import msgspec

CHUNK = 65_536
RESET = struct.pack("ii", 1, 0)
"""Linger for no time: closing sends RST."""
ORPHAN_S = 20.0
"""How long a server keeps a connection whose client is gone: longer than it lets anybody stand still with a lock."""


class Connection:
    """One client's connection and the one behind it."""

    def __init__(self, line: Line, client: Streams, server: Streams) -> None:
        self._line = line
        self._client = client
        self._server = server
        self._orphaned = False

    async def carry(self) -> None:
        try:
            await asyncio.gather(self._up(), self._down())
        except OSError:
            if self._orphaned:
                await asyncio.sleep(ORPHAN_S)
        finally:
            for _, writer in (self._client, self._server):
                with suppress(OSError):
                    writer.close()

    async def _up(self) -> None:
        while data := await self._client[0].read(CHUNK):
            await self._line.delay()
            await self._line.asking.wait()
            self._server[1].write(data)
            await self._server[1].drain()
        self._server[1].close()

    async def _down(self) -> None:
        while data := await self._server[0].read(CHUNK):
            if self._line.swallows():
                self.reset()
                return
            await self._line.delay()
            await self._line.answering.wait()
            self._client[1].write(data)
            await self._client[1].drain()
        self._client[1].close()

    def reset(self, server_too: bool = True) -> None:
        self._orphaned = not server_too
        for _, writer in (self._client, self._server)[: 2 if server_too else 1]:
            wire = writer.get_extra_info("socket")
            with suppress(OSError):
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Line:
    """One way to the server."""

    def __init__(self, server: int) -> None:
        self._server = server
        self.connections: set[Connection] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self.asking, self.answering = asyncio.Event(), asyncio.Event()
        self._delay_s = 0.0
        self._swallow = 0
        self.heal()

    async def open(self) -> int:
        self._listening = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._listening.sockets[0].getsockname()[1])

    async def close(self) -> None:
        self._listening.close()
        self.heal()
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._carry(reader, writer))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await asyncio.open_connection("127.0.0.1", self._server)
        except OSError:
            writer.transport.abort()
            return
        connection = Connection(self, (reader, writer), server)
        self.connections.add(connection)
        try:
            await connection.carry()
        finally:
            self.connections.discard(connection)

    async def delay(self) -> None:
        if self._delay_s:
            await asyncio.sleep(self._delay_s)

    def swallows(self) -> bool:
        self._swallow -= self._swallow > 0
        return self._swallow > 0

    def heal(self) -> None:
        self._delay_s = 0.0
        self.asking.set()
        self.answering.set()

    def fail(self, fault: str, ms: int, count: int) -> None:
        if fault == "delay":
            self._delay_s = ms / 1000
        elif fault == "hole":
            self.asking.clear()
            self.answering.clear()
        elif fault == "deaf":
            self.answering.clear()
        elif fault == "swallow":
            self._swallow = count + 1
        elif fault in ("reset", "orphan"):
            for connection in tuple(self.connections):
                connection.reset(server_too=fault == "reset")
        else:
            raise ValueError(f"there is no fault {fault!r}")


async def serve() -> None:
    """Until standard input ends."""
    lines: dict[str, Line] = {}
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while asked := await reader.readline():
        order = msgspec.json.decode(asked)
        answer: dict[str, object] = {}
        if "open" in order:
            lines[order["open"]] = Line(order["server"])
            answer = {"port": await lines[order["open"]].open()}
        elif "heal" in order:
            lines[order["heal"]].heal()
        else:
            lines[order["on"]].fail(order["fault"], order.get("ms", 0), order.get("count", 0))
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(serve())

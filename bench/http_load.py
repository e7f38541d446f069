"""A client that loads a service, as a process of its own: `python -m bench.http_load`, with its orders on stdin.

Owns nothing but sockets: it writes requests that were made before and reads answers up to their length, so that it
takes as little as possible of the machine that the service shares with it. It prints the seconds that it took and the
latencies in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """One client: the next request goes out when the last answer is complete."""

    def __init__(self, todo: Iterator[bytes], expect: bytes, latencies: list[float]) -> None:
        self._todo, self._expect, self._latencies = todo, expect, latencies
        self._heard = b""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def _next(self) -> None:
        request = next(self._todo, None)
        if request is None:
            self._transport.close()
            if not self.over.done():
                self.over.set_result(None)
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found or (length := _LENGTH.search(head)) is None or len(body) < int(length[1]):
            return
        if self._expect not in self._heard:
            self.over.set_exception(AssertionError(self._heard[:2_000].decode(errors="replace")))
            return
        self._latencies.append((time.perf_counter() - self._began) * 1e3)
        self._heard = b""
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_exception(exc or ConnectionError("the service has closed the connection"))


async def _load(orders: dict[str, Any]) -> None:
    latencies: list[float] = []
    todo = iter([request.encode() for request in orders["requests"]])
    expect = orders["expect"].encode()
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    made = [
        await loop.create_connection(lambda: Connection(todo, expect, latencies), orders["host"], orders["port"])
        for _ in range(orders["at_once"])
    ]
    await asyncio.gather(*(protocol.over for _, protocol in made))
    print(json.dumps({"seconds": time.perf_counter() - began, "latencies": latencies}))


if __name__ == "__main__":
    asyncio.run(_load(json.load(sys.stdin)))

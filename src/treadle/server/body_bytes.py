"""The body of a request as bytes, within its limits of size and time, decompressed.

Promises that a body is never kept, and never decompressed, beyond its limit. A body that has arrived with its head, as
small ones do, is read without a timer.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from treadle.server.one_write import EXTENSION, WholeExchange
from treadle.server.problems import HttpProblem
from treadle.server.routes import Route
from treadle.server.settings import ServerSettings

DISCARDED_MAX = 4 * 1024 * 1024
"""Bytes of a body over its limit that are read and thrown away, so that its sender hears why it is refused: a
connection that is closed in the middle of sending takes the answer with it."""


async def body_of(request: Request, route: Route, settings: ServerSettings) -> bytes:
    """The body of a request for a route. Raises TOO_LARGE, BAD_REQUEST, MEDIA_TYPE, ClientDisconnect."""
    limit = settings.artifact_max if route.is_upload else route.body_max or settings.body_max
    exchange: WholeExchange | None = request.scope.get("extensions", {}).get(EXTENSION)
    data = exchange.arrived() if exchange is not None else None
    if data is None:
        data = await read_bytes(request.receive, limit, settings.body_wait_s)
    elif len(data) > limit:
        raise too_large(limit)
    if not data:
        return data
    encoding = request.headers.get("content-encoding")
    return decompressed(data, encoding.lower(), limit) if encoding is not None else data


async def read_bytes(receive: Receive, limit: int, wait_s: float) -> bytes:
    """The body as it was sent. Raises TOO_LARGE, BAD_REQUEST (408), ClientDisconnect."""
    first = receive()
    if not isinstance(first, Coroutine):
        return await _all(first, receive, limit, wait_s)
    try:
        waits_for = first.send(None)
    except StopIteration as end:
        message: Message = end.value
        if message["type"] == "http.request" and not message.get("more_body", False):
            return _within(message.get("body", b""), limit)
        return await _all(_arrived(message), receive, limit, wait_s)
    return await _all(_Begun(first, waits_for), receive, limit, wait_s)


class _Begun:
    """A coroutine that was run up to its first wait; awaiting this runs the rest of it."""

    def __init__(self, coroutine: Coroutine[Any, Any, Message], waits_for: Any) -> None:
        self._coroutine = coroutine
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, Message]:
        waits_for, resume, given = self._waits_for, self._coroutine.send, None
        while True:
            try:
                given, resume = (yield waits_for), self._coroutine.send
            except BaseException as raised:
                given, resume = raised, self._coroutine.throw
            try:
                waits_for = resume(given)
            except StopIteration as end:
                message: Message = end.value
                return message


async def _arrived(message: Message) -> Message:
    return message


async def _all(first: Awaitable[Message], receive: Receive, limit: int, wait_s: float) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(wait_s):
            message = await first
            while True:
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunk = message.get("body", b"")
                size += len(chunk)
                if size <= limit:
                    chunks.append(chunk)
                elif size > limit + DISCARDED_MAX:
                    break
                if not message.get("more_body", False):
                    break
                message = await receive()
    except TimeoutError:
        raise HttpProblem("BAD_REQUEST", "the body did not arrive in time", status=408) from None
    if size > limit:
        raise too_large(limit)
    return b"".join(chunks)


def _within(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise too_large(limit)
    return data


def decompressed(data: bytes, encoding: str, limit: int) -> bytes:
    """A body without its compression. It is never decompressed beyond the limit."""
    if encoding == "identity":
        return data
    if encoding != "gzip":
        raise HttpProblem("MEDIA_TYPE", f"the content encoding {encoding[:40]!r} is not read", remedy="gzip, or none")
    unpack = zlib.decompressobj(wbits=31)
    try:
        plain = unpack.decompress(data, limit + 1)
    except zlib.error:
        raise HttpProblem("BAD_REQUEST", "the body is no gzip") from None
    if len(plain) > limit:
        raise too_large(limit)
    if not unpack.eof or unpack.unused_data:
        raise HttpProblem("BAD_REQUEST", "the body is not one whole gzip member")
    return plain


def too_large(limit: int) -> HttpProblem:
    """The refusal of a body beyond its limit."""
    return HttpProblem("TOO_LARGE", f"the body has more than {limit} bytes", headers={"connection": "close"})

"""One connection to the server: that of `one_write.py`, with limits on what a peer may hold without giving anything.

Owns the limits of size and time below HTTP. The parser underneath has none: a peer that never ends its headers would be
given memory for all of them, and one that sends nothing a place for ever. Promises: a request whose line and headers
are longer than `HEADERS_MAX` or take longer than `head_wait_s` is refused and its connection closed before any route
sees it; so is a request on one connection too many; a peer that neither reads its answer nor ends a body that was
answered already is cut off. Each is told why by a problem document. Must not look at bodies: the door does, route by
route."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from treadle.server.one_write import OneWriteProtocol
from treadle.server.problems import MEDIA_TYPE, HttpProblem

HEADERS_MAX: Final = 65_536
"""Bytes of a request's line and headers. Browsers and proxies stay below 32 KiB."""
REFUSAL: Final = f"The line and the headers of a request have at most {HEADERS_MAX} bytes."
CROWD: Final = 100
"""Connections beyond the most that are still told why they are refused; any more are closed without a word."""


class BoundedConnection(OneWriteProtocol):
    """See the module's docstring. At any time at most one timer runs: for the part of the exchange that is due."""

    connections_max: ClassVar[int] = 10_000
    """Connections at once. `serving.py` lowers it where the system has room for fewer."""
    head_wait_s: ClassVar[float] = 20.0
    """From the first byte of a request, or the beginning of its connection, to the end of its headers."""
    rest_wait_s: ClassVar[float] = 10.0
    """From the answer to the end of a request's body: a refusal may come before all of it has."""
    read_wait_s: ClassVar[float] = 60.0
    """How long a peer may take nothing of an answer that waits for it."""

    _head = 0
    _chunk = 0
    """Bytes that are being read."""
    _in_headers = True
    _timer: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.connections_max + CROWD:
            self.transport.abort()
            return
        self._due(self.head_wait_s, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._due(None)
        self._wait_for_reader(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._chunk = len(data)
        if self._in_headers:
            self._head += self._chunk
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_headers and self._head > HEADERS_MAX:
            self.send_400_response(REFUSAL)
        elif self._in_headers and self._head and self._timer is None:
            self._due(self.head_wait_s, self._head_is_late)

    def on_message_begin(self) -> None:
        self._head = 1  # at least: the rest of these bytes may belong to the request before
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_headers = False
        if self._timer is not None:
            self._due(None)
        if self._head + self._chunk > HEADERS_MAX and self._size() > HEADERS_MAX:
            raise ValueError(REFUSAL)  # the parser stops here, and `data_received` above answers 400
        if not self.url.startswith(b"/") and self._names_another_host():
            raise ValueError("The target of the request names another host than its Host header.")
        self.app = self.config.loaded_app if len(self.connections) <= self.connections_max else _crowded
        super().on_headers_complete()

    def _size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _names_another_host(self) -> bool:
        """Whether a whole URL as the target says another name than `Host`, which the door looks at."""
        named = [value for name, value in self.headers if name == b"host"]
        said, meant = (urlsplit(text.decode("latin-1")).hostname for text in (self.url, b"//" + b"".join(named)))
        return said != meant

    def on_message_complete(self) -> None:
        self._head, self._in_headers = 0, True
        if self._timer is not None:
            self._due(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._in_headers and not self.transport.is_closing():
            self._due(self.rest_wait_s, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader(self.read_wait_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._wait_for_reader(None)

    def send_400_response(self, msg: str) -> None:
        self._refuse(HttpProblem("BAD_REQUEST", msg))

    def _head_is_late(self) -> None:
        if self._head:
            self._refuse(HttpProblem("BAD_REQUEST", "the headers did not arrive in time", status=408))
        else:
            self.transport.close()

    def _refuse(self, problem: HttpProblem) -> None:
        """Answers below HTTP: no route is known yet."""
        if self.transport.is_closing() or (self.cycle is not None and not self.cycle.response_complete):
            self.transport.close()  # an answer is under way, and nothing can be said in the middle of it
            return
        body = problem.bytes(secrets.token_hex(8))
        head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\ncache-control: no-store\r\n"
        self.transport.write(STATUS_LINE[problem.status] + f"{head}connection: close\r\n\r\n".encode() + body)
        self.transport.close()

    def _due(self, wait_s: float | None, late: Callable[[], None] = lambda: None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if wait_s is None else self.loop.call_later(wait_s, late)

    def _wait_for_reader(self, wait_s: float | None) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = None if wait_s is None else self.loop.call_later(wait_s, self.transport.abort)


async def _crowded(_scope: Any, _receive: Any, send: Any) -> None:
    """The answer to a request on one connection too many."""
    problem = HttpProblem("RATE_LIMITED", "the service has too many connections now", remedy="try again in a moment")
    body = problem.bytes(secrets.token_hex(8))
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.encode(), text.encode()) for name, text in problem.headers.items()]
    headers += [(b"cache-control", b"no-store"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

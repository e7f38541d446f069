"""HTTP connections that write an answer at once: uvicorn's protocol, and a short way for whole requests and answers.

Owns an extension of ASGI: `scope["extensions"]["treadle.whole"]` is the exchange itself. It gives the body of a request
that has arrived, without `receive`, and it takes the status, headers and body of an answer together and writes them
with one call of the operating system, where `send` needs two and lets go of the interpreter twice while the store's
thread wants it. Also owns the timer of idle connections: one for each connection, which looks when it is due, instead
of one for each request. Parsing and the life of connections are uvicorn's; the limits of what a peer may hold are those
of `connection.py`. Under any other server the extension is not there, and requests and answers go the usual way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

EXTENSION = "treadle.whole"
Headers = Sequence[tuple[bytes, bytes]]


class Bell:
    """What `asyncio.Event` is for one listener, without its list of them: a request makes one and rings it twice."""

    __slots__ = ("_listener", "is_rung")

    def __init__(self) -> None:
        self.is_rung = False
        self._listener: asyncio.Future[None] | None = None

    def set(self) -> None:
        self.is_rung = True
        if self._listener is not None and not self._listener.done():
            self._listener.set_result(None)

    def clear(self) -> None:
        self.is_rung = False

    async def wait(self) -> None:
        while not self.is_rung:
            self._listener = asyncio.get_running_loop().create_future()
            try:
                await self._listener
            finally:
                self._listener = None


class WholeExchange(RequestResponseCycle):
    """One request of a connection, which may be read at once and answered with one write."""

    disconnected = False
    more_body = True
    response_started = False
    response_complete = False
    chunked_encoding: bool | None = None
    expected_content_length = 0
    task: asyncio.Task[None]

    def __init__(self, protocol: OneWriteProtocol, scope: Any, *, keep_alive: bool) -> None:
        self.scope = scope
        self.transport = protocol.transport
        self.flow = protocol.flow
        self.logger = protocol.logger
        self.access_logger = protocol.access_logger
        self.access_log = protocol.access_log
        self.default_headers = protocol.server_state.default_headers
        self.message_event = Bell()  # type: ignore[assignment]
        self.on_response = protocol.on_response_complete
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = protocol.expect_100_continue
        self.body = bytearray()
        self.tasks = protocol.tasks

    def arrived(self) -> bytes | None:
        """The body of the request, if all of it is here; None: `receive` has to be asked. Gives it once."""
        if self.more_body or self.disconnected or self.response_complete or self.waiting_for_100_continue:
            return None
        self.flow.resume_reading()
        body = bytes(self.body)
        self.body = bytearray()
        self.message_event.clear()
        return body

    def answer(self, status: int, headers: Headers, body: bytes, more: bytes = b"") -> bool:
        """Writes an answer; False: not now, send it the usual way. The headers must tell the length of the body. `more`
        are headers as they go over the wire."""
        if self.response_started or self.disconnected or self.flow.write_paused or self.scope["method"] == "HEAD":
            return False
        lines = [b"%b: %b\r\n" % header for header in headers]
        for name, _ in headers:
            if name == b"connection":
                self.keep_alive = False
                break
        else:
            if not self.keep_alive:
                lines.append(b"connection: close\r\n")
        head = b"".join(lines)
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines) or b"\0" in head:
            raise RuntimeError("a header of an answer contains the end of a line")
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.write(b"%b%b%b%b\r\n%b" % (STATUS_LINE[status], _block(self.default_headers), head, more, body))
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
        return True

    async def run_asgi(self, app: Any) -> None:
        try:
            await super().run_asgi(app)
        finally:
            self.tasks.discard(self.task)  # a callback for that would cost another turn of the loop


_last: tuple[Any, bytes] = (None, b"")


def _block(headers: Headers) -> bytes:
    """uvicorn's own headers (the date) as they go over the wire; it makes them anew every second."""
    global _last
    known, block = _last
    if known is not headers:
        block = b"".join(b"%b: %b\r\n" % header for header in headers)
        _last = headers, block
    return block


class OneWriteProtocol(HttpToolsProtocol):
    """See the module's docstring."""

    _idle_since: float | None = None
    """When the last answer was complete, by the loop's clock; None: a request is under way."""

    def on_message_begin(self) -> None:
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        parser, version = self.parser, self.parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope = scope = {  # type: ignore[assignment]
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": version,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": self.root_path,
            "headers": self.headers,
            "state": {},
            "method": parser.get_method().decode("ascii"),
            "path": self.root_path + (unquote(path) if "%" in path else path),
            "raw_path": self.root_path.encode("ascii") + url.path,
            "query_string": url.query or b"",
        }
        before = self.cycle
        keep_alive = version != "1.0" and parser.should_keep_alive()
        self.cycle = cycle = WholeExchange(self, scope, keep_alive=keep_alive)
        scope["extensions"] = {EXTENSION: cycle}  # type: ignore[dict-item]
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        assert isinstance(cycle, WholeExchange)
        cycle.task = task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)

    def on_body(self, body: bytes) -> None:
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            return
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait_idle(self.timeout_keep_alive)

    def _wait_idle(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self._idle_since is None:
            return
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left <= 0:
            super().timeout_keep_alive_handler()
        else:
            self._wait_idle(left)

    def _unset_keepalive_if_required(self) -> None:
        self._idle_since = None

    def connection_lost(self, exc: Any) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

"""Serving: a socket, the application behind it, and a stop in good order (5.1).

Owns the life of the HTTP server inside the event loop that the engine uses, too. Promises: when a stop is asked for,
the socket stays open and every new request is told DRAINING, streams are told so, requests in hand and work in hand
end, and then the process goes. Must not read signals: its caller says when to stop."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn

from treadle.errors import TreadleError
from treadle.server.connection import CROWD, BoundedConnection

BACKLOG = 2_048
FILES_MAX = 65_536
"""Open files that the process asks the system for, if it has fewer: every connection is one."""
FILES_KEPT = 256
"""Open files that are not for connections: the store, workers, provider, log."""
KEEP_ALIVE_S = 75
"""How long an idle connection is kept: longer than the 60 s that common proxies keep theirs, so that the proxy is the
one who closes."""
UNTAKEN_MS = 60_000
"""How long bytes may wait for a peer that does not take them; then the system ends the connection. A connection that is
closed with bytes under way would stay for as long as its reader does."""
DRAIN_S = 10.0
"""How long requests in hand may take to end after a stop was asked for."""


class CannotListen(TreadleError):
    """The address cannot be listened on."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; port 0 takes any. Raises CannotListen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY: else a body waits 40 ms for the receipt of its headers.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections inherit it
            listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNTAKEN_MS)
        listening.bind((host.strip("[]"), port))
        listening.listen(BACKLOG)
    except OSError as problem:
        listening.close()
        raise CannotListen(
            f"{host}:{port} cannot be listened on: {problem.strerror or problem}; choose another --port"
        ) from None
    listening.setblocking(False)
    return listening


def address_of(listening: socket.socket, scheme: str = "http") -> str:
    """The address of a listening socket, as a browser takes it."""
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{port}"


def room_for_connections(wanted: int) -> int:
    """How many connections the process has open files for, after asking the system for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES_MAX if hard == resource.RLIM_INFINITY else min(FILES_MAX, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            soft = most
    return wanted if soft == resource.RLIM_INFINITY else max(CROWD, min(wanted, soft - FILES_KEPT - CROWD))


class HttpServer(uvicorn.Server):
    """A uvicorn server that leaves signals alone and says when it listens."""

    def __init__(
        self, application: Any, ready: Callable[[], None], connection: type[BoundedConnection] = BoundedConnection
    ) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # strangers must not fill the log with odd requests
        connection.connections_max = room_for_connections(connection.connections_max)
        super().__init__(
            uvicorn.Config(
                application,
                http=connection,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=True,
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=int(DRAIN_S),
                proxy_headers=False,
                ws="none",
            )
        )
        self._ready = ready

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


async def serve(
    application: Any,
    listening: socket.socket,
    *,
    ready: Callable[[], None],
    stopping: asyncio.Event,
    drain: Callable[[], Awaitable[None]],
    connection: type[BoundedConnection] = BoundedConnection,
) -> None:
    """Serves until `stopping` is set; then `drain` ends the work behind the socket, which answers meanwhile."""
    server = HttpServer(application, ready, connection)
    serving = asyncio.create_task(server.serve([listening]))
    asked = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({serving, asked}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            await drain()
            server.should_exit = True
        await serving
    finally:
        asked.cancel()
        if not serving.done():
            server.force_exit = server.should_exit = True
            await asyncio.gather(serving, return_exceptions=True)
        listening.close()

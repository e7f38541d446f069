"""The engine's one HTTP client: aiohttp behind the gate.

Owns the session, made when first needed and closed with the engine. Promises that the address judged is the address
connected to: the resolver judges every address of a name and hands exactly those to the connector, and the socket
factory judges once more what is about to be connected. No proxies from the environment, no cookies, no redirects
of aiohttp's own, no decompression of aiohttp's own (`http_body` does it within bounds). aiohttp is imported when it is
first needed: its import is a fifth of an engine's start, and many engines never use it.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from treadle.actions.net import AddressGate, NetPolicy, literal

if TYPE_CHECKING:
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

CONNECTIONS_MAX = 200
"""Connections at once, to all peers together: far more than one engine's attempts need, fewer than the usual limit of
open files."""


class GatedResolver:
    """A resolver whose answers pass the gate; it has the methods of aiohttp's `AbstractResolver`."""

    def __init__(self, gate: AddressGate, inner: AbstractResolver) -> None:
        self._gate = gate
        self._inner = inner
        self.opened: set[tuple[str, int]] = set()
        """Private addresses that a name entry opened: the socket factory sees no names."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if self._gate.check_resolved(host, port, [entry["host"] for entry in found]):
            self.opened.update((entry["host"], port) for entry in found)
        return found

    async def close(self) -> None:
        await self._inner.close()


class GatedClient:
    """Owns the session. Tests pass a resolver of their own."""

    def __init__(self, policy: NetPolicy | None = None, resolver: AbstractResolver | None = None) -> None:
        self.policy = policy or NetPolicy()
        self.gate = AddressGate(self.policy)
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def prepare(self) -> None:
        """Imports aiohttp in a thread, so that the event loop does not stand still meanwhile."""
        if "aiohttp" not in sys.modules:
            await asyncio.to_thread(import_module, "aiohttp")

    def session(self) -> aiohttp.ClientSession:
        """The session of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._session, self._loop = self._fresh(), loop
        return self._session

    def _fresh(self) -> aiohttp.ClientSession:
        import aiohttp

        resolver = GatedResolver(self.gate, self._resolver or aiohttp.ThreadedResolver())

        def connecting(info: Any) -> socket.socket:
            family, kind, protocol, _, (host, port, *_rest) = info
            address = literal(host)
            if address is None or (host, port) not in resolver.opened:
                self.gate.check_url(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")
            return socket.socket(family, kind, protocol)

        connector = aiohttp.TCPConnector(
            resolver=cast(Any, resolver), use_dns_cache=False, limit=CONNECTIONS_MAX, socket_factory=connecting
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers={"User-Agent": "treadle", "Accept-Encoding": "gzip, deflate"},
        )

    async def close(self) -> None:
        """Closes the session; a later call makes a new one."""
        session, self._session = self._session, None
        if session is not None and not session.closed:
            await session.close()

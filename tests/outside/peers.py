"""Real peers for actions that reach outside: a web server on loopback, a resolver with answers of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from tests.unit.actions.calls import call
from treadle.actions.client import GatedClient
from treadle.actions.http import HttpKind
from treadle.actions.net import NetPolicy
from treadle.actions.protocol import Done, Failed
from treadle.actions.secrets import DictSecrets

T = TypeVar("T")
Answer = web.Response | web.StreamResponse
Handler = Callable[[web.BaseRequest], Awaitable[Answer]]
LOOPBACK = NetPolicy(allow=("127.0.0.1:*",))
WAIT_S = 20.0


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs to the end, with a deadline: a test that hangs says so."""

    async def bounded() -> T:
        async with asyncio.timeout(WAIT_S):
            return await work

    return asyncio.run(bounded())


@dataclass
class Seen:
    """One request as the peer saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Peer:
    """A server that remembers."""

    url: str
    port: int
    seen: list[Seen] = field(default_factory=list)


@asynccontextmanager
async def peer(handler: Handler) -> AsyncIterator[Peer]:
    """A server on a free port of 127.0.0.1."""

    async def remember(request: web.BaseRequest) -> Answer:
        headers = {name.lower(): value for name, value in request.headers.items()}
        server.seen.append(Seen(request.method, request.path_qs, headers, await request.read()))
        return await handler(request)

    runner = web.ServerRunner(web.Server(remember), shutdown_timeout=1)
    await runner.setup()
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        server = Peer(f"http://127.0.0.1:{port}", port)
        site = web.SockSite(runner, reserved)
        await site.start()
        try:
            yield server
        finally:
            await runner.cleanup()


def answering(status: int = 200, **fields: Any) -> Handler:
    """Always the same answer."""

    async def handler(_request: web.BaseRequest) -> Answer:
        return web.Response(status=status, **fields)

    return handler


class FakeResolver(AbstractResolver):
    """Names with scripted addresses; each look-up takes the next answer, the last one stays."""

    def __init__(self, names: dict[str, list[list[str]]]) -> None:
        self.names = {name: list(answers) for name, answers in names.items()}
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        self.asked.append(host)
        answers = self.names.get(host)
        if answers is None:
            raise OSError(f"no such name: {host}")
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [_result(host, address, port) for address in addresses]

    async def close(self) -> None:
        pass


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return {"hostname": host, "host": address, "port": port, "family": family, "proto": 0, "flags": 0}


async def ask(
    config: dict[str, Any],
    input: Any = None,
    *,
    policy: NetPolicy = LOOPBACK,
    resolver: AbstractResolver | None = None,
    secrets: dict[str, str] | None = None,
    secret_hosts: dict[str, tuple[str, ...]] | None = None,
    **fields: Any,
) -> Done | Failed:
    """One `http` action, alone with its client."""
    kind = HttpKind(GatedClient(policy, resolver), DictSecrets(secrets or {}), secret_hosts)
    try:
        reply = await kind.run(call(config, input, **fields))  # type: ignore[misc]
    finally:
        await kind.close()
    assert isinstance(reply, Done | Failed)
    return reply


def exchange(handler: Handler, config: dict[str, Any], input: Any = None, **options: Any) -> tuple[Done | Failed, Peer]:
    """An `http` action against a peer; `url` is a path there unless it is given in full."""

    async def whole() -> tuple[Done | Failed, Peer]:
        async with peer(handler) as server:
            url = config.get("url", "/")
            full = server.url + url if isinstance(url, str) and url.startswith("/") else url
            return await ask({**config, "url": full}, input, **options), server

    return run(whole())


def output(reply: Done | Failed) -> Any:
    """The output of an action that must have succeeded."""
    assert isinstance(reply, Done), reply
    return reply.output


def error(reply: Done | Failed) -> Any:
    """The error of an action that must have failed."""
    assert isinstance(reply, Failed), reply
    return reply.error

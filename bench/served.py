"""A service on loopback for benches, and requests sent to it from another process.

Owns starting and stopping the server in the process of the engine, as `treadle serve` does, and the words of a
request. Must not know what is measured.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

import msgspec
import uvicorn
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from treadle.runtime.access.audit import AuditEvent, entry_of
from treadle.runtime.engine import Engine
from treadle.server.application import app
from treadle.server.replies import HEADERS
from treadle.server.runs import view_of
from treadle.server.serving import bound, serve


class Loaded(Struct, frozen=True):
    """What a load has measured."""

    seconds: float
    latencies: list[float]
    """Milliseconds, in the order of the answers."""

    def percentile(self, share: float) -> float:
        return sorted(self.latencies)[min(int(len(self.latencies) * share), len(self.latencies) - 1)]


class Service(Struct, frozen=True):
    """One that runs: its address, and a key of an admin."""

    host: str
    port: int
    key: str

    def requests_to(self, method: str, paths: Iterable[str], body: Any) -> list[str]:
        """The same request to many paths."""
        return [self.request(method, path, body) for path in paths]

    def request(self, method: str, path: str, body: Any = None, headers: Sequence[str] = ()) -> str:
        """A request as it goes over the wire."""
        content = json.dumps(body) if body is not None else ""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", f"Authorization: Bearer {self.key}", *headers]
        if content:
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
        return "\r\n".join([*lines, "", content])

    async def load(self, requests: Sequence[str], at_once: int, expect: str) -> Loaded:
        """Sends requests, `at_once` at a time; each answer must contain `expect`."""
        orders = {
            "host": self.host,
            "port": self.port,
            "requests": requests,
            "at_once": at_once,
            "expect": expect,
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.http_load", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate(json.dumps(orders).encode())
        assert process.returncode == 0
        told = json.loads(said)
        return Loaded(told["seconds"], told["latencies"])


Answered = Callable[[Any, bytes], Awaitable[Response]]
"""What a bare application does with the path and the body of a request."""


@asynccontextmanager
async def bare(engine: Engine, workflow: str) -> AsyncIterator[Service]:
    """Yields the least that a service could be for starts: the body is read, a run started with its entry in the audit,
    and answered is what the service answers. No key, no checks, no routes."""

    async def start(_path: str, body: bytes) -> Response:
        given = msgspec.json.decode(body)
        event = AuditEvent(who="bench", name="bench", action="POST /api/v1/runs", path="/api/v1/runs", status=201)
        with engine.along(entry_of(event, engine.now())) as along:
            run = await engine.start(workflow, given["input"])
        content = msgspec.json.encode(await view_of(run, along.row))
        return _plain(content, 201, {"location": f"/api/v1/runs/{run.id}"})

    async with _bare(start) as service:
        yield service


@asynccontextmanager
async def bare_callbacks(engine: Engine) -> AsyncIterator[Service]:
    """The same for callbacks: the token is checked, the body read, the visit answered."""
    callbacks = engine.callbacks

    async def answer(path: str, body: bytes) -> Response:
        to = await callbacks.read(path.rpartition("/")[2])
        assert to is not None
        applied = await callbacks.answer(to, msgspec.json.decode(body)["output"])
        return _plain(msgspec.json.encode({"applied": applied}), 200, {})

    async with _bare(answer) as service:
        yield service


def _plain(content: bytes, status: int, headers: dict[str, str]) -> Response:
    always = {"cache-control": "no-store", "x-request-id": "0" * 16}
    response = Response(content, status, headers | always, "application/json")
    response.raw_headers.extend(HEADERS)
    return response


@asynccontextmanager
async def _bare(answered: Answered) -> AsyncIterator[Service]:
    """uvicorn as it is, and an application of one function."""
    listening = bound("127.0.0.1", 0)
    host, port = listening.getsockname()[:2]

    async def application(scope: Any, receive: Any, send: Any) -> None:
        response = await answered(scope["path"], await Request(scope, receive).body())
        await response(scope, receive, send)

    config = uvicorn.Config(application, http="httptools", lifespan="off", log_config=None, access_log=False, ws="none")
    server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]
    serving = asyncio.create_task(server.serve([listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield Service(host, port, "none")
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def served(engine: Engine) -> AsyncIterator[Service]:
    """Yields the service of an engine."""
    made = await engine.keys.create("bench", roles=("admin",))
    listening, stopping, ready = bound("127.0.0.1", 0), asyncio.Event(), asyncio.Event()
    host, port = listening.getsockname()[:2]

    async def drain() -> None:
        pass

    serving = asyncio.create_task(serve(app(engine), listening, ready=ready.set, stopping=stopping, drain=drain))
    await ready.wait()
    try:
        yield Service(host, port, made[1])
    finally:
        stopping.set()
        await serving

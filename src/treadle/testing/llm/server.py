"""A language model for tests and examples: a local HTTP server that speaks OpenAI's and Anthropic's protocols.

    python -m treadle.testing.llm.server --port 0 --script answers.yaml

prints its address; a profile with that `base_url` then works offline, without a key. In a test:

    async with LlmServer(lambda asked: Answer(text="hello")) as server:
        Profile(name="local", base_url=server.openai_url, model="any")

Owns the listening and the recording. Promises that every question is in `asked`, in order, and that a client that
hangs up ends its answer (`hung_up`). Listens on loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
from aiohttp import web

from treadle.testing.llm import wire as llm_wire
from treadle.testing.llm.answers import Answer, Asked, Script, made_up, read_script

__all__ = ["Answer", "Asked", "LlmServer", "Script", "made_up", "main"]


class LlmServer:
    """The server. Its script may be replaced while it runs."""

    def __init__(self, script: Script = made_up, port: int = 0) -> None:
        self.script = script
        self.asked: list[Asked] = []
        self.arrived = asyncio.Event()
        """Set by every question."""
        self.hung_up = asyncio.Event()
        """Set when a client has hung up before its answer was complete."""
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def openai_url(self) -> str:
        """The `base_url` of an OpenAI profile."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def anthropic_url(self) -> str:
        """The `base_url` of an Anthropic profile."""
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> LlmServer:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/chat/completions", self._openai)
        app.router.add_post("/v1/messages", self._anthropic)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _openai(self, request: web.Request) -> web.StreamResponse:
        return await self._served(request, llm_wire.read_openai(await request.json(), _headers(request)))

    async def _anthropic(self, request: web.Request) -> web.StreamResponse:
        return await self._served(request, llm_wire.read_anthropic(await request.json(), _headers(request)))

    async def _served(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        self.asked.append(asked)
        self.arrived.set()
        answer = self.script(asked)
        try:
            if asked.stream and answer.status == 200 and answer.raw is None:
                return await _streamed(request, asked, answer)
            if answer.hold is not None:
                await answer.hold.wait()
        except (asyncio.CancelledError, ConnectionResetError):
            self.hung_up.set()
            raise
        if answer.raw is not None:
            return web.Response(text=answer.raw, status=answer.status, content_type="application/json")
        body = llm_wire.whole(asked, answer) if answer.status == 200 else llm_wire.failure(asked.api, answer)
        return _json(body, answer.status, answer.headers)


def _headers(request: web.Request) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.items()}


def _json(body: Any, status: int, headers: dict[str, str]) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, headers=headers, content_type="application/json")


async def _streamed(request: web.Request, asked: Asked, answer: Answer) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream", **answer.headers})
    await response.prepare(request)
    for index, piece in enumerate(llm_wire.pieces(asked, answer)):
        if answer.hold is not None and index == answer.hold_after:
            await answer.hold.wait()
        if index == answer.break_after and request.transport is not None:
            request.transport.abort()
            return response
        await response.write(piece)
    await response.write_eof()
    return response


async def _serve(port: int, script: Script) -> None:
    async with LlmServer(script, port) as server:
        sys.stdout.write(server.openai_url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main(arguments: list[str] | None = None) -> None:
    """The command: serves until it is interrupted."""
    parser = argparse.ArgumentParser(prog="python -m treadle.testing.llm.server", description="An offline model.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one; the address is printed")
    parser.add_argument("--script", type=Path, help="YAML: a list of {when, text | json, status, retry_after, times}")
    given = parser.parse_args(arguments)
    script = made_up if given.script is None else read_script(given.script)
    try:
        asyncio.run(_serve(given.port, script))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()

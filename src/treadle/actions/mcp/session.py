"""The adapter to the MCP SDK: the only module that imports it, loaded when the first tool is called.

A session is opened once per server and shared by all calls: starting a program takes seconds, and MCP is made for many
calls in flight. The SDK wants a session closed by the task that opened it, so each has a task of its own, its keeper:

    call ──► Session.call ──► client.call_tool ◄── keeper: opens, waits for `close`, closes
    call ──►                                       (connection lost: it ends, and the next call gets a new session)

Promises that a cancelled call tells the server so and leaves the others alone, and that nothing the program started
outlives `close`. It takes about three seconds to import, so import it in a thread.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT, CallToolResult, RequestParamsMeta, TextContent

from treadle.actions.mcp.servers import McpServer
from treadle.actions.protocol import Done, Failed, failed
from treadle.expression.words import clip

Json = Any
LOST = (CONNECTION_CLOSED, REQUEST_TIMEOUT, INTERNAL_ERROR)
"""Codes that speak of the connection or the server's state rather than of the call."""
_IDLE_S = 300.0
"""Of an HTTP server that says nothing while a tool works; the SDK's own default."""
_WORDS_MAX = 1_000


class Session:
    """One open connection."""

    def __init__(self, server: McpServer, env: dict[str, str], headers: dict[str, str]) -> None:
        self.server = server
        self.credentials = (env, headers)
        """The secrets it was opened with: a session with old ones is not used again."""
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._keeper = asyncio.get_running_loop().create_task(self._keep(), name=f"mcp {server.name}")

    @property
    def usable(self) -> bool:
        """Whether calls may be sent."""
        return not self._keeper.done() and not self._closing.is_set()

    async def call(self, tool: str, arguments: dict[str, Json], key: str, attempt: int) -> Done | Failed:
        """One call of a tool. Failures are values; only being cancelled raises."""
        try:
            client = await asyncio.shield(self._client)
        except (OSError, MCPError, httpx2.HTTPError, ValueError, ExceptionGroup) as problem:
            return self._unreachable(problem)
        meta = cast(RequestParamsMeta, {"treadle/idempotency-key": key, "treadle/attempt": attempt})
        try:
            result = await client.call_tool(tool, arguments, meta=meta)
        except MCPError as problem:
            return self._refused(tool, problem)
        except (OSError, httpx2.HTTPError, ExceptionGroup) as problem:
            return self._unreachable(problem)
        return self._result(tool, result)

    async def close(self) -> None:
        """Ends the connection, and the program if it was started."""
        self._closing.set()
        await asyncio.wait([self._keeper])

    async def _keep(self) -> None:
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self.server.connect_timeout_ms / 1000):
                    client = await stack.enter_async_context(self._connect())
                self._client.set_result(client)
                await self._closing.wait()
        except Exception as problem:
            if not self._client.done():
                self._client.set_exception(_first(problem))
                self._client.exception()  # a caller that was cancelled meanwhile does not fetch the result
        finally:
            self._client.cancel()

    def _connect(self) -> AbstractAsyncContextManager[Client]:
        env, headers = self.credentials
        if self.server.url is not None:
            return _of_address(self.server, self.server.url, headers)
        return _of_program(self.server, env)

    def _unreachable(self, problem: BaseException) -> Failed:
        self._closing.set()
        cause = _first(problem)
        text = clip(f"{type(cause).__name__}: {cause}".removesuffix(": "), _WORDS_MAX)
        missing = isinstance(cause, FileNotFoundError | PermissionError) and bool(self.server.command)
        return failed(f"MCP server {self.server.name!r} cannot be reached: {text}", retryable=not missing)

    def _refused(self, tool: str, problem: MCPError) -> Failed:
        lost = problem.code in LOST
        if problem.code == CONNECTION_CLOSED:
            self._closing.set()
        details = {"server": self.server.name, "tool": tool, "code": problem.code}
        message = f"MCP server {self.server.name!r}, tool {tool!r}: {clip(problem.message, _WORDS_MAX)}"
        return failed(message, retryable=lost, details=details)

    def _result(self, tool: str, result: CallToolResult) -> Done | Failed:
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        if result.is_error:
            message = f"tool {tool!r} of MCP server {self.server.name!r} failed: {clip(text, _WORDS_MAX)}"
            return failed(message, details={"server": self.server.name, "tool": tool})
        if isinstance(result.structured_content, dict):
            return Done(result.structured_content)
        if all(isinstance(block, TextContent) for block in result.content):
            return Done({"text": text})
        blocks = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
        return Done({"text": text, "content": blocks})


@asynccontextmanager
async def _of_address(server: McpServer, url: str, headers: dict[str, str]) -> AsyncIterator[Client]:
    timeout = httpx2.Timeout(server.connect_timeout_ms / 1000, read=_IDLE_S)
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


@asynccontextmanager
async def _of_program(server: McpServer, env: dict[str, str]) -> AsyncIterator[Client]:
    program, *arguments = server.command
    started = StdioServerParameters(command=program, args=arguments, env=env, cwd=server.cwd)
    with Path(server.log or os.devnull).open("a", encoding="utf-8") as log:
        async with Client(stdio_client(started, errlog=log)) as client:
            yield client


def _first(problem: BaseException) -> BaseException:
    """The first real exception in the SDK's task groups."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return problem

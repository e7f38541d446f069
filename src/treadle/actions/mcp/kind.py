"""`mcp {server, tool, arguments?}`: a tool call on a server the operator has configured.

The output is the tool's structured result, or `{text}`, with `{content}` beside it where not all of it is text. A tool
that says it failed is a business failure; trouble with the connection is retryable. The values of `arguments` are
sources or `{secret: NAME}`. Promises that nothing of the extra is imported before the first call.
"""

from __future__ import annotations

import asyncio
import importlib
from functools import partial
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from treadle.actions.configured import Settled, with_secrets
from treadle.actions.failure import TaskFailure
from treadle.actions.mcp.servers import McpServer, McpSettings
from treadle.actions.protocol import Call, Done, Failed, Reply
from treadle.actions.registry import Registry
from treadle.actions.secrets import EnvironmentSecrets, Secret, SecretProvider, filled, revealed
from treadle.actions.settings import setting, text_setting
from treadle.expression.sources import compile_source

Json = Any


class McpKind:
    """Knows the operator's servers and keeps one session with each that was needed, per event loop."""

    name = "mcp"

    def __init__(self, settings: McpSettings, secrets: SecretProvider) -> None:
        self._settings = settings
        self._secrets = secrets
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sessions: dict[str, Any] = {}

    def run(self, call: Call) -> Reply:
        server, tool = self._settings.server(text_setting(call, "server")), text_setting(call, "tool")
        server.allow(tool)
        written = call.config.get("arguments")
        secrets = {"env": server.env, "headers": server.headers, "arguments": written}
        work = partial(self._call, server, tool, call)
        host = urlsplit(server.url).hostname if server.url is not None else None
        return with_secrets(replace(call, config=secrets), self._secrets, work, host=host)

    async def close(self) -> None:
        """Ends all sessions of this event loop, and the programs behind them."""
        sessions, self._sessions = self._sessions, {}
        if self._loop is asyncio.get_running_loop():
            await asyncio.gather(*(session.close() for session in sessions.values()))

    async def _call(self, server: McpServer, tool: str, call: Call, settled: Settled) -> Done | Failed:
        border = await _border()
        arguments = _arguments(call, settled.secrets)
        session = self._session(border, server, settled.secrets)
        reply: Done | Failed = await session.call(tool, revealed(arguments), call.key, call.facts.attempt)
        return reply

    def _session(self, border: Any, server: McpServer, secrets: dict[str, Secret]) -> Any:
        """The open session, or a new one where there is none, it has ended, or a secret of it has changed."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._sessions = loop, {}
        env, headers = (revealed(filled(given, secrets)) for given in (server.env, server.headers))
        session = self._sessions.get(server.name)
        if session is None or not session.usable or session.credentials != (env, headers):
            session = self._sessions[server.name] = border.Session(server, env, headers)
        return session


def _arguments(call: Call, secrets: dict[str, Secret]) -> dict[str, Json]:
    written = call.config.get("arguments")
    if isinstance(written, dict) and written.keys() not in ({"cel"}, {"literal"}):
        view = call.view()
        evaluated = {name: compile_source(filled(value, secrets)) for name, value in written.items()}
        return {name: source.evaluate(view) for name, source in evaluated.items()}
    given = setting(call, "arguments", {})
    if not isinstance(given, dict):
        raise TaskFailure(f"`arguments` must be an object, not {given!r}")
    return given


async def _border() -> ModuleType:
    """The border to the extra. Importing it takes seconds, so not on the event loop."""
    try:
        return await asyncio.to_thread(importlib.import_module, "treadle.actions.mcp.session")
    except ImportError as problem:
        raise TaskFailure(
            f"actions of kind 'mcp' need an extra: pip install 'treadle[mcp]' ({problem})", kind="NOT_FOUND"
        ) from None


def install_mcp(registry: Registry, settings: McpSettings, secrets: SecretProvider | None = None) -> McpKind:
    """Registers the kind. The caller must close the returned kind when the engine stops."""
    kind = McpKind(settings, secrets or EnvironmentSecrets())
    registry.register(kind)
    return kind

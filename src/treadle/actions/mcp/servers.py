"""MCP servers: the operator describes how each is reached, and a workflow only names one.

Owns the settings of the kind `mcp`. Promises that no secret is in them: values of `env` and `headers` are text or
`{secret: NAME, prefix?}`. Must not know the protocol.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.actions.failure import TaskFailure
from treadle.actions.nearest import nearest

Json = Any


class McpServer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One server: a program that speaks over its stdin and stdout, or an address."""

    name: str
    command: tuple[str, ...] = ()
    """Program and arguments; it inherits only PATH, HOME and the like."""
    url: str | None = None
    """Address of a server that speaks streamable HTTP."""
    env: dict[str, Json] = {}
    """More environment variables of the program."""
    headers: dict[str, Json] = {}
    """Sent with every request to the address: `Authorization: {secret: NAME, prefix: "Bearer "}`."""
    cwd: str | None = None
    tools: tuple[str, ...] = ()
    """Tools that actions may call; empty: all."""
    connect_timeout_ms: int = 30_000
    """Programs that are started by a package runner may have to download first."""
    log: str | None = None
    """File to which the program's stderr is appended; None drops it."""

    def __post_init__(self) -> None:
        if bool(self.command) == (self.url is not None):
            raise ValueError(f"MCP server {self.name!r} needs either a command or a url")

    def allow(self, tool: str) -> None:
        """Raises `TaskFailure` for a tool that the operator does not allow."""
        if self.tools and tool not in self.tools:
            raise TaskFailure(f"MCP server {self.name!r} does not allow the tool {tool!r}{nearest(tool, self.tools)}")


class McpSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's settings for MCP."""

    servers: tuple[McpServer, ...] = ()

    def server(self, name: str) -> McpServer:
        """The server of that name; raises `TaskFailure`."""
        known = {server.name: server for server in self.servers}
        if name not in known:
            raise TaskFailure(f"there is no MCP server {name!r}{nearest(name, known)}", kind="NOT_FOUND")
        return known[name]

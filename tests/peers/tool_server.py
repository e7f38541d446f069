"""A real MCP server with a few tools, over stdin and stdout or streamable HTTP: `python tool_server.py [http]`.

With `http` it prints its address as its first line.
"""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import anyio
import uvicorn
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tools")


@server.tool()
def add(a: int, b: int) -> dict[str, int]:
    """Adds two numbers."""
    return {"sum": a + b}


@server.tool(structured_output=False)
def say(text: str) -> str:
    """Says it."""
    return f"You said {text}."


@server.tool()
def refuse(why: str) -> str:
    """Fails."""
    raise ToolError(why)


@server.tool(structured_output=False)
def draw() -> Image:
    """A picture."""
    return Image(data=b"dots", format="png")


@server.tool()
def environment(name: str) -> dict[str, str | None]:
    """A variable of this process."""
    return {"value": os.environ.get(name), "pid": str(os.getpid())}


@server.tool()
def request(context: Context[Any, Any]) -> dict[str, Any]:
    """What came along with this call."""
    headers = context.headers or {}
    meta = context.request_context.meta or {}
    return {
        "authorization": headers.get("authorization"),
        "key": meta.get("treadle/idempotency-key"),
        "attempt": meta.get("treadle/attempt"),
    }


@server.tool()
async def wait(port: int) -> str:
    """Never answers; says on a connection of its own that it has begun, and that it was cancelled."""
    async with await anyio.connect_tcp("127.0.0.1", port) as line:
        try:
            await line.send(b"started\n")
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await line.send(b"cancelled\n")
            raise
    return ""


@server.tool()
def die() -> str:
    """Ends the whole process, without a word."""
    os._exit(1)


def serve_http() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp\n")
    sys.stdout.flush()
    config = uvicorn.Config(server.streamable_http_app(), log_level="critical", timeout_graceful_shutdown=0)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    serve_http() if sys.argv[1:] == ["http"] else server.run("stdio")

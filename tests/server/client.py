"""A service in a process of its own, and a client that speaks plain HTTP to it.

The client sends paths and headers exactly as they are given: tests of odd requests need that.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from treadle import connect

COMMAND = [sys.executable, "-m", "treadle.cli.main"]
ROLES = ("viewer", "operator", "author", "approver", "worker", "admin")
READY_S = 60
"""How long a service may take to begin: machines that test are busy."""


class Reply:
    """An answer."""

    def __init__(self, response: HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.raw = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    def __repr__(self) -> str:
        return f"<{self.status} {self.raw[:500]!r}>"


class Caller:
    """Requests with one key; None: without."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url
        self.key = key

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout_s: float = 30,
    ) -> Reply:
        """One request. A body that is no bytes is sent as JSON. A path without a leading /api is below /api/v1."""
        sent = dict(headers or {})
        if self.key is not None:
            sent.setdefault("Authorization", f"Bearer {self.key}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=timeout_s)
        try:
            connection.request(method, path, body=body, headers=sent)
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def api(self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Reply:
        """A request below /api/v1."""
        return self(method, f"/api/v1{path}", body, headers)

    def get(self, path: str, **headers: str) -> Any:
        """The JSON below /api/v1; anything but 200 fails the test."""
        reply = self.api("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        assert reply.status == 200, reply
        return reply.json

    def post(self, path: str, body: Any = None, *, status: int | None = None) -> Any:
        """The JSON of a command below /api/v1; a refusal fails the test unless its status is given."""
        reply = self.api("POST", path, body if body is not None else {})
        assert reply.status == status if status is not None else reply.status in (200, 201, 202), reply
        return reply.json


async def _keys(store: str) -> dict[str, str]:
    """A key for each role, made in this process: a process for each would take seconds."""
    async with connect(store, create=True) as client:
        return {role: (await client.keys.create(role, [role]))[1] for role in ROLES}


class Served:
    """`treadle serve` on a store, with a key for each role."""

    command = COMMAND

    def __init__(self, store: str, folder: Path, *options: str) -> None:
        self.store = store
        self.folder = folder
        self.options = options
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TREADLE_")}
        self.keys = asyncio.run(_keys(store))
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """One verb of the command line on the store."""
        return subprocess.run(
            [*COMMAND, *words, "--store", self.store],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=120,
            check=False,
        )

    def new_key(self, name: str, *options: str) -> str:
        """A key, made on the store."""
        done = self.run("keys", "create", name, *options, "--output", "json")
        assert done.returncode == 0, done.stderr
        key: str = json.loads(done.stdout)["key"]
        return key

    def start(self, port: int = 0) -> Self:
        """Begins to serve; returns when it is ready."""
        self.log = (self.folder / "serve.log").open("a")
        self.process = subprocess.Popen(
            [*self.command, "serve", "--port", str(port), "--store", self.store, *self.options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.startswith("treadle: serving http://"):
            self.kill()
            raise AssertionError(f"{line!r}; stderr: {self.said()}")
        self.url = line.split()[-1]
        return self

    def said(self) -> str:
        """Its stderr so far."""
        return (self.folder / "serve.log").read_text()

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        assert self.process is not None
        self.process.terminate()
        code = self.process.wait(60)
        self._closed()
        return code

    def kill(self) -> None:
        """SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(60)
        self._closed()

    def _closed(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        self.process.stdout.close()
        self.process = None
        self.log.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        if self.process is not None:
            self.kill()

    def as_(self, role: str | None) -> Caller:
        """A client with the key of a role; None: without a key."""
        return Caller(self.url, self.keys[role] if role is not None else None)

    def with_key(self, key: str) -> Caller:
        return Caller(self.url, key)

    def deploy(self, definition: str) -> Any:
        """Deploys a definition in YAML."""
        reply = self.as_("author").api("POST", "/workflows", definition.encode(), {"Content-Type": "application/yaml"})
        assert reply.status in (200, 201), reply
        return reply.json


class Worker:
    """A webhook worker on loopback that acknowledges everything and remembers what it was told."""

    def __init__(self, status: int = 202, body: bytes = b"") -> None:
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        worker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                worker.told.put({"headers": dict(self.headers), "raw": text, **json.loads(text)})

            def log_message(self, *_words: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next(self) -> dict[str, Any]:
        """The next message it gets."""
        return self.told.get(timeout=30)


class Connected(Served):
    """A service that other systems talk to: workers on loopback, with an address to answer to."""

    SIGNING = "whsec_" + "b2xk" * 8

    def start(self, port: int = 0) -> Self:
        if not port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
        self.environment |= {
            "TREADLE_WEBHOOKS_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "TREADLE_WEBHOOKS_SIGNING_SECRET": "SIGN",
            "TREADLE_SECRET_SIGN": self.SIGNING,
            "TREADLE_NET_ALLOW": "127.0.0.1:*",
        }
        return super().start(port)

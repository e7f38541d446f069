"""Several projects behind one address: each a store of its own, below `/p/NAME` (5.6).

Owns the way from a path to a project. Promises isolation by construction: a project is a whole application with its own
client, keys, sessions, secrets, limits and audit, and nothing is shared but the socket. An unknown project looks like
any other address where nothing is.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from treadle.runtime.client import Client
from treadle.server.application import Application
from treadle.server.door import new_request_id, refusal
from treadle.server.info import not_ready
from treadle.server.problems import HttpProblem
from treadle.server.replies import send_answer
from treadle.server.service import Service
from treadle.server.settings import ServerSettings
from treadle.server.table import all_routes

ROOT = ""
"""The name of the project without a prefix."""


class ProjectsApplication:
    """See the module's docstring."""

    def __init__(self, clients: Mapping[str, Client], settings: ServerSettings) -> None:
        routes = all_routes()
        self._named = {
            name: Application(Service(client, settings, name or None), routes) for name, client in clients.items()
        }
        self._settings = settings

    @property
    def services(self) -> list[Service]:
        """The service of every project."""
        return [application.service for application in self._named.values()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "").removeprefix(scope.get("root_path", ""))
        empty, mark, rest = ([*path.split("/", 2), "", ""])[:3]
        name = rest.partition("/")[0] if not empty and mark == "p" else ROOT
        project = self._named.get(name)
        if project is not None:
            if name != ROOT:
                scope = {**scope, "root_path": f"{scope.get('root_path', '')}/p/{name}"}
            await project(scope, receive, send)
            return
        response = await self._without_project(Request(scope, receive), path)
        await send_answer(response, (), scope, receive, send)

    async def _without_project(self, request: Request, path: str) -> Response:
        """The answer where no project is: only probes of the whole process are answered."""
        if ROOT not in self._named and request.method in ("GET", "HEAD"):
            if path == "/health/live":
                return JSONResponse({"status": "alive"})
            if path == "/health/ready":
                problems = [problem for service in self.services if (problem := await not_ready(service)) is not None]
                if not problems:
                    return JSONResponse({"status": "ready"})
                return refusal(problems[0], new_request_id())
        return refusal(HttpProblem("NOT_FOUND", "there is nothing at this address"), new_request_id())

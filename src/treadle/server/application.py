"""The application: routes, the door and the headers of every answer, as one ASGI callable.

Owns the composition. `app(engine)` gives an application that can be mounted in any ASGI server or framework, under any
prefix. Promises that an application with an undecided route cannot be made: every `Route` has its roles (`routes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from treadle.runtime.client import Client
from treadle.server.door import enter, new_request_id, refusal
from treadle.server.metrics import count_request, measured
from treadle.server.origins import cors_headers, preflight_headers
from treadle.server.paths import RouteTree
from treadle.server.problems import HttpProblem
from treadle.server.replies import send_answer
from treadle.server.request import ServiceRequest
from treadle.server.routes import Route
from treadle.server.service import Service
from treadle.server.settings import ServerSettings
from treadle.server.table import all_routes

HOSTS_KNOWN_MAX = 1_000
"""Spellings of the service's own names that are remembered."""


def app(engine: Client, settings: ServerSettings | None = None) -> Application:
    """The service of one store as an ASGI application. The engine or client stays the caller's: it is not closed."""
    return Application(Service(engine, settings or ServerSettings()), all_routes())


class Application:
    """See the module's docstring."""

    def __init__(self, service: Service, routes: Iterable[Route]) -> None:
        self.service = service
        service.routes = tuple(routes)
        self._tree = RouteTree(service.routes)
        self._known_hosts: set[str] = set()
        measured(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"the service does not speak {scope['type']}")
        request = ServiceRequest(scope, receive)
        response = await self._respond(scope, request)
        settings = self.service.settings
        also = cors_headers(request, settings) if settings.origins else ()
        await send_answer(response, also, scope, receive, send)

    async def _respond(self, scope: Scope, request: Request) -> Response:
        problem = self._refused_host(request)
        if problem is not None:
            return refusal(problem, new_request_id())
        routes, texts = self._tree.find(_path(scope))
        method = "GET" if request.method == "HEAD" else request.method
        route = routes.get(method)
        if route is None and request.method == "OPTIONS" and routes:
            headers = {"allow": _allowed(routes), **preflight_headers(request, self.service.settings)}
            return Response(status_code=204, headers=headers)
        if route is None:
            return refusal(_no_route(request.method, routes), new_request_id())
        scope["path_params"] = dict(zip(route.parameters, texts, strict=True)) if texts else {}
        response = await enter(self.service, route, request)
        count_request(self.service, route, response.status_code)
        return response

    def _refused_host(self, request: Request) -> HttpProblem | None:
        host = request.headers.get("host", "")
        if host in self._known_hosts:
            return None
        hosts = self.service.settings.hosts
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if "*" in hosts or name.lower() in hosts:
            if len(self._known_hosts) < HOSTS_KNOWN_MAX:
                self._known_hosts.add(host)
            return None
        return HttpProblem("BAD_REQUEST", "this service does not answer under that name", remedy="--allow-host NAME")


def _path(scope: MutableMapping[str, Any]) -> str:
    """The path below the prefix, percent-encoded as it was sent."""
    prefix: str = scope.get("root_path", "")
    raw = scope.get("raw_path")
    path = raw.decode("latin-1") if raw is not None else quote(scope["path"])
    if prefix:
        path = path.removeprefix(quote(prefix))
    below = path.partition("?")[0] or "/"
    return below if below.startswith("/") else ""  # `/p/a%2F…` has the prefix in another spelling


def _no_route(method: str, routes: dict[str, Route]) -> HttpProblem:
    if not routes:
        return HttpProblem("NOT_FOUND", "there is nothing at this address", remedy="/api/v1/docs lists what there is")
    allowed = _allowed(routes)
    return HttpProblem(
        "METHOD", f"this address does not take {method[:20]}", remedy=allowed, headers={"allow": allowed}
    )


def _allowed(routes: dict[str, Route]) -> str:
    also = {"HEAD"} if "GET" in routes else set()
    return ", ".join(sorted({*routes, *also, "OPTIONS"}))


async def _lifespan(receive: Receive, send: Send) -> None:
    """Nothing begins or ends with the server: the caller opens and closes the engine."""
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return

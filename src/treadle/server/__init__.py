"""The service: everything Treadle offers over HTTP, to programs, people and other systems (5).

    from treadle import Engine
    from treadle.server import app

    async with Engine("treadle.db") as engine:
        asgi = app(engine)   # mount it in your own ASGI application, under any prefix

routes      one route as data: method, path, roles, request, answers; each noun has a file with its own
door        the one way in: authenticates, authorises, reads, answers; no handler runs before it
problems    refusals as problem documents
openapi     the description of all routes, made from the route table
serving     `treadle serve`: a socket, a signal, a drain

No rule of the kernel and no SQL lives here: handlers translate between HTTP and the faces of the runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treadle.server.application import app as app
    from treadle.server.settings import ServerSettings as ServerSettings

__all__ = ["ServerSettings", "app"]

_HOMES = {"ServerSettings": "treadle.server.settings", "app": "treadle.server.application"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'treadle.server' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

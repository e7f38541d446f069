"""The service itself: whether it lives, whether it is ready, what it is, who asks."""

from __future__ import annotations

import asyncio
from importlib.metadata import version

from msgspec import Struct

from treadle.errors import TreadleError
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import HttpProblem
from treadle.server.routes import ANY_KEY, OPEN, Route
from treadle.server.service import Service

LOOK_S = 2.0
"""How long readiness waits for the store: a probe that takes longer counts as failed anyway."""


class ServiceLimits(Struct):
    """What the service takes at most."""

    body_bytes: int
    artifact_bytes: int
    wait_ms: int


class Info(Struct):
    """The service."""

    version: str
    store: str
    """sqlite, postgres or memory."""
    project: str | None
    limits: ServiceLimits
    now: int
    """Milliseconds since 1970, by the service's clock."""


class Me(Struct):
    """The caller."""

    name: str
    user: str
    groups: list[str]
    roles: list[str]
    workflows: list[str] | None
    """Patterns of the workflows the key is for; null: all."""
    project: str | None
    expires: int | None


class Alive(Struct):
    """The process answers."""

    status: str = "alive"


class Ready(Struct):
    """The store answers and somebody decides."""

    status: str = "ready"


async def live(_call: HttpCall) -> HttpAnswer:
    return HttpAnswer(Alive())


async def ready(call: HttpCall) -> HttpAnswer:
    problem = await not_ready(call.service)
    if problem is not None:
        raise problem
    return HttpAnswer(Ready())


async def not_ready(service: Service) -> HttpProblem | None:
    """Why a service cannot be used now; None: it can."""
    if service.draining.is_set():
        return HttpProblem("DRAINING", "the service is stopping")
    try:
        async with asyncio.timeout(LOOK_S):
            if not await service.client.is_owned():
                return HttpProblem("NO_ENGINE", "no engine coordinates the store")
    except (TreadleError, TimeoutError):
        return HttpProblem("STORE_UNAVAILABLE", "the store does not answer")
    return None


async def info(call: HttpCall) -> HttpAnswer:
    settings = call.service.settings
    limits = ServiceLimits(settings.body_max, settings.artifact_max, settings.wait_max_ms)
    return HttpAnswer(Info(version("treadle"), call.client.store_kind, call.service.project, limits, call.now()))


async def me(call: HttpCall) -> HttpAnswer:
    who = call.who
    roles = sorted(str(role) for role in who.roles)
    workflows = list(who.workflows) if who.workflows is not None else None
    me = Me(
        name=who.name,
        user=who.user,
        groups=list(who.groups),
        roles=roles,
        workflows=workflows,
        project=call.service.project,
        expires=who.expires,
    )
    return HttpAnswer(me)


ROUTES = (
    Route(
        method="GET",
        path="/health/live",
        root=True,
        handler=live,
        access=OPEN,
        about="none",
        noun="service",
        summary="Whether the process answers",
        answers={200: Alive},
        is_probe=True,
    ),
    Route(
        method="GET",
        path="/health/ready",
        root=True,
        handler=ready,
        access=OPEN,
        about="none",
        noun="service",
        summary="Whether the store answers and somebody decides",
        answers={200: Ready},
        is_probe=True,
        problems=("DRAINING", "STORE_UNAVAILABLE", "NO_ENGINE"),
    ),
    Route(
        method="GET",
        path="/info",
        handler=info,
        access=ANY_KEY,
        about="none",
        noun="service",
        summary="Version, kind of store, limits, time",
        answers={200: Info},
    ),
    Route(
        method="GET",
        path="/me",
        handler=me,
        access=ANY_KEY,
        about="none",
        noun="service",
        summary="Who I am and what I may do",
        answers={200: Me},
    ),
)

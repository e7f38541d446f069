"""The queue of a workflow that limits its starts (6.7)."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.routes import VIEWER, Route


class QueueQuery(Struct, forbid_unknown_fields=True):
    """How many."""

    limit: Annotated[int, Meta(ge=1, le=1_000, description="Most runs that are listed.")] = 100


class QueuedItem(Struct, kw_only=True):
    """A run that waits for its start."""

    run: str
    workflow: str
    version: int
    position: Annotated[int, Meta(description="1: the next to start.")]
    why: Annotated[str, Meta(description="`concurrency`, `rate`, `debounce` or `batch`.")]
    key: Annotated[Any, Meta(description="The value of its key; null: it has none.")]
    priority: int
    since: Annotated[int, Meta(description="When it came; of a debounced run when its flurry began.")]
    due: Annotated[int | None, Meta(description="When it stops waiting for further starts; null: it does not wait.")]
    items: Annotated[int, Meta(description="Starts in a batch so far.")]


class QueuedList(Struct):
    """The queued runs of a workflow, the next one first."""

    items: list[QueuedItem]
    next: str | None = None


async def list_queued(call: HttpCall) -> HttpAnswer:
    queued = await call.client.queue(call.path["name"], call.query.limit)
    return HttpAnswer(QueuedList([msgspec.convert(msgspec.to_builtins(one), QueuedItem) for one in queued]))


ROUTES = (
    Route(
        method="GET",
        path="/workflows/{name}/queue",
        handler=list_queued,
        access=VIEWER,
        about="workflow",
        noun="workflows",
        summary="Its queued runs, in the order in which they will start",
        query=QueueQuery,
        answers={200: QueuedList},
        problems=("NOT_FOUND",),
    ),
)

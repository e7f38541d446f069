"""The history of a run over HTTP: its events exactly as they were committed, for readers that cannot stream (5.3).

Owns the filters and the wait for the next event. Must not decide what happened: it sends what is committed.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from treadle.model.event_rows import event_row
from treadle.runtime.run import Run
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.followers import first_of
from treadle.server.large_values import ValueMax, without_large
from treadle.server.routes import VIEWER, Route

HISTORY_MAX = 1_000


class HistoryQuery(Struct):
    """Which events of a run."""

    after: Annotated[int, Meta(ge=0)] = 0
    until: Annotated[int, Meta(ge=1)] | None = None
    type: list[str] = []
    visit: int | None = None
    wait_ms: Annotated[int, Meta(ge=0, description="How long to wait for the first event, if there is none.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    value_max: ValueMax | None = None
    cursor: Annotated[str | None, Meta(description="`next` of a page with the same filters: what comes behind it.")] = (
        None
    )


class History(Struct):
    """Events of a run, oldest first."""

    items: list[dict[str, Any]]
    next: Annotated[str | None, Meta(description="Send it as `cursor`; null: this was all.")] = None


async def history(call: HttpCall) -> HttpAnswer:
    query: HistoryQuery = call.query
    query.after = call.cursor() or query.after
    call.refuse_past_wait(query.wait_ms)
    run = call.client.run(call.path["run"])
    await run.info()
    until = asyncio.get_running_loop().time() + query.wait_ms / 1_000
    with run.watch() as watch:
        while True:
            found, last = await _matching(run, query)
            left = until - asyncio.get_running_loop().time()
            is_past = query.until is not None and last >= query.until
            if found or left <= 0 or is_past or call.service.draining.is_set():
                more = call.next_cursor(last) if len(found) == query.limit else None
                return HttpAnswer(History([without_large(event_row(event), query.value_max) for event in found], more))
            query = msgspec.structs.replace(query, after=last)
            await first_of(watch.news(), call.service.draining.wait(), timeout_s=left)


async def _matching(run: Run, query: HistoryQuery) -> tuple[list[Any], int]:
    """Events that match, and the number of the last event that was looked at."""
    found: list[Any] = []
    after = query.after
    while len(found) < query.limit:
        page = await run.history(after, HISTORY_MAX)
        for event in page:
            if query.until is not None and event.seq > query.until:
                return found, after
            after = event.seq
            if _fits(event, query):
                found.append(event)
                if len(found) == query.limit:
                    break
        if len(page) < HISTORY_MAX:
            break
    return found, after


def _fits(event: Any, query: HistoryQuery) -> bool:
    if query.type and event.type not in query.type:
        return False
    return query.visit is None or getattr(event, "token", None) == query.visit


ROUTES = (
    Route(
        method="GET",
        path="/runs/{run}/history",
        handler=history,
        access=VIEWER,
        about="run",
        noun="runs",
        summary="The events of a run, exactly as they were committed",
        query=HistoryQuery,
        answers={200: History},
        problems=("NOT_FOUND",),
    ),
)

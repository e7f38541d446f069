"""The list of runs: filters, and pages that neither repeat nor skip what was there when the walk began.

Every filter has an index but `text`, which may be anywhere in four fields, `version`, and `waiting`, which is in the
run's history. Their indexes would cost every start more than the lists gain; so a request with one of them looks at the
newest runs a part at a time, and after LOOK_S (WAITS_LOOK_S) answers what it has found, with a cursor that goes on
behind the last run it has looked at.
"""

from __future__ import annotations

from time import perf_counter
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from treadle.model.states import RUN_ENDED, RunStatus
from treadle.runtime.client import RunRow
from treadle.server.call import HttpAnswer, HttpCall
from treadle.server.problems import HttpProblem
from treadle.server.routes import VIEWER, Route
from treadle.server.run_fields import INPUT, LIVE, AwaitedBy, input_fields, waits_of

LOOKED_AT = 2_000
"""Runs that are looked at in one piece: some milliseconds, as a million take about a second on a quiet machine."""
LOOK_S = 0.01
"""How long one request looks for runs without an index."""

WAITS_LOOK_S = 0.1
"""The same of runs whose waits are looked at: each is folded from its history the first time."""
WAITS_PAGE = 50
FIELDS_MAX = 10


class RunsQuery(Struct):
    """Which runs. Every filter that is given must hold; of several statuses one, of several tags all."""

    workflow: str | None = None
    version: Annotated[int, Meta(ge=1)] | None = None
    status: list[RunStatus] = []
    tag: list[str] = []
    entity: Annotated[str, Meta(description="TYPE/ID")] | None = None
    parent: str | None = None
    key: str | None = None
    started_from: int | None = None
    started_until: Annotated[int, Meta(description="Runs that started before it.")] | None = None
    text: Annotated[str, Meta(description="A part of id, key, tags or entity.", min_length=1)] | None = None
    waiting: Annotated[
        list[AwaitedBy],
        Meta(description="Runs that are not over, of which a visit waits for one of these; `retry`: for its next try."),
    ] = []
    field: Annotated[
        list[str],
        Meta(description="Values of the input to give along, such as `input.customer`.", max_length=FIELDS_MAX),
    ] = []
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    cursor: str | None = None


class RunItem(Struct, kw_only=True):
    """A run in a list."""

    run: str
    workflow: str
    version: int
    status: str
    seq: int
    started: int
    changed: int
    ended: int | None
    key: str | None
    entity: str | None
    tags: list[str]
    parent: str | None
    number: Annotated[int, Meta(description="In the order of creation; only grows.")]
    fields: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="What `field` asked for, long values shortened; what is not there is left out."),
    ] = UNSET


class RunItems(Struct):
    """A page of runs, newest first. With `text`, `version` or `waiting` a page may be short, or empty, and still
    have a next one."""

    items: list[RunItem]
    next: str | None = None


async def list_runs(call: HttpCall) -> HttpAnswer:
    query: RunsQuery = call.query
    if strange := [name for name in query.field if not name.startswith(INPUT)]:
        raise HttpProblem(
            "BAD_REQUEST", f"{strange[0][:80]!r} is no field of a list", place="field", remedy="input.NAME"
        )
    asked: dict[str, Any] = {
        "workflow": query.workflow,
        "version": query.version,
        "statuses": query.status,
        "tags": query.tag,
        "entity": query.entity,
        "parent": query.parent,
        "key": query.key,
        "started_from": query.started_from,
        "started_until": query.started_until,
        "text": query.text,
    }
    is_narrow = query.key is not None or query.entity is not None or query.parent is not None
    is_slow = (query.text is not None or query.version is not None) and not is_narrow
    if query.waiting:
        found, looked_to = await _waiting(call, asked)
    else:
        found, looked_to = await (_in_pieces(call, asked) if is_slow else _all(call, asked))
    page = found[: query.limit]
    if len(found) > query.limit:  # one more tells that there is another page
        looked_to = page[-1].number
    more = call.next_cursor(looked_to) if looked_to is not None else None
    items = [_item(row) for row in page]
    if query.field:
        values = await input_fields([call.client.run(row.run) for row in page], query.field)
        for item, fields in zip(items, values, strict=True):
            item.fields = fields
    return HttpAnswer(RunItems(items, more))


Found = tuple[list[RunRow], int | None]
"""Runs, one more than a page if there are so many; and where to go on, if there may be more although there are not."""


async def _all(call: HttpCall, asked: dict[str, Any]) -> Found:
    beyond: int | None = call.cursor()
    limit: int = call.query.limit + 1
    found: list[RunRow] = []
    while len(found) < limit:
        rows = await call.client.runs(**asked, beyond=beyond, limit=limit)
        found += [row for row in rows if call.sees(row.workflow)]
        if len(rows) < limit:
            break
        beyond = rows[-1].number
    return found, None


async def _in_pieces(call: HttpCall, asked: dict[str, Any]) -> Found:
    """Looks at the newest runs first, in pieces, for LOOK_S."""
    until, limit = perf_counter() + LOOK_S, call.query.limit + 1
    beyond: int | None = call.cursor()
    if beyond is None:
        newest = await call.client.runs(limit=1)
        beyond = newest[0].number + 1 if newest else 0
    found: list[RunRow] = []
    while beyond > 0 and len(found) < limit:
        down_to = max(beyond - LOOKED_AT, 0)
        rows = await call.client.runs(**asked, beyond=beyond, down_to=down_to, limit=limit)
        found += [row for row in rows if call.sees(row.workflow)]
        beyond = rows[-1].number if len(rows) == limit else down_to
        if perf_counter() > until:
            break
    return found, beyond or None


async def _waiting(call: HttpCall, asked: dict[str, Any]) -> Found:
    """Looks at what runs wait for that are not over, the newest first, for WAITS_LOOK_S."""
    wanted, until = set(call.query.waiting), perf_counter() + WAITS_LOOK_S
    asked = {**asked, "statuses": [status for status in LIVE if not asked["statuses"] or status in asked["statuses"]]}
    if not asked["statuses"]:
        return [], None
    beyond: int | None = call.cursor()
    limit: int = call.query.limit + 1
    found: list[RunRow] = []
    while len(found) < limit:
        rows = await call.client.runs(**asked, beyond=beyond, limit=WAITS_PAGE)
        for row in rows:
            beyond = row.number
            if call.sees(row.workflow) and wanted & await waits_of(call.client.run(row.run)):
                found.append(row)
            if len(found) == limit:
                break
            if perf_counter() > until:
                return found, beyond
        if len(rows) < WAITS_PAGE:
            return found, None
    return found, None


def _item(row: RunRow) -> RunItem:
    return RunItem(
        run=row.run,
        workflow=row.workflow,
        version=row.version,
        status=str(row.status),
        seq=row.seq,
        started=row.started,
        changed=row.changed,
        ended=row.changed if row.status in RUN_ENDED else None,
        key=row.idempotency_key,
        entity=row.entity,
        tags=list(row.tags),
        parent=row.parent,
        number=row.number,
    )


ROUTES = (
    Route(
        method="GET",
        path="/runs",
        handler=list_runs,
        access=VIEWER,
        about="handler",
        noun="runs",
        summary="Runs, newest first",
        query=RunsQuery,
        answers={200: RunItems},
    ),
)

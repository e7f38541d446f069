"""Runs: start. `run_views` and `run_commands` have the rest."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from msgspec import Meta, Struct

from treadle.model import events as e
from treadle.model.references import EntityRef
from treadle.model.states import RUN_ENDED
from treadle.runtime.client import RunRow
from treadle.runtime.run import Run
from treadle.runtime.view.difference import is_equal
from treadle.server.call import HttpAnswer, HttpCall, created
from treadle.server.problems import HttpProblem
from treadle.server.routes import OPERATOR, Route
from treadle.server.workflows import segment

HISTORY_PAGE = 1_000


class RunView(Struct, kw_only=True):
    """A run."""

    run: str
    workflow: str
    version: int
    status: str
    seq: Annotated[int, Meta(description="The number of its last event.")]
    started: int
    changed: int
    ended: int | None
    key: str | None
    entity: Annotated[str | None, Meta(description="TYPE/ID")]
    tags: list[str]
    parent: str | None
    number: Annotated[int, Meta(description="In the order of creation; only grows.")]
    input: Any = None
    output: Any = None
    error: Any = None


class EntityGiven(Struct, kw_only=True, forbid_unknown_fields=True):
    """The entity a run is about."""

    type: str
    id: str
    name: str | None = None
    attributes: dict[str, Any] | None = None


class NewRun(Struct, kw_only=True):
    """A run to start."""

    workflow: str
    version: Annotated[int, Meta(ge=1)] | None = None
    input: Any = None
    key: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    tags: list[str] = []
    entity: EntityGiven | None = None


class WaitQuery(Struct):
    """How long to wait for the end."""

    wait_ms: Annotated[int, Meta(ge=0, le=60_000)] = 0


async def view_of(run: Run, row: RunRow | None = None) -> RunView:
    """A run as the API shows it, or as its row does, which was read or written a moment ago."""
    row = row or await run.info()
    ended = row.status in RUN_ENDED
    over = await run.wait() if ended else None
    first = (await run.history(limit=1))[0]
    return RunView(
        run=row.run,
        workflow=row.workflow,
        version=row.version,
        status=str(row.status),
        seq=row.seq,
        started=row.started,
        changed=row.changed,
        ended=row.changed if ended else None,
        key=row.idempotency_key,
        entity=row.entity,
        tags=list(row.tags),
        parent=row.parent,
        number=row.number,
        input=getattr(first, "input", None),
        output=over.output if over is not None else None,
        error=over.error if over is not None else None,
    )


async def start(call: HttpCall) -> HttpAnswer:
    given: NewRun = call.body
    call.require_workflow(given.workflow)
    await call.service.require_engine()
    key = given.key or call.request.headers.get("idempotency-key")
    about = given.entity
    entity = EntityRef(about.id, about.type, about.name, about.attributes) if about is not None else None
    known = await _known(call, given, given.key) if given.key is not None else None
    if known is not None:
        run, row = known, None
    else:
        with call.client.along(call.audited(201)) as along:
            run = await call.client.start(
                given.workflow,
                given.input,
                key=key,
                tags=given.tags,
                entity=entity,
                version=given.version,
                trace=call.request.headers,
            )
        call.note_audited(along.is_written)
        row = along.row
        if key is not None and not run.is_begun and await _is_of_key(run, key):
            known = await _known(call, given, key)  # another start with this key came first, a moment ago
    if call.query.wait_ms:
        row = None
        with suppress(TimeoutError):  # the answer says how far it is
            await run.wait(call.query.wait_ms / 1_000)
    view = await view_of(run, row)
    return HttpAnswer(view) if known is not None else created(view, f"/api/v1/runs/{segment(run.id)}")


async def _known(call: HttpCall, given: NewRun, key: str) -> Run | None:
    """The run that was started with this key before. Raises DUPLICATE if it was started with something else."""
    rows = await call.client.runs(workflow=given.workflow, key=key, limit=1)
    if not rows:
        return None
    run = call.client.run(rows[0].run)
    if given.version not in (None, rows[0].version):
        raise HttpProblem("DUPLICATE", f"run {run.id} has the key {key!r} and version {rows[0].version}")
    if not await _asked_for(call, run, key, given.input if given.input is not None else {}):
        raise HttpProblem("DUPLICATE", f"run {run.id} has the key {key!r} and another input", remedy="use another key")
    return run


async def _is_of_key(run: Run, key: str) -> bool:
    """Whether the run began with this key. A start that became an item of a batch joined a run of another key."""
    return getattr((await run.history(limit=1))[0], "idempotency_key", None) == key


async def _asked_for(call: HttpCall, run: Run, key: str, value: Any) -> bool:
    """Whether the start with this key had this input. A start that became an item of a batch (6.7) had that of the
    item; of a shortened history nobody can tell it."""
    events = await run.history(limit=1)
    first = events[0]
    assert isinstance(first, e.Beginning)
    if first.idempotency_key == key:
        is_same = is_equal(first.input, value)
        if is_same or not isinstance(first, e.RunStarted) or not is_equal(first.input, {"items": [value]}):
            return is_same
        return (await call.client.definition(first.workflow, first.version)).batch is not None
    while events:
        for event in events:
            if isinstance(event, e.RunQueued) and event.idempotency_key == key:
                return is_equal(event.input, value)
            if isinstance(event, e.RunStarted):
                return True
        events = await run.history(events[-1].seq, HISTORY_PAGE)
    return True


ROUTES = (
    Route(
        method="POST",
        path="/runs",
        handler=start,
        access=OPERATOR,
        about="handler",
        noun="runs",
        summary="Start a run",
        description="The run is durable when this answers. `key` names it: the same key and input give the same run. "
        "It continues the trace of the headers `traceparent` and `tracestate` (W3C Trace Context).",
        body=NewRun,
        query=WaitQuery,
        answers={201: RunView, 200: RunView},
        makes={"run": "run"},
        problems=("NOT_FOUND", "SCHEMA", "DUPLICATE", "NO_ENGINE"),
    ),
)

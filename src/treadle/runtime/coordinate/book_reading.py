"""Reads the book of a workflow with flow control (6.7) from the store: its places and marks are rows of the outbox.

Owns nothing. The owner of the workflow's home reads its book with an `Opening`, which hears of changes meanwhile; any
other process reads a copy to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.book import StartBook
from treadle.kernel.placing import home_of
from treadle.kernel.start_place import StartKeys, StartPlace
from treadle.model.effects import HoldPlace, MarkStart
from treadle.model.events import RunQueued
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RUN_OPEN, RunStatus
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.library import Library
from treadle.runtime.surroundings.patience import reliably
from treadle.store.port import OutboxRow, RunQuery, Store
from treadle.store.rows import shard_of

PAGE = 1_000
_ENDED = (RunStatus.COMPLETED, 0)


Standing = tuple[RunStatus, int]
"""The status of a run, and how many items it has if it is a queued batch."""


class Opening(Struct):
    """What the owner of a book hears while it is read, and who waits for it."""

    items: list[Item] = []
    """Starts that wait for it."""
    moved: dict[RunId, Standing] = {}
    """Runs about which something was decided meanwhile."""
    reopened: dict[RunId, StartPlace] = {}
    """Those of them that are live again, by a retry. Their rows may be written after the rows were read."""
    heard: list[OutboxRow] = []
    """Rows that were written meanwhile."""
    is_stale: bool = False
    """Decisions that it has heard of were not written."""


class BookRead(Struct):
    """A book as the store has it."""

    book: StartBook
    gone: list[int]
    """Rows of runs that have ended."""


async def read_current(
    store: Store,
    library: Library,
    workflow: str,
    is_over: Callable[[], bool],
    opening: Opening,
    drained: Callable[[], Coroutine[Any, Any, None]],
) -> BookRead:
    """Reads the book as the store has it, with what its owner decides meanwhile. Reads again if that was not written.
    `drained` waits until everything decided so far is written."""
    while True:
        opening.moved, opening.reopened, opening.is_stale = {}, {}, False
        await drained()
        read = await read_book(store, library, workflow, is_over, opening)
        if not opening.is_stale:
            return read


async def read_book(
    store: Store,
    library: Library,
    workflow: str,
    is_over: Callable[[], bool] = lambda: False,
    opening: Opening | None = None,
) -> BookRead:
    """Reads the book. The caller fills the opening while this reads: it is newer than what the store says."""
    opening = opening or Opening()
    rows = await _rows(store, workflow, is_over)
    statuses = await _statuses(store, workflow, is_over)
    every = {row.id: row for row in (*rows, *opening.heard)}
    versions = {row.effect.version for row in every.values() if isinstance(row.effect, HoldPlace)}
    graphs = {v: await reliably(lambda: library.graph(workflow, v), is_over) for v in versions}  # noqa: B023
    newest = await reliably(lambda: library.graph(workflow), is_over)
    if newest is not None and newest.flow is not None and newest.flow.batch is not None:
        await _count_items(store, statuses, is_over)
    statuses.update(opening.moved)
    places: dict[RunId, StartPlace] = {}
    read = BookRead(StartBook(), [])
    for row in sorted(every.values(), key=lambda row: row.id):
        effect = row.effect
        if isinstance(effect, MarkStart):
            flow = newest.flow if newest is not None else None
            if flow is not None and flow.rate is not None:
                read.book.rates.count(effect.key, flow.rate, effect.at, effect.level)
            read.book.rates.marked(effect.key, effect.until, row.id)
        elif isinstance(effect, HoldPlace):
            graph = graphs[effect.version]
            if graph is None or graph.flow is None or not holds_place(graph, statuses.get(row.run, _ENDED)[0]):
                read.gone.append(row.id)
                continue
            known = places.pop(row.run, None)
            places[row.run] = StartPlace(
                row.run,
                effect.version,
                graph.flow,
                StartKeys(*effect.keys),
                effect.priority,
                effect.why,
                effect.due,
                effect.since,
                number=known.number if known is not None else row.id,
                rows=(*(known.rows if known is not None else ()), row.id),
            )
    for run, place in (opening.reopened | places).items():
        status, items = statuses[run]
        if status in RUN_ENDED:
            continue  # it was reopened and has ended again
        if status is RunStatus.QUEUED:
            if place.flow.batch is not None:
                place.count = items
                place.due = place.due if items < place.flow.batch.size else None
            read.book.queue(place)
        else:
            place.due = None
            read.book.hold(place)
    return read


def holds_place(graph: ExecutionGraph | None, status: RunStatus) -> bool:
    """Whether a run with this status has a place in its workflow's book: it is queued, or counts as live."""
    flow = graph.flow if graph is not None else None
    if flow is None or status in RUN_ENDED:
        return False
    return status is RunStatus.QUEUED or flow.concurrency is not None


async def _count_items(store: Store, statuses: dict[RunId, Standing], is_over: Callable[[], bool]) -> None:
    """Counts the items of queued batches. Their histories have an event for each, and perhaps others."""
    for run in [run for run, (status, _) in statuses.items() if status is RunStatus.QUEUED]:
        history = await reliably(lambda: store.history(run), is_over)  # noqa: B023
        statuses[run] = RunStatus.QUEUED, sum(isinstance(event, RunQueued) for event in history)


async def _rows(store: Store, workflow: str, is_over: Callable[[], bool]) -> list[OutboxRow]:
    shard = shard_of(home_of(workflow), store.shards)
    rows: list[OutboxRow] = []
    after = 0
    while page := await reliably(lambda: store.outbox(shard, after, PAGE), is_over):  # noqa: B023
        rows += [
            row for row in page if isinstance(row.effect, HoldPlace | MarkStart) and row.effect.workflow == workflow
        ]
        after = page[-1].id
    return rows


async def _statuses(store: Store, workflow: str, is_over: Callable[[], bool]) -> dict[RunId, Standing]:
    query = RunQuery(workflow=workflow, statuses=RUN_OPEN, limit=PAGE)
    found: dict[RunId, Standing] = {}
    while page := await reliably(lambda: store.find_runs(query), is_over):  # noqa: B023
        found.update((row.run, (row.status, 0)) for row in page)
        query = RunQuery(workflow=workflow, statuses=RUN_OPEN, beyond=page[-1].number, limit=PAGE)
    return found

"""Questions to the file: rows → the port's records.

Owns every SELECT that answers a verb. Each function is given a connection and asks one question, in one read
transaction. Must not write, and must not know threads.
"""

from __future__ import annotations

from typing import Any

import apsw
import msgspec

from treadle.errors import StoreUnavailable
from treadle.model.codec import unpacking
from treadle.model.events import Event
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.store.packing import unpack, unpack_answer, unpack_wish, unpacking_effects
from treadle.store.port import Answer, Document, GateRow, OutboxRow, Request, RunQuery, RunRow, TimerRow
from treadle.store.rows import SHARD, each, run_row
from treadle.store.spill import Resolver
from treadle.store.sqlite.queries import SQL

NEVER = (1 << 63) - 1

Rows = list[tuple[Any, ...]]

_FIELDS = (
    "run",
    "run_ending",
    "workflow",
    "idempotency_key",
    "tag",
    "entity",
    "parent",
    "started_from",
    "started_until",
)
"""Of a query, each with a condition of its name."""


class Values:
    """Decoders of one connection: values that were kept elsewhere are fetched through it."""

    def __init__(self, connection: apsw.Connection) -> None:
        resolver = Resolver(lambda digest: fetch_blob(connection, digest))
        self.events = unpacking(resolver)
        self.effect = unpacking_effects(resolver)


def fetch_blob(connection: apsw.Connection, digest: bytes) -> bytes:
    """Bytes a record refers to; without them the file is damaged."""
    content: bytes | None = connection.execute(SQL["get_blob"], (digest,)).get
    if content is None:
        text = f"{connection.filename}: content {digest.hex()} is missing: restore a backup"
        raise StoreUnavailable(text, final=True)
    return content


def history(connection: apsw.Connection, values: Values, run: RunId, after: int, limit: int | None) -> list[Event]:
    """A page reads the blocks it needs and no more: those behind it may be many."""
    events: list[Event] = []
    blocks = connection.execute(SQL["read_history"], (run, after))
    try:
        for (block,) in blocks:
            unpacked = values.events(block)
            events += unpacked if unpacked[0].seq > after else [event for event in unpacked if event.seq > after]
            if limit is not None and len(events) >= limit:
                return events[:limit]
    finally:
        blocks.close(True)  # an unfinished question would hold its snapshot, and the log could not be carried over
    return events


def find_runs(connection: apsw.Connection, query: RunQuery) -> list[RunRow]:
    if query.shard is not None and SHARD not in each(query.shard):
        return []
    sql, given = _runs_query(query)
    return [run_row(row) for row in connection.execute(sql, given)]


def is_point(query: RunQuery) -> bool:
    """Whether at most one run can match: found by one step into one index."""
    return query.run is not None or (query.workflow is not None and query.idempotency_key is not None)


def _runs_query(query: RunQuery) -> tuple[str, dict[str, Any]]:
    given = {name: value for name in _FIELDS if (value := getattr(query, name)) is not None}
    conditions = [SQL[f"if_{name}"] for name in given]
    if query.statuses:
        conditions.append(SQL["if_statuses"])
        given["statuses"] = msgspec.json.encode(query.statuses).decode()
    if query.busy is not None:
        conditions.append(SQL["if_busy" if query.busy else "if_idle"])
    if query.after is not None:
        conditions.append(SQL["if_before" if query.newest_first else "if_after"])
        given["after"] = query.after
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    direction = "DESC" if query.newest_first else "ASC"
    given["limit"] = query.limit
    return f"{SQL['find_runs']}{where} ORDER BY id {direction} LIMIT :limit", given


def find_gates(connection: apsw.Connection, run: RunId | None, limit: int) -> list[GateRow]:
    if run is None:
        rows = connection.execute(SQL["find_gates"], (limit,))
    else:
        rows = connection.execute(SQL["find_gates_of_run"], (run, limit))
    return [
        GateRow(RunId(run), TokenId(token), node, workflow, opened, title, unpack(assign) if assign else None, due)
        for run, token, node, workflow, opened, title, assign, due in rows
    ]


def outbox(connection: apsw.Connection, values: Values, after: int, limit: int, parked: bool) -> list[OutboxRow]:
    rows: Rows = connection.execute(SQL["read_parked" if parked else "read_outbox"], (after, limit)).fetchall()
    return [OutboxRow(id, RunId(run), values.effect(effect), reason) for id, run, effect, reason in rows]


def timers(connection: apsw.Connection, until: int | None, limit: int) -> list[TimerRow]:
    rows = connection.execute(SQL["read_timers"], (NEVER if until is None else until, limit))
    return [TimerRow(RunId(run), TimerId(timer), due) for run, timer, due in rows]


def inbox(connection: apsw.Connection, limit: int) -> list[Request]:
    rows = connection.execute(SQL["waiting_requests"], (limit,))
    found = [(id, RunId(run), at, workflow, *unpack_wish(wish)) for id, run, workflow, at, wish in rows]
    return [Request(id, run, command, at, workflow, revive) for id, run, at, workflow, command, revive in found]


def answer_to(connection: apsw.Connection, request: str) -> Answer | None:
    packed = connection.execute(SQL["read_answer"], (request,)).get
    return unpack_answer(request, packed) if packed is not None else None


def documents(connection: apsw.Connection, kind: str, name: str | None, version: int | None) -> list[Document]:
    rows: Rows
    if name is None and version is None:
        rows = connection.execute(SQL["newest_documents"], (kind,)).fetchall()
    elif name is None:
        rows = connection.execute(SQL["documents_of_version"], (kind, version)).fetchall()
    elif version is None:
        newest = connection.execute(SQL["newest_document"], (kind, name)).fetchone()
        rows = [(kind, name, *newest)] if newest else []
    else:
        rows = connection.execute(SQL["document_version"], (kind, name, version)).fetchall()
    return [
        Document(kind, name, version, hash, unpack(body))
        for kind, name, version, hash, body in rows
        if body is not None
    ]

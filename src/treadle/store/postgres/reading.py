"""Queries of the database: rows → the port's records.

Owns every SELECT of a verb. Each function gets a connection and runs one query. Must not write.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import asyncpg

from treadle.errors import StoreDamaged
from treadle.model.events import Event
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.store.packing import unpack, unpack_answer, unpack_wish
from treadle.store.port import GateRow, InboxAnswer, InboxRequest, OutboxRow, RunQuery, RunRow, StoredDocument, TimerRow
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.values import DATABASE, PostgresValues, block_of, checked, effects_of
from treadle.store.rows import each, run_rows
from treadle.store.seals import (
    Tell,
    Unreadable,
    about_answer,
    about_document,
    about_gate,
    about_request,
    document_damaged,
    gate_damaged,
    read,
    request_damaged,
)

NEVER = (1 << 63) - 1
NOBODY = b"\xc0"
"""None, packed: the value of a gate without `assign` before rows were sealed."""
_FIELDS = (
    "workflow",
    "idempotency_key",
    "run",
    "run_ending",
    "tag",
    "entity",
    "parent",
    "shard",
    "started_from",
    "started_until",
)
"""Fields of a query, each with the SQL condition of the same name."""

Span = tuple[date, date]


class Recent:
    """The days whose partitions of history are read first: most runs that are read live today."""

    def __init__(self) -> None:
        self.span: Span = (date.min, date.min)

    def seen(self, day: date) -> None:
        """Notes that it is at least this day."""
        if day > self.span[1]:
            self.span = (day - timedelta(days=1), day)


async def history(
    connection: asyncpg.Connection, recent: Recent, run: RunId, after: int, limit: int | None
) -> list[Event]:
    blocks: list[bytes] = []
    known: Span | None = recent.span
    while known is not None:
        first, last = known
        sql = SQL["read_history"].replace("$4", f"'{first}'").replace("$5", f"'{last}'")
        rows = await connection.fetch(sql, run, after, limit)
        blocks = [block_of(run, row[2], row[3]) for row in rows if row[3] is not None]
        known = next(((row[0], row[1]) for row in rows if row[0] < first or row[1] > last), None)
        if known is not None:
            recent.seen(known[1])
    values = PostgresValues(connection)
    unpacked = await values.decode(values.events, [run], blocks)
    return [event for block in unpacked for event in block if event.seq > after][:limit]


async def find_runs(connection: asyncpg.Connection, query: RunQuery, tell: Tell) -> list[RunRow]:
    sql, given = _runs_query(query)
    return run_rows(await connection.fetch(sql, *given), DATABASE, tell)


def _runs_query(query: RunQuery) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    given: list[Any] = []

    def add(name: str, *values: Any) -> None:
        known = len(given)
        conditions.append(re.sub(r"\$(\d)", lambda match: f"${known + int(match[1])}", SQL[name]))
        given.extend(values)

    by_key = query.workflow is not None and query.idempotency_key is not None
    if by_key:  # a run found by its key has them already; repeated conditions mislead the planner
        add("if_key", query.workflow, query.idempotency_key)
    for name in _FIELDS[2:] if by_key else _FIELDS:
        if (value := getattr(query, name)) is not None:
            add(f"if_{name}", each(value) if name == "shard" else value)
    if query.statuses:
        names = ", ".join(f"'{status.value}'" for status in sorted(set(query.statuses)))
        conditions.append(SQL["if_statuses"].replace("$1", names))
    if query.parents:
        add("if_parents", list(query.parents))
    if query.busy is not None:
        add("if_busy" if query.busy else "if_idle")
    if query.after is not None:
        add("if_before" if query.newest_first else "if_after", query.after)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    given.append(query.limit)
    direction = "DESC" if query.newest_first else "ASC"
    return f"{SQL['find_runs']}{where} ORDER BY created {direction} LIMIT ${len(given)}", given


async def find_gates(connection: asyncpg.Connection, run: RunId | None, limit: int, tell: Tell) -> list[GateRow]:
    if run is None:
        rows = await connection.fetch(SQL["find_gates"], limit)
    else:
        rows = await connection.fetch(SQL["find_gates_of_run"], run, limit)
    found = []
    for name, token, node, workflow, opened, title, assign, due, by in rows:
        try:
            given = read(assign or NOBODY, about_gate(name, token, node, opened, title, due), unpack)
        except Unreadable:
            tell(gate_damaged(DATABASE, name, token))
        else:
            found.append(
                GateRow(
                    RunId(name), TokenId(token), node, workflow, opened, title, assign=given, due=due, claimed_by=by
                )
            )
    return found


async def outbox(
    connection: asyncpg.Connection, shards: Sequence[int], after: int, limit: int, parked: bool, tell: Tell
) -> list[OutboxRow]:
    """At most `limit` rows. After a page of damaged rows only it reads on, so that the list does not end there."""
    found: list[OutboxRow] = []
    while not found:
        rows = await connection.fetch(SQL["read_parked" if parked else "read_outbox"], shards, after, limit)
        if not rows:
            break
        after = rows[-1]["id"]
        sound = await effects_of(connection, rows, tell)
        found = [OutboxRow(row["id"], RunId(row["run"]), effect, row["parked"]) for row, effect in sound]
    return found


async def timers(
    connection: asyncpg.Connection, shards: Sequence[int], until: int | None, limit: int
) -> list[TimerRow]:
    rows = await connection.fetch(SQL["read_timers"], shards, NEVER if until is None else until, limit)
    return [TimerRow(RunId(run), TimerId(timer), due) for run, timer, due in rows]


async def asked(connection: asyncpg.Connection, request: InboxRequest) -> tuple[bool, InboxAnswer | None]:
    """Whether a request is kept, and its answer, if it has one."""
    row = await connection.fetchrow(SQL["read_answer"], request.run, request.id)
    return row is not None, unsealed_answer(request, row["answer"] if row is not None else None)


def unsealed_answer(request: InboxRequest, packed: bytes | None) -> InboxAnswer | None:
    """The answer as a row has it. Raises StoreDamaged."""
    if packed is None:
        return None
    try:
        return read(packed, about_answer(request.id), lambda content: unpack_answer(request.id, content))
    except Unreadable:
        raise request_damaged(DATABASE, request.run, request.id) from None


async def inbox(connection: asyncpg.Connection, shards: Sequence[int], limit: int, tell: Tell) -> list[InboxRequest]:
    """Requests without an answer. Damaged ones stay in the inbox, and as many more rows are read."""
    found: list[InboxRequest] = []
    wanted = limit
    while True:
        rows = await connection.fetch(SQL["waiting_requests"], shards, wanted)
        found = []
        for id, run, workflow, at, packed in rows:
            try:
                command, revive = read(packed, about_request(run, id, workflow, at), unpack_wish)
            except Unreadable:
                tell(request_damaged(DATABASE, run, id))
                continue
            found.append(InboxRequest(id, RunId(run), command, at, workflow, revive))
        if len(rows) < wanted or len(found) >= limit:
            return found[:limit]
        wanted += len(rows) - len(found)


async def documents(
    connection: asyncpg.Connection, kind: str, name: str | None, version: int | None, tell: Tell
) -> list[StoredDocument]:
    """Versions of documents. A damaged one is left out of a list; asking for it by name raises StoreDamaged."""
    if name is None and version is None:
        rows = await connection.fetch(SQL["newest_documents"], kind)
    elif name is None:
        rows = await connection.fetch(SQL["documents_of_version"], kind, version)
    elif version is None:
        rows = await connection.fetch(SQL["newest_document"], kind, name)
    else:
        rows = await connection.fetch(SQL["document_version"], kind, name, version)
    found = []
    for kept in rows:
        try:
            found.append(document(*kept))
        except StoreDamaged as problem:
            if name is not None:
                raise
            tell(problem)
    return [one for one in found if one.body is not None]


def document(kind: str, name: str, version: int, hash: str, body: bytes | None) -> StoredDocument:
    """One version from its row. Raises `StoreDamaged`."""
    if body is None:
        return StoredDocument(kind, name, version, hash, None)
    try:
        return StoredDocument(kind, name, version, hash, read(body, about_document(kind, name, version, hash), unpack))
    except Unreadable:
        raise document_damaged(DATABASE, kind, name, version) from None


async def blob(connection: asyncpg.Connection, digest: bytes) -> bytes | None:
    content: bytes | None = await connection.fetchval(SQL["get_blob"], digest)
    return checked(digest, content) if content is not None else None

"""Questions to the database: rows → the port's records.

Owns every SELECT that answers a verb, and how values that left their records come back. Each function is given a
connection and asks one question. Must not write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import cached_property
from typing import Any, TypeVar

import asyncpg
from msgspec.msgpack import Ext

from treadle.errors import StoreUnavailable
from treadle.model.codec import uncompressed, unpacking
from treadle.model.effects import Effect
from treadle.model.events import Event
from treadle.model.ids import RunId, TimerId, TokenId
from treadle.store.packing import unpack, unpack_wish, unpacking_effects
from treadle.store.port import Document, GateRow, OutboxRow, Request, RunQuery, RunRow, TimerRow
from treadle.store.postgres.connect import without_nul
from treadle.store.postgres.queries import SQL
from treadle.store.rows import each, run_row
from treadle.store.spill import Resolver

NEVER = (1 << 63) - 1
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
"""Of a query, each with a condition of its name."""

T = TypeVar("T")
Span = tuple[date, date]


class _Missing(Exception):
    """A value that left has not been fetched yet."""


class Recent:
    """The days whose partitions of history are looked at first: most who are asked for live today."""

    def __init__(self) -> None:
        self.span: Span = (date.min, date.min)

    def seen(self, day: date) -> None:
        """It is at least this day."""
        if day > self.span[1]:
            self.span = (day - timedelta(days=1), day)


class Values:
    """Decoders of one answer: values that left are fetched for all its records at once, layer by layer."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self.fetched: dict[bytes, bytes] = {}
        self._resolver = Resolver(self._known)

    @cached_property
    def events(self) -> Callable[[bytes], list[Event]]:
        """Made when asked for: a decoder of all events takes longer to make than most answers to decode."""
        return unpacking(self._resolver)

    @cached_property
    def effect(self) -> Callable[[bytes], Effect]:
        return unpacking_effects(self._resolver)

    def _known(self, digest: bytes) -> bytes:
        try:
            return self.fetched[digest]
        except KeyError:
            raise _Missing from None

    async def decode(self, decoder: Callable[[bytes], T], runs: Sequence[RunId], packed: Sequence[bytes]) -> list[T]:
        """The records of these runs."""
        try:
            return [decoder(one) for one in packed]
        except _Missing:
            await self.fetch(runs, packed)
            return [decoder(one) for one in packed]

    async def fetch(self, runs: Sequence[RunId], packed: Sequence[bytes]) -> set[bytes]:
        """Everything the records refer to, directly or through each other; the digests."""
        found: set[bytes] = set()
        layer = {digest for one in packed for digest in marks(uncompressed(one))}
        while layer := layer - found:
            found |= layer
            wanted = list(layer - self.fetched.keys())
            rows = (
                await self._connection.fetch(SQL["blobs_of_runs"], [without_nul(run) for run in set(runs)], wanted)
                if wanted
                else []
            )
            self.fetched.update((bytes(digest), bytes(content)) for digest, content in rows)
            if lost := layer - self.fetched.keys():
                raise StoreUnavailable(
                    f"content {min(lost).hex()} is missing: forgotten just now, else restore a backup"
                )
            layer = {inner for digest in layer for inner in marks(self.fetched[digest])}
        return found


async def effects_of(connection: asyncpg.Connection, runs: Sequence[RunId], packed: Sequence[bytes]) -> list[Effect]:
    """Effects of these runs. Next to none has a value that left."""
    try:
        return [_plain_effect(one) for one in packed]
    except _Missing:
        values = Values(connection)
        return await values.decode(values.effect, runs, packed)


def _absent(_digest: bytes) -> bytes:
    raise _Missing


_plain_effect = unpacking_effects(Resolver(_absent))


def marks(packed: bytes) -> set[bytes]:
    """Digests a record refers to directly."""
    found: set[bytes] = set()
    pending = [unpack(packed)]
    while pending:
        value = pending.pop()
        if isinstance(value, Ext):
            found.add(bytes(value.data))
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return found


async def history(
    connection: asyncpg.Connection, recent: Recent, run: RunId, after: int, limit: int | None
) -> list[Event]:
    blocks: list[bytes] = []
    known: Span | None = recent.span
    while known is not None:
        first, last = known
        sql = SQL["read_history"].replace("$4", f"'{first}'").replace("$5", f"'{last}'")
        rows = await connection.fetch(sql, run, after, limit)
        blocks = [row[2] for row in rows if row[2] is not None]
        known = next(((row[0], row[1]) for row in rows if row[0] < first or row[1] > last), None)
        if known is not None:
            recent.seen(known[1])
    values = Values(connection)
    unpacked = await values.decode(values.events, [run], blocks)
    return [event for block in unpacked for event in block if event.seq > after][:limit]


async def find_runs(connection: asyncpg.Connection, query: RunQuery) -> list[RunRow]:
    sql, given = _runs_query(query)
    return [run_row(row) for row in await connection.fetch(sql, *given)]


def _runs_query(query: RunQuery) -> tuple[str, list[Any]]:
    conditions: list[str] = []
    given: list[Any] = []

    def add(name: str, *values: Any) -> None:
        known = len(given)
        conditions.append(re.sub(r"\$(\d)", lambda match: f"${known + int(match[1])}", SQL[name]))
        given.extend(values)

    by_key = query.workflow is not None and query.idempotency_key is not None
    if by_key:  # a run that is found by its key has them; said twice, they lead the planner astray
        add("if_key", query.workflow, query.idempotency_key)
    for name in _FIELDS[2:] if by_key else _FIELDS:
        if (value := getattr(query, name)) is not None:
            add(f"if_{name}", each(value) if name == "shard" else value)
    if query.statuses:
        names = ", ".join(f"'{status.value}'" for status in sorted(set(query.statuses)))
        conditions.append(SQL["if_statuses"].replace("$1", names))
    if query.busy is not None:
        add("if_busy" if query.busy else "if_idle")
    if query.after is not None:
        add("if_before" if query.newest_first else "if_after", query.after)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    given.append(query.limit)
    direction = "DESC" if query.newest_first else "ASC"
    return f"{SQL['find_runs']}{where} ORDER BY created {direction} LIMIT ${len(given)}", given


async def find_gates(connection: asyncpg.Connection, run: RunId | None, limit: int) -> list[GateRow]:
    if run is None:
        rows = await connection.fetch(SQL["find_gates"], limit)
    else:
        rows = await connection.fetch(SQL["find_gates_of_run"], run, limit)
    return [
        GateRow(RunId(run), TokenId(token), node, workflow, opened, title, unpack(assign) if assign else None, due)
        for run, token, node, workflow, opened, title, assign, due in rows
    ]


async def outbox(
    connection: asyncpg.Connection, shards: Sequence[int], after: int, limit: int, parked: bool
) -> list[OutboxRow]:
    rows = await connection.fetch(SQL["read_parked" if parked else "read_outbox"], shards, after, limit)
    values = Values(connection)
    runs = [RunId(row["run"]) for row in rows]
    effects = await values.decode(values.effect, runs, [row["effect"] for row in rows])
    return [
        OutboxRow(row["id"], run, effect, row["parked"]) for row, run, effect in zip(rows, runs, effects, strict=True)
    ]


async def timers(
    connection: asyncpg.Connection, shards: Sequence[int], until: int | None, limit: int
) -> list[TimerRow]:
    rows = await connection.fetch(SQL["read_timers"], shards, NEVER if until is None else until, limit)
    return [TimerRow(RunId(run), TimerId(timer), due) for run, timer, due in rows]


async def inbox(connection: asyncpg.Connection, shards: Sequence[int], limit: int) -> list[Request]:
    rows = await connection.fetch(SQL["waiting_requests"], shards, limit)
    found = [(id, RunId(run), at, workflow, *unpack_wish(wish)) for id, run, workflow, at, wish in rows]
    return [Request(id, run, command, at, workflow, revive) for id, run, at, workflow, command, revive in found]


async def documents(connection: asyncpg.Connection, kind: str, name: str | None, version: int | None) -> list[Document]:
    if name is None and version is None:
        rows = await connection.fetch(SQL["newest_documents"], kind)
    elif name is None:
        rows = await connection.fetch(SQL["documents_of_version"], kind, version)
    elif version is None:
        rows = await connection.fetch(SQL["newest_document"], kind, name)
    else:
        rows = await connection.fetch(SQL["document_version"], kind, name, version)
    return [
        Document(kind, name, version, hash, unpack(body))
        for kind, name, version, hash, body in rows
        if body is not None
    ]


async def blob(connection: asyncpg.Connection, digest: bytes) -> bytes | None:
    content: bytes | None = await connection.fetchval(SQL["get_blob"], digest)
    return content

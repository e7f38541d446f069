"""Queries of the file: rows → the port's records.

Owns every SELECT of a verb. Each function gets a connection and runs one query, in one read transaction. Must not
write, and must not know threads.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from operator import attrgetter
from typing import Any

import apsw
import msgspec

from treadle.errors import StoreDamaged
from treadle.model.codec import unpacking
from treadle.model.effects import Effect
from treadle.model.events import Event
from treadle.model.ids import RunId, TimerId
from treadle.store.gates import fits, quoted
from treadle.store.packing import unpack, unpack_answer, unpack_wish, unpacking_effects
from treadle.store.port import (
    GateQuery,
    GateRow,
    InboxRequest,
    KeptRequest,
    KnownRequest,
    OutboxRow,
    StoredDocument,
    TimerRow,
)
from treadle.store.rows import gate_of, kept_rows
from treadle.store.seals import (
    Tell,
    Unreadable,
    about_answer,
    about_block,
    about_document,
    about_effect,
    about_request,
    blob_damaged,
    block_damaged,
    document_damaged,
    effect_damaged,
    read,
    request_damaged,
    unseal,
)
from treadle.store.spill import Resolver
from treadle.store.sqlite.queries import SQL

NEVER = (1 << 63) - 1
WIDE = 2_000
"""Events from which on an opened block is kept until another is opened: readers take 500 or 1,000 events at a time, and
opening a block of 80,000 takes a tenth of a second."""
_SEQ = attrgetter("seq")

Rows = list[tuple[Any, ...]]


class SqliteValues:
    """Decoders of one connection, through which values that were moved out are fetched."""

    def __init__(self, connection: apsw.Connection) -> None:
        resolver = Resolver(lambda digest: fetch_blob(connection, digest))
        self.events = unpacking(resolver)
        self.effect = unpacking_effects(resolver)
        self._wide: tuple[RunId, int, bytes, list[Event]] | None = None

    def events_of(self, connection: apsw.Connection, run: RunId, seq: int, block: bytes) -> list[Event]:
        """The events of a block. One of a wide fan-out is read page by page; it is opened once, not for each page."""
        if self._wide is not None and self._wide[:3] == (run, seq, block):
            return self._wide[3]
        content = unseal(block, about_block(run, seq))
        if content is None:
            raise block_damaged(connection.filename, run, seq)
        events = self.events(content)
        if len(events) > WIDE:
            self._wide = (run, seq, block, events)
        return events


def fetch_blob(connection: apsw.Connection, digest: bytes) -> bytes:
    """Bytes that a record refers to. Raises StoreDamaged if they are missing."""
    content = get_blob(connection, digest)
    if content is None:
        raise StoreDamaged(connection.filename, f"blobs, {digest.hex()} is missing")
    return content


def get_blob(connection: apsw.Connection, digest: bytes) -> bytes | None:
    """Bytes by their digest, with which they are compared."""
    content: bytes | None = connection.execute(SQL["get_blob"], (digest,)).get
    if content is not None and hashlib.sha256(content).digest() != digest:
        raise blob_damaged(connection.filename, digest)
    return content


def history(
    connection: apsw.Connection, values: SqliteValues, run: RunId, after: int, limit: int | None
) -> list[Event]:
    """A page of events. It reads only the blocks it needs: there may be many after them."""
    events: list[Event] = []
    blocks = connection.execute(SQL["read_history"], (run, after))
    try:
        for seq, block in blocks:
            unpacked = values.events_of(connection, run, seq, block)
            begin = bisect_right(unpacked, after, key=_SEQ)
            events += unpacked[begin:] if limit is None else unpacked[begin : begin + limit - len(events)]
            if limit is not None and len(events) >= limit:
                return events[:limit]
    finally:
        blocks.close(True)  # an unfinished query would hold its snapshot and block checkpoints
    return events


def find_gates(connection: apsw.Connection, query: GateQuery, tell: Tell) -> list[GateRow]:
    """Rows are read until enough fit."""
    found: list[GateRow] = []
    rows = connection.execute(*_of_gates(query))
    try:
        for row in rows:
            gate = gate_of(row, connection.filename, tell)
            if gate is not None and fits(query, gate):
                found.append(gate)
            if len(found) >= query.limit:
                break
    finally:
        rows.close(True)
    return found


def _of_gates(query: GateQuery) -> tuple[str, dict[str, Any]]:
    given: dict[str, Any] = {
        name: value
        for name in ("run", "token", "workflow", "node", "overdue_at")
        if (value := getattr(query, name)) is not None
    }
    conditions = [SQL[f"if_gate_{name.removesuffix('_at')}"] for name in given]
    if query.text is not None:
        conditions.append(SQL["if_gate_text"])
        given["text"] = query.text.casefold()
    if names := quoted(query):
        conditions.append(SQL["if_gate_people"])
        given["names"] = msgspec.json.encode(names).decode()
    if query.after is not None:
        conditions.append(SQL["if_gate_after"])
        given |= dict(zip(("opened", "after_run", "after_token"), query.after, strict=True))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"{SQL['find_gates']}{where} ORDER BY opened, runs.run, token", given


def outbox(
    connection: apsw.Connection, values: SqliteValues, after: int, limit: int, parked: bool, tell: Tell
) -> list[OutboxRow]:
    found: list[OutboxRow] = []
    rows = connection.execute(SQL["read_parked" if parked else "read_outbox"], (after,))
    try:
        for id, run, packed, reason in rows:
            effect = effect_of(connection, values, id, run, packed, tell)
            if effect is not None:
                found.append(OutboxRow(id, RunId(run), effect, reason))
            if len(found) >= limit:
                break
    finally:
        rows.close(True)
    return found


def effect_of(
    connection: apsw.Connection, values: SqliteValues, id: int, run: RunId, packed: bytes, tell: Tell
) -> Effect | None:
    """The effect of an outbox row; None if it is damaged, which is reported to `tell`."""
    try:
        return read(packed, about_effect(run), values.effect)
    except Unreadable:
        tell(effect_damaged(connection.filename, run, id))
    except StoreDamaged as problem:  # a value that was moved out
        tell(problem)
    return None


def timers(connection: apsw.Connection, until: int | None, limit: int) -> list[TimerRow]:
    rows = connection.execute(SQL["read_timers"], (NEVER if until is None else until, limit))
    return [TimerRow(RunId(run), TimerId(timer), due) for run, timer, due in rows]


def inbox(connection: apsw.Connection, limit: int, tell: Tell) -> list[InboxRequest]:
    found: list[InboxRequest] = []
    rows = connection.execute(SQL["waiting_requests"])
    try:
        for id, run, workflow, at, packed, fingerprint in rows:
            try:
                command, revive = read(packed, about_request(run, id, workflow, at, fingerprint), unpack_wish)
            except Unreadable:
                tell(request_damaged(connection.filename, run, id))
                continue
            found.append(InboxRequest(id, RunId(run), command, at, workflow, revive, fingerprint=fingerprint))
            if len(found) >= limit:
                break
    finally:
        rows.close(True)
    return found


def asked(connection: apsw.Connection, request: str) -> KnownRequest | None:
    """A request that is kept, with its answer, if it has one."""
    row: tuple[Any, ...] | None = connection.execute(SQL["read_answer"], (request,)).fetchone()
    if row is None:
        return None
    run, packed, fingerprint = row
    if packed is None:
        return KnownRequest(None, fingerprint)
    try:
        answer = read(packed, about_answer(request), lambda content: unpack_answer(request, content))
    except Unreadable:
        raise request_damaged(connection.filename, run, request) from None
    return KnownRequest(answer, fingerprint)


def kept(
    connection: apsw.Connection, run: RunId | None, request: str | None, limit: int, tell: Tell
) -> list[KeptRequest]:
    """Kept requests of one run or of all, or the one with an id, with their answers."""
    name = "one_request" if request is not None else "kept_requests" if run is None else "kept_requests_of_run"
    rows: Rows = connection.execute(SQL[name], [one for one in (request or run, limit) if one is not None]).fetchall()
    return kept_rows(rows, connection.filename, tell)


def documents(
    connection: apsw.Connection, kind: str, name: str | None, version: int | None, tell: Tell
) -> list[StoredDocument]:
    """Versions of documents. A damaged one is left out of a list; asking for it by name raises StoreDamaged."""
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
    found = []
    for kept in rows:
        try:
            found.append(document(connection, *kept))
        except StoreDamaged as problem:
            if name is not None:
                raise
            tell(problem)
    return [one for one in found if one.body is not None]


def document(
    connection: apsw.Connection, kind: str, name: str, version: int, hash: str, body: bytes | None
) -> StoredDocument:
    """One version from its row. Raises `StoreDamaged`."""
    if body is None:
        return StoredDocument(kind, name, version, hash, None)
    try:
        return StoredDocument(kind, name, version, hash, read(body, about_document(kind, name, version, hash), unpack))
    except Unreadable:
        raise document_damaged(connection.filename, kind, name, version) from None

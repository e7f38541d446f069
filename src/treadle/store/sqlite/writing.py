"""The small writes: leases, requests, documents, blobs. Each runs inside a transaction of the writer."""

from __future__ import annotations

import apsw

from treadle.model.ids import RunId
from treadle.store.packing import unpack
from treadle.store.port import Fence, InboxAnswer, InboxRequest, StoredDocument
from treadle.store.seals import about_document, seal
from treadle.store.service import fits, stale_document
from treadle.store.sqlite.queries import SQL
from treadle.store.sqlite.reading import asked, document

_PREFIX = "sha256:"


def lease(connection: apsw.Connection, shard: int, owner: str, now: int, ttl_ms: int, evict: bool) -> Fence | None:
    """Takes, renews or inherits a shard's lease; its epoch only grows."""
    held = connection.execute(SQL["read_lease"], (shard,)).fetchone()
    epoch = 1
    if held is not None:
        holder, epoch, until = held
        if until <= now or evict:
            epoch += 1
        elif holder != owner:
            return None
    connection.execute(SQL["take_lease"], (shard, owner, epoch, now + ttl_ms))
    return Fence(owner, shard, epoch)


def release(connection: apsw.Connection, fence: Fence) -> None:
    """Gives a lease back; a fence that is not the newest changes nothing."""
    connection.execute(SQL["release_lease"], (fence.shard, fence.owner, fence.epoch))


def submit(connection: apsw.Connection, request: InboxRequest, command: bytes) -> InboxAnswer | None:
    """Keeps the first request with an id; submitting it again returns its answer, if there is one."""
    row = (request.id, request.run, request.workflow, request.at, command, request.fingerprint)
    connection.execute(SQL["keep_request"], row)
    known = asked(connection, request.id)
    return known.answer if known is not None else None


def put_document(
    connection: apsw.Connection, kind: str, name: str, hash: str, body: bytes | None, expected: int | None = None
) -> StoredDocument:
    """Adds a version, unless the newest has the same content. Raises StoreConflict if that is not the expected one."""
    newest = connection.execute(SQL["newest_document"], (kind, name)).fetchone()
    stands, is_ended = (newest[0], newest[2] is None) if newest is not None else (0, False)
    if not fits(stands, is_ended, expected):
        raise stale_document(kind, name, stands, expected or 0)
    if newest is not None and newest[1] == hash:
        return document(connection, kind, name, *newest)
    version = stands + 1
    kept = seal(body, about_document(kind, name, version, hash)) if body is not None else None
    connection.execute(SQL["put_document"], (kind, name, version, hash, kept))
    if kind.startswith("_"):
        connection.execute(SQL["drop_older_documents"], (kind, name, version))
    return StoredDocument(kind, name, version, hash, unpack(body) if body is not None else None)


def put_blob(connection: apsw.Connection, run: RunId, digest: str, content: bytes) -> None:
    """Keeps bytes for a run; the same bytes are kept once for all runs."""
    raw = raw_digest(digest)
    connection.execute(SQL["put_blob"], (raw, content))
    connection.execute(SQL["own_blob"], (run, raw))


def raw_digest(digest: str) -> bytes | None:
    """`sha256:…` as bytes; None for anything else."""
    try:
        raw = bytes.fromhex(digest.removeprefix(_PREFIX))
    except ValueError:
        return None
    return raw if digest.startswith(_PREFIX) and len(raw) == 32 else None

"""The small writes: leases, requests, documents, blobs.

Each runs inside a transaction, or is one statement and its own; each may be run again.
"""

from __future__ import annotations

import asyncpg

from treadle.model.ids import RunId
from treadle.store.packing import unpack
from treadle.store.port import Fence, InboxAnswer, InboxRequest, StoredDocument
from treadle.store.postgres.columns import count, texts
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.reading import document, unsealed_answer
from treadle.store.seals import about_document, seal
from treadle.store.service import fits, stale_document

_PREFIX = "sha256:"


async def lease(
    connection: asyncpg.Connection, shard: int, owner: str, now: int | None, ttl_ms: int, evict: bool
) -> Fence | None:
    """Takes, renews or inherits a shard's lease; its epoch only grows."""
    epoch = await connection.fetchval(SQL["take_lease"], shard, owner, now, ttl_ms, evict)
    return Fence(owner, shard, epoch) if epoch is not None else None


async def release(connection: asyncpg.Connection, fence: Fence) -> None:
    """Gives a lease back; a fence that is not the newest changes nothing."""
    await connection.execute(SQL["release_lease"], fence.shard, fence.owner, fence.epoch)


async def submit(
    connection: asyncpg.Connection, request: InboxRequest, shard: int, command: bytes
) -> InboxAnswer | None:
    """Keeps the first request with an id. Returns its answer, if it has one."""
    given = (request.run, request.id, shard, request.workflow, request.at, command, request.fingerprint)
    return unsealed_answer(request.run, request.id, await connection.fetchval(SQL["submit_request"], *given))


async def put_document(
    connection: asyncpg.Connection, kind: str, name: str, hash: str, body: bytes | None, expected: int | None = None
) -> StoredDocument:
    """Adds a version, unless the newest has the same content. If another process took its number, it looks again.
    Raises StoreConflict if the newest is not the expected one."""
    while True:
        newest = await connection.fetchrow(SQL["newest_document"], kind, name)
        stands, is_ended = (newest["version"], newest["body"] is None) if newest is not None else (0, False)
        if not fits(stands, is_ended, expected):
            raise stale_document(kind, name, stands, expected or 0)
        if newest is not None and newest["hash"] == hash:
            return document(*newest)
        version = stands + 1
        kept = seal(body, about_document(kind, name, version, hash)) if body is not None else None
        if count(await connection.execute(SQL["put_document"], kind, name, version, hash, kept)):
            break
    if kind.startswith("_"):
        await connection.execute(SQL["drop_older_documents"], kind, name, version)
    return StoredDocument(kind, name, version, hash, unpack(body) if body is not None else None)


async def put_blob(connection: asyncpg.Connection, run: RunId, digest: str, content: bytes) -> None:
    """Keeps bytes for a run; the same bytes are kept once per run."""
    await connection.execute(SQL["put_blobs"], texts([run]), [raw_digest(digest)], [content])


def raw_digest(digest: str) -> bytes | None:
    """`sha256:…` as bytes; None for anything else."""
    try:
        raw = bytes.fromhex(digest.removeprefix(_PREFIX))
    except ValueError:
        return None
    return raw if digest.startswith(_PREFIX) and len(raw) == 32 else None

"""The small writes: leases, requests, documents, blobs, forgetting.

Each runs inside a transaction, and may be run again in another.
"""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg

from treadle.model.codec import pack_events, unpack_events
from treadle.model.ids import RunId
from treadle.store.packing import unpack
from treadle.store.port import Document, Fence, Request
from treadle.store.postgres.batches import check_fence, columns, count, texts
from treadle.store.postgres.queries import SQL
from treadle.store.postgres.reading import Values

_PREFIX = "sha256:"
_ROWS_OF_RUNS = ("drop_effects", "drop_timers", "drop_gates", "drop_requests")


async def lease(
    connection: asyncpg.Connection, shard: int, owner: str, now: int, ttl_ms: int, evict: bool
) -> Fence | None:
    """Takes, renews or inherits a shard; its epoch only grows."""
    epoch = await connection.fetchval(SQL["take_lease"], shard, owner, now, ttl_ms, evict)
    return Fence(owner, shard, epoch) if epoch is not None else None


async def release(connection: asyncpg.Connection, fence: Fence) -> None:
    """A fence that is not the newest changes nothing."""
    await connection.execute(SQL["release_lease"], fence.shard, fence.owner, fence.epoch)


async def keep_request(connection: asyncpg.Connection, request: Request, shard: int, command: bytes) -> None:
    """The first request with an id is kept."""
    await connection.execute(SQL["keep_request"], request.run, request.id, shard, request.workflow, request.at, command)


async def put_document(connection: asyncpg.Connection, kind: str, name: str, hash: str, body: bytes | None) -> Document:
    """A new version, unless the newest is the same. Whoever finds its number taken looks again."""
    while True:
        newest = await connection.fetchrow(SQL["newest_document"], kind, name)
        if newest is not None and newest["hash"] == hash:
            version, body = newest["version"], newest["body"]
            break
        version = newest["version"] + 1 if newest is not None else 1
        if count(await connection.execute(SQL["put_document"], kind, name, version, hash, body)):
            break
    if kind.startswith("_"):
        await connection.execute(SQL["drop_older_documents"], kind, name, version)
    return Document(kind, name, version, hash, unpack(body) if body is not None else None)


async def put_blob(connection: asyncpg.Connection, run: RunId, digest: str, content: bytes) -> None:
    """The same bytes are kept once for every run that put them."""
    await connection.execute(SQL["put_blobs"], texts([run]), [raw_digest(digest)], [content])


async def forget(connection: asyncpg.Connection, runs: Sequence[RunId], fence: Fence, history: bool) -> None:
    """Drops finished runs, or shortens them to their first and last event. One that is not finished was revived since
    somebody found it: it is left alone."""
    await check_fence(connection, fence)
    over = [RunId(row[0]) for row in await connection.fetch(SQL["finished_runs"], texts(set(runs)))]
    if not over:
        return
    named = texts(over)
    for statement in _ROWS_OF_RUNS:
        await connection.execute(SQL[statement], named)
    if not history:
        await _shorten(connection, over)
        return
    for statement in ("drop_history", "drop_blobs", "drop_tags", "drop_keys", "drop_runs"):
        await connection.execute(SQL[statement], named)


async def _shorten(connection: asyncpg.Connection, runs: list[RunId]) -> None:
    """What they were asked, how they ended and the content these need. Marks of values that left pass unresolved."""
    first = dict(await connection.fetch(SQL["first_blocks"], texts(runs)))
    last = dict(await connection.fetch(SQL["last_blocks"], texts(runs)))
    kept: list[tuple[RunId, int, bytes]] = []
    for run in runs:
        ends = {event.seq: event for event in (unpack_events(first[run])[0], unpack_events(last[run])[-1])}
        blocks = [(run, seq, pack_events([event])) for seq, event in ends.items()]
        needed = await Values(connection).fetch([run], [block for _, _, block in blocks])
        await connection.execute(SQL["drop_other_blobs"], run, list(needed))
        kept += blocks
    await connection.execute(SQL["drop_history"], texts(runs))
    await connection.execute(SQL["append_history"], *columns(kept, 3))


def raw_digest(digest: str) -> bytes | None:
    """`sha256:…` as bytes; None for anything else."""
    try:
        raw = bytes.fromhex(digest.removeprefix(_PREFIX))
    except ValueError:
        return None
    return raw if digest.startswith(_PREFIX) and len(raw) == 32 else None

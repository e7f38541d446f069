"""Gathers what the judge looks at: the journals beside a database, and everything in it, after all has stopped."""

from __future__ import annotations

from pathlib import Path

from tests.torture import journal
from tests.torture.engine import CLIENT, DATABASE, KILLS, WORK
from tests.torture.verdict import Evidence
from treadle.runtime.operate.fsck import check_store
from treadle.store.port import RunQuery, RunRow, Store
from treadle.store.postgres import PostgresStore
from treadle.store.rows import SHARD
from treadle.store.sqlite import SqliteStore

PAGE = 1_000


async def gather(place: Path) -> Evidence:
    """Of a directory a torture has left."""
    store = await SqliteStore.open(place / DATABASE)
    try:
        runs = await runs_of(store)
        return Evidence(
            client=journal.read(place / CLIENT),
            work=journal.read(place / WORK),
            deaths=_deaths(place),
            runs=runs,
            histories={run: await store.history(row.run) for run, row in runs.items()},
            left=await _left(store),
            damage=await damage_of(store),
        )
    finally:
        await store.close()


async def damage_of(store: SqliteStore | PostgresStore) -> list[str]:
    """What the file or the database, and `fsck`, say against it."""
    checked = await check_store(store)
    return [
        *(f"integrity: {problem}" for problem in await store.integrity()),
        *(f"fsck: {finding.run}: {finding.check}: {finding.message}" for finding in checked.findings),
    ]


def _deaths(place: Path) -> dict[int, list[int]]:
    deaths: dict[int, list[int]] = {}
    for kill in journal.read(place / KILLS):
        deaths.setdefault(kill["pid"], []).append(kill["at"])
    return deaths


async def runs_of(store: Store) -> dict[str, RunRow]:
    """Every run there is, page by page."""
    found: dict[str, RunRow] = {}
    query = RunQuery(limit=PAGE)
    while page := await store.find_runs(query):
        found |= {row.run: row for row in page}
        query = RunQuery(after=page[-1].run, limit=PAGE)
    return found


async def _left(store: Store) -> dict[str, int]:
    return {
        "the outbox": len(await store.outbox(SHARD)),
        "the dead letters": len(await store.outbox(SHARD, parked=True)),
        "the inbox": len(await store.inbox(SHARD)),
        "the timers": len(await store.timers(SHARD)),
        "the gates": len(await store.find_gates()),
    }

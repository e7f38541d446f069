"""A crowd of sleeping runs, made quickly: one real run is played until it sleeps, its rows are copied under new names.

Owns the copying. Promises rows an engine can go on from: history, the run's row and timers are those of a real run,
with another id of the same length. Must not be used on a database somebody needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import asyncpg
import uuid_utils

from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.runtime.engine import Engine
from treadle.store.postgres.store import SHARDS
from treadle.store.rows import shard_of

DAY_MS = 86_400_000
BIRTH = 2_000_000
"""Of copies: after whatever the real one was given."""


def sleeper(timers: int, sleep_ms: int = DAY_MS) -> Workflow:
    """A run that sleeps in so many branches at once, and is done when all have woken up."""
    return load_value(
        {
            "workflow": f"sleep{timers}",
            "nodes": {"a": {}, "b": {"action": {"kind": "wait", "ms": sleep_ms}}, "z": {}},
            "transitions": [
                {"id": "t", "from": "a", "to": "b", "spawn_count": timers},
                {"from": "b", "to": "z", "synchronization": {"sibling_group": "t"}},
            ],
        }
    ).require()


async def crowd(dsn: str, runs: int, timers: int, sleep_ms: int = DAY_MS) -> int:
    """So many runs asleep with so many timers each; when all of them are due, at once (ms since 1970)."""
    async with Engine(dsn) as engine:
        flow = sleeper(timers, sleep_ms)
        await engine.deploy(flow)
        real = (await engine.start(flow.workflow)).id
    connection = await asyncpg.connect(dsn)
    try:
        await _asleep(connection, real, timers)
        await _copy(connection, real, runs)
        await connection.execute("ANALYZE")
        await connection.execute("CHECKPOINT")
        due: int = await connection.fetchval("SELECT max(due) FROM timers")
        return due
    finally:
        await connection.close()


async def _asleep(connection: asyncpg.Connection, run: str, timers: int) -> None:
    async with asyncio.timeout(30):
        while await connection.fetchval("SELECT count(*) FROM timers WHERE run = $1", run) < timers:
            await asyncio.sleep(0.05)


async def _copy(connection: asyncpg.Connection, real: str, runs: int) -> None:
    ids = [str(uuid_utils.uuid7()) for _ in range(runs)]
    homes = [shard_of(RunId(run), SHARDS) for run in ids]
    row = dict(await connection.fetchrow("SELECT * FROM runs WHERE run = $1", real))
    blocks = [dict(block) for block in await connection.fetch("SELECT * FROM history WHERE run = $1", real)]
    timers = [dict(timer) for timer in await connection.fetch("SELECT * FROM timers WHERE run = $1", real)]

    def rows() -> Iterator[dict[str, Any]]:
        for number, (run, home) in enumerate(zip(ids, homes, strict=True)):
            yield {**row, "run": run, "shard": home, "created": BIRTH + number}

    def history() -> Iterator[dict[str, Any]]:
        was = real.encode()
        for run in ids:
            for block in blocks:
                yield {**block, "run": run, "block": block["block"].replace(was, run.encode())}

    def alarms() -> Iterator[dict[str, Any]]:
        for run, home in zip(ids, homes, strict=True):
            for timer in timers:
                yield {**timer, "run": run, "shard": home}

    for table, made in (("runs", rows()), ("history", history()), ("timers", alarms())):
        await _fill(connection, table, made)


async def _fill(connection: asyncpg.Connection, table: str, rows: Iterator[dict[str, Any]]) -> None:
    first = next(rows)
    names = list(first)

    def tuples() -> Iterator[tuple[Any, ...]]:
        yield tuple(first.values())
        for row in rows:
            yield tuple(row[name] for name in names)

    await connection.copy_records_to_table(table, records=tuples(), columns=names, timeout=600)

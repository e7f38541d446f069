"""Upkeep of a database while its engines run: checks and facts. Must not write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg

from treadle.model.ids import RunId
from treadle.store.postgres.queries import SQL
from treadle.store.rows import shard_of

PROBLEMS_MAX = 100
PAGE = 10_000
LONG_S = 3600.0
"""Timeout of a query that reads every row of a large database."""


async def integrity(connection: asyncpg.Connection) -> list[str]:
    """What is wrong with the rows; empty if nothing is. Each query sees one moment, so that concurrent writes of
    engines are not taken for damage."""
    problems: list[str] = []
    for question, words in _QUESTIONS.items():
        problems += [words.format(*row) for row in await connection.fetch(SQL[question], PROBLEMS_MAX, timeout=LONG_S)]
    shards: int = (await connection.fetchrow(SQL["read_state"]))["shards"]
    async for run, shard in _homes(connection):
        if shard != (home := shard_of(run, shards)) and len(problems) < PROBLEMS_MAX:
            problems.append(f"run {run} is filed under shard {shard}, and belongs to {home}")
    return problems


_QUESTIONS = {
    "runs_out_of_step": "run {} is at {}, its history ends at {}",
    "positions_astray": "the position of {} in {} is not its last move there",
    "blocks_twice": "run {} has two blocks that end at {}",
    "keys_astray": "run {} has the idempotency key {!r}, which does not lead to it",
    "rows_in_another_shard": "a row of {} is of the run {}, and filed under another shard",
    "rows_without_run": "a row of {} is of the run {}, which does not exist",
}
"""Queries that find rows which must not exist, each with its message."""


async def _homes(connection: asyncpg.Connection) -> AsyncIterator[tuple[RunId, int]]:
    last = ""
    while page := await connection.fetch(SQL["page_of_runs"], last, PAGE):
        for run, shard in page:
            yield RunId(run), shard
        last = page[-1]["run"]


async def facts(connection: asyncpg.Connection) -> dict[str, Any]:
    """Facts about the store for `treadle doctor`; `health` has more about its server."""
    state = await connection.fetchrow(SQL["read_state"])
    settings = ("server_version", "synchronous_commit", "fsync", "full_page_writes", "max_connections")
    return {
        **{name: await connection.fetchval(f"SHOW {name}") for name in settings},
        "schema_version": state["version"],
        "shards": state["shards"],
        "day": (await connection.fetchval(SQL["read_day"])).isoformat(),
        "partitions": await connection.fetchval(SQL["count_partitions"]),
        "bytes": await connection.fetchval(SQL["size_of_database"]),
    }

"""Looking after a database beside its engines: checks and facts. Must not write."""

from __future__ import annotations

from typing import Any

import asyncpg

from treadle.store.postgres.queries import SQL

PROBLEMS_MAX = 100


async def integrity(connection: asyncpg.Connection) -> list[str]:
    """What is wrong with the rows; empty if nothing is."""
    torn = await connection.fetch(SQL["runs_out_of_step"], PROBLEMS_MAX)
    stray = await connection.fetch(SQL["rows_without_run"], PROBLEMS_MAX)
    problems = [f"run {run} is at {seq}, its history ends at {last}" for run, seq, last in torn]
    return problems + [f"a row of {table} is of the run {run}, which does not exist" for table, run in stray]


async def facts(connection: asyncpg.Connection) -> dict[str, Any]:
    """What a doctor wants to know."""
    state = await connection.fetchrow(SQL["read_state"])
    settings = ("server_version", "synchronous_commit", "fsync", "full_page_writes", "max_connections")
    return {
        **{name: await connection.fetchval(f"SHOW {name}") for name in settings},
        "schema_version": state["version"],
        "shards": state["shards"],
        "bytes": await connection.fetchval(SQL["size_of_database"]),
    }

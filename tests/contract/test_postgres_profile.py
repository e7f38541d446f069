"""The profile that lets runs be spread over databases (Citus, CockroachDB, YugabyteDB: by design, not tested)."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.postgres import Database
from treadle.store.postgres.queries import SQL

HERE = Path(str(files("treadle.store.postgres")))
NOT_OF_A_RUN = {
    "documents": "what is deployed, for every run",
    "leases": "who owns a shard, which is many runs",
    "run_keys": "found before there is a run; placed by its key",
    "treadle_schema": "one row about the database",
}
BANNED = {
    r"advisory": "advisory locks belong to a session and one server",
    r"\b(?:NOTIFY|LISTEN|pg_notify)\b": "a notification takes a lock of the whole server at commit",
    r"\bLOCK TABLE\b": "a lock on a table is a lock on everybody's runs",
    r"\bSET SESSION\b|\bSET (?!LOCAL\b)[a-z_]+ = [^,]*;": "a pooler hands every transaction another session",
    r"\b(?:now|clock_timestamp)\(\)|\bCURRENT_TIMESTAMP\b": "the time is an argument",
    r"\bSERIALIZABLE\b": "READ COMMITTED and guarded writes are the contract",
    r"\bTRIGGER\b|\bFUNCTION\b": "rules do not live in a store",
}
PRIMARY_KEYS = """SELECT c.relname, (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum = i.indkey[0])
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace ORDER BY 1"""


def _asked(database: Database, question: str) -> list[tuple[Any, ...]]:
    async def ask() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(database.dsn)
        try:
            return [tuple(row) for row in await connection.fetch(question)]
        finally:
            await connection.close()

    return asyncio.run(ask())


def _sources() -> list[tuple[str, str]]:
    """Names and what the server may be told; comments are for people."""
    found = [(name, sql) for name, sql in SQL.items()]
    for file in sorted([*HERE.rglob("*.sql"), *HERE.glob("*.py")]):
        if file.name in ("queries.sql", "upkeep.sql"):
            continue
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".py":
            text = "\n".join(re.findall(r'f?"[^"\n]*"', text))
        found.append((file.name, re.sub(r"--[^\n]*", "", text)))
    return found


@pytest.mark.parametrize("pattern", BANNED, ids=str)
def test_no_statement_leaves_the_profile(pattern: str) -> None:
    found = [name for name, text in _sources() if re.search(pattern, text, re.IGNORECASE)]
    assert not found, BANNED[pattern]


def test_the_patterns_would_find_what_they_forbid() -> None:
    bad = [
        "SELECT pg_advisory_xact_lock(1)",
        "NOTIFY wake",
        "LOCK TABLE runs",
        "SET search_path = x;",
        "SELECT now()",
        "BEGIN ISOLATION LEVEL SERIALIZABLE",
        "CREATE TRIGGER t",
    ]
    for pattern, statement in zip(BANNED, bad, strict=True):
        assert re.search(pattern, statement, re.IGNORECASE)


def test_every_primary_key_begins_with_the_run(database: Database) -> None:
    first = dict(_asked(database, PRIMARY_KEYS))
    tables = {name for (name,) in _asked(database, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}
    assert first.keys() == tables, "every table has a primary key"
    assert {name for name, column in first.items() if column != "run"} == NOT_OF_A_RUN.keys()


def test_no_unique_index_reaches_over_runs_but_that_of_the_keys(database: Database) -> None:
    unique = _asked(
        database,
        """SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        WHERE i.indisunique AND NOT i.indisprimary AND c.relnamespace = 'public'::regnamespace""",
    )
    assert unique == []


def test_no_foreign_key_leaves_a_run(database: Database) -> None:
    assert _asked(database, "SELECT conname FROM pg_constraint WHERE contype = 'f'") == []


def test_a_step_of_a_chain_changes_no_indexed_column(database: Database) -> None:
    """Or every step would write every index of `runs`."""
    indexed = {
        name
        for (name,) in _asked(
            database,
            """SELECT DISTINCT a.attname FROM pg_index i JOIN pg_attribute a
            ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) WHERE i.indrelid = 'runs'::regclass""",
        )
    }
    assert not indexed & {"seq", "changed"}

"""The profile that lets runs be spread over databases (Citus, CockroachDB, YugabyteDB: by design, not tested)."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.postgres import Database, new_database
from treadle.store.postgres import PostgresStore
from treadle.store.postgres.batches import compose
from treadle.store.postgres.queries import SQL
from treadle.store.statements import parse

HERE = Path(str(files("treadle.store.postgres")))
NOT_OF_A_RUN = {
    "documents": "what is deployed, for every run",
    "leases": "who owns a shard, which is many runs",
    "nodes": "who is alive",
    "meters": "how much of a queue may begin",
    "run_keys": "found before there is a run; placed by its key",
    "batch_items": "found before the run is known; placed by the start",
    "calendar": "one row: which day it is, and the name of the log of all events",
    "forgets": "what a reader of all events must be told that it has missed",
    "entities": "a record outlives every run about it; placed by its key",
    "addresses": "found before the record is known; placed by its address",
    "moves": "a journey leads through many runs, and outlives them; placed by the key of its entity",
    "positions": "the last move of each entity in each workflow",
    "log_entries": "the audit and deliveries, which belong to a server",
    "log_heads": "one row for each log",
    "notes": "answers of a server, found by the key of the request",
    "treadle_schema": "one row about the database",
}


def _names(*of: str) -> set[str]:
    """The statements of some files."""
    return {name for file in of for name in parse((HERE / file).read_text(encoding="utf-8"))}


CLOCK = r"\b(?:now|clock_timestamp)\(\)|\bCURRENT_(?:TIMESTAMP|DATE)\b"
BELL = r"\b(?:NOTIFY|LISTEN|pg_notify)\b"
ALLOWED = {
    CLOCK: {
        *("take_lease", *_names("membership.sql", "work.sql")),  # what nodes compare: one clock is the same for all
        *("is_another_day", "begin_day", "0004_days.sql", "schema.sql"),  # where blocks are kept, nothing else
    },
    BELL: {"notices.py"},  # on a connection of its own, outside every transaction that writes state
}
BANNED = {
    r"advisory": "advisory locks belong to a session and one server",
    BELL: "a notification takes a lock of the whole server at commit",
    r"\bLOCK TABLE\b": "a lock on a table is a lock on everybody's runs",
    r"\bSET SESSION\b|(?:^|[;\"])\s*(?-i:SET) (?!LOCAL\b)": "a pooler hands every transaction another session",
    CLOCK: "the time is an argument",
    r"\bSERIALIZABLE\b": "READ COMMITTED and guarded writes are the contract",
    r"\bTRIGGER\b|\bFUNCTION\b": "rules do not live in a store",
}
PARTS = (
    *("check_fences", "create_runs", "claim_keys", "tag_runs", "move_runs", "append_history", "put_blobs"),
    *("clear_timers", "set_timers", "drop_gates", "close_gates", "open_gates", "note_gates", "add_effects"),
    *("effects_done",),
    *("park_effects", "answer_requests"),
)
"""Of a commit that has everything."""
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
        if file.parent == HERE and file.suffix == ".sql" and file.name != "schema.sql":
            continue
        text = file.read_text(encoding="utf-8")
        if file.suffix == ".py":
            text = "\n".join(re.findall(r'f?"[^"\n]*"', text))
        found.append((file.name, re.sub(r"--[^\n]*", "", text)))
    return found


@pytest.mark.parametrize("pattern", BANNED, ids=str)
def test_no_statement_leaves_the_profile(pattern: str) -> None:
    found = {name for name, text in _sources() if re.search(pattern, text, re.IGNORECASE)}
    found -= ALLOWED.get(pattern, set())
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


SEQUENCES = {
    "outbox_ids": "rows of a shard are read in the order of its commits; told apart, never compared across shards",
    "runs_created_seq": "to list and page by",
    "requests_arrived_seq": "who asked first is answered first, roughly",
    "work_position_seq": "what was offered first is claimed first, roughly",
    "history_positions": "all events are read in this order; a reader waits while a smaller one may be committed",
    "entities_number_seq": "to list and page by",
    "entry_ids": "entries of logs that are not chained, to page by; a chain counts by its head",
}


def test_every_number_the_database_gives_is_only_an_order_to_read_in(database: Database) -> None:
    found = {name for (name,) in _asked(database, "SELECT sequencename FROM pg_sequences WHERE schemaname = 'public'")}
    assert found == SEQUENCES.keys(), "a number of the whole database must decide nothing: say why it does not"


def test_a_partition_is_like_its_table(database: Database) -> None:
    """A distributed database that has no partitions has one table instead, and nothing else changes."""
    (kind,) = _asked(database, "SELECT relkind::text FROM pg_class WHERE relname = 'history'")
    (key,) = _asked(database, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'history_pkey'")
    assert (kind, key) == (("p",), ("PRIMARY KEY (run, seq, day)",))


def test_a_commit_planned_on_empty_tables_steps_into_indexes_only() -> None:
    """Plans are made once for a connection, perhaps on a database's first day: they must do for millions of rows."""
    parts = tuple((name, len(set(re.findall(r"\$\d+", SQL[name])))) for name in PARTS)
    statement = compose(parts)
    nothing = ", ".join(["NULL"] * max(map(int, re.findall(r"\$(\d+)", statement))))

    async def explain(dsn: str) -> list[str]:
        store = await PostgresStore.open(dsn)  # its tables have never been looked at by the server
        await store.close()
        connection = await asyncpg.connect(dsn)
        await connection.execute(SQL["advise_planner"])
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE planned AS {statement}")
        lines = [line for (line,) in await connection.fetch(f"EXPLAIN EXECUTE planned ({nothing})")]
        await connection.close()
        return lines

    with new_database() as dsn:
        plan = asyncio.run(explain(dsn))
    scans = [(line, follower) for line, follower in pairwise(plan) if re.search(r"(Index|Only|Seq) Scan", line)]
    assert len(scans) > 10
    steps = [follower for line, follower in scans if " on calendar" not in line]
    assert all("Index Cond" in follower for follower in steps), "\n".join(plan)
    assert not re.search("Hash Join|Merge Join", "\n".join(plan))

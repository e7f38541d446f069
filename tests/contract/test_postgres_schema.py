"""The database's schema: what the migrations make is what is written down, however many nodes start at once."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import asyncpg
import pytest

from tests.postgres import Database, new_database, run_all
from treadle.errors import StorePlaceError, StoreUnavailable
from treadle.store.postgres import PostgresStore, connect
from treadle.store.postgres.connect import migrate, migrations
from treadle.store.postgres.queries import SQL
from treadle.store.statements import parse

COLUMNS = """SELECT table_name, column_name, data_type, is_nullable, column_default, is_identity
FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'treadle_schema' ORDER BY 1, 2"""
INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'treadle_schema' ORDER BY 1"
CHECKS = """SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint
WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND conrelid::regclass::text <> 'treadle_schema'
ORDER BY 1, 2"""
OPTIONS = """SELECT relname, reloptions::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
AND relkind = 'r' AND relname <> 'treadle_schema' ORDER BY 1"""

SECRET = "hunter" + "2"


@pytest.fixture
def empty() -> Iterator[str]:
    with new_database() as dsn:
        yield dsn


async def _asked(dsn: str, *questions: str) -> list[list[Any]]:
    connection = await asyncpg.connect(dsn)
    try:
        return [[tuple(row) for row in await connection.fetch(question)] for question in questions]
    finally:
        await connection.close()


def _schema(dsn: str) -> list[list[Any]]:
    return asyncio.run(_asked(dsn, COLUMNS, INDEXES, CHECKS, OPTIONS))


def test_the_schema_is_the_sum_of_the_migrations(database: Database, empty: str) -> None:
    asyncio.run(run_all(empty, files("treadle.store.postgres").joinpath("schema.sql").read_text()))
    assert _schema(empty) == _schema(database.dsn)
    assert len(_schema(empty)[0]) > 50


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [version for version, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_every_statement_is_one_the_schema_understands(database: Database) -> None:
    async def explain() -> None:
        connection = await asyncpg.connect(database.dsn)
        for name, sql in SQL.items():
            rows = "gates JOIN runs ON runs.run = gates.run" if name.startswith("if_gate_") else "runs"
            whole = f"SELECT 1 FROM {rows} WHERE {sql}" if name.startswith("if_") else sql
            await connection.prepare(whole)
        await connection.close()

    asyncio.run(explain())


def test_two_statements_cannot_share_a_name() -> None:
    with pytest.raises(ValueError, match="two statements are called a"):
        parse("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;\n")


def test_nodes_that_start_at_once_make_the_schema_once(empty: str) -> None:
    async def start() -> list[int]:
        return await asyncio.gather(*(migrate(empty, shards) for shards in (8, 16, 32, 64)))

    settled = set(asyncio.run(start()))
    assert len(settled) == 1, "whoever was first decides for all"
    assert settled <= {8, 16, 32, 64}
    assert asyncio.run(_asked(empty, "SELECT version FROM treadle_schema")) == [[(migrations()[-1][0],)]]


KILL = "SELECT pg_terminate_backend(pg_backend_pid())"


def test_a_migration_killed_at_any_statement_is_done_by_the_next_start(
    empty: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = migrations()
    killed = 0
    for place, (version, statements) in enumerate(whole):
        parts = statements.split(";\n")
        for at in range(len(parts) + 1):
            broken = ";\n".join([*parts[:at], KILL, *parts[at:]])
            planned = [*whole[:place], (version, broken), *whole[place + 1 :]]
            with monkeypatch.context() as patched:
                patched.setattr(connect, "migrations", lambda planned=planned: planned)
                with pytest.raises((StoreUnavailable, asyncpg.InterfaceError)):
                    asyncio.run(migrate(empty, 1))
            killed += 1
            assert asyncio.run(_asked(empty, "SELECT version FROM treadle_schema")) == [[(version - 1,)]]
    assert killed > 50
    asyncio.run(migrate(empty, 1))
    assert _schema(empty) == _schema(database.dsn)


def test_a_node_killed_between_any_two_statements_of_its_start_leaves_it_to_the_next(
    empty: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each start gets one statement further than the one before."""
    real = {verb: getattr(asyncpg.Connection, verb) for verb in ("execute", "fetchval", "fetchrow")}

    async def start(last: int) -> None:
        asked = 0

        def counting(verb: str) -> Any:
            async def ask(connection: Any, *given: Any, **named: Any) -> Any:
                nonlocal asked
                asked += 1
                if asked > last:
                    await real["execute"](connection, KILL)
                return await real[verb](connection, *given, **named)

            return ask

        with monkeypatch.context() as patched:
            for verb in real:
                patched.setattr(asyncpg.Connection, verb, counting(verb))
            await migrate(empty, 1)

    for last in range(100):
        try:
            asyncio.run(start(last))
            break
        except (StoreUnavailable, asyncpg.InterfaceError):
            continue
    assert 10 < last < 99
    assert _schema(empty) == _schema(database.dsn)


STARTING = """
import asyncio, sys
from treadle.store.postgres import PostgresStore
async def main():
    store = await PostgresStore.open(sys.argv[1], shards=int(sys.argv[2]))
    print(store.shards)
    await store.close()
print("ready", flush=True)
sys.stdin.readline()
asyncio.run(main())
"""


def test_processes_that_start_at_once_agree(empty: str, database: Database) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", STARTING, empty, str(shards)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for shards in (8, 16, 32)
    ]
    for process in started:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = {process.communicate(timeout=60)[0] for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    assert len(answers) == 1
    assert _schema(empty) == _schema(database.dsn)


def test_a_database_of_a_newer_treadle_is_refused_with_both_versions(empty: str) -> None:
    asyncio.run(migrate(empty, 1))
    asyncio.run(run_all(empty, "UPDATE treadle_schema SET version = 99"))
    known = migrations()[-1][0]
    with pytest.raises(StorePlaceError, match=rf"version 99, this Treadle knows versions up to {known}"):
        asyncio.run(PostgresStore.open(empty))


def test_another_programs_tables_are_left_alone(empty: str) -> None:
    asyncio.run(run_all(empty, "CREATE TABLE timers (cat text)"))
    with pytest.raises(StorePlaceError, match='relation "timers" already exists; choose another database'):
        asyncio.run(PostgresStore.open(empty))
    assert asyncio.run(_asked(empty, "SELECT * FROM timers")) == [[]]


def test_a_server_that_may_lose_what_it_acknowledged_is_refused(empty: str) -> None:
    name = empty.split("?")[0].rpartition("/")[2]
    asyncio.run(run_all(empty, f"ALTER DATABASE {name} SET synchronous_commit = off"))
    with pytest.raises(StorePlaceError, match="synchronous_commit is off"):
        asyncio.run(PostgresStore.open(empty))


def test_what_cannot_be_opened_says_why_and_tells_no_password(empty: str) -> None:
    missing = re.sub(r"/treadle_\w+", "/nobodys", empty)
    with pytest.raises(StorePlaceError, match="create the database first"):
        asyncio.run(PostgresStore.open(missing))
    with pytest.raises(StoreUnavailable, match="cannot be reached") as failed:
        asyncio.run(PostgresStore.open(f"postgresql://me:{SECRET}@127.0.0.1:1/x"))
    assert SECRET not in str(failed.value)
    assert "127.0.0.1:1/x" in str(failed.value)

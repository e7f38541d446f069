"""The file's schema: what the migrations make is what is written down, and strangers' files are left alone."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.contract.making import Opener
from treadle.errors import StorePlaceError
from treadle.store.sqlite.connect import connect, migrate, migrations
from treadle.store.sqlite.queries import SQL
from treadle.store.statements import parse


def _schema(connection: apsw.Connection) -> list[tuple[str, str, str]]:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return sorted((kind, name, _plain(sql)) for kind, name, sql in rows)  # type: ignore[arg-type, misc]


def _plain(sql: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"--[^\n]*", "", sql)).replace(" )", ")").replace(" ,", ",").strip()


def test_the_schema_is_the_sum_of_the_migrations(place: Path) -> None:
    migrated = connect(place, writer=True)
    migrate(migrated, place)
    written = apsw.Connection(":memory:")
    written.execute(files("treadle.store.sqlite").joinpath("schema.sql").read_text())
    assert _schema(migrated) == _schema(written)
    assert migrated.pragma("user_version") == migrations()[-1][0]
    migrated.close()


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [version for version, _ in migrations()] == list(range(1, len(migrations()) + 1))


def test_every_statement_is_one_the_schema_understands(place: Path) -> None:
    connection = connect(place, writer=True)
    migrate(connection, place)
    for name, sql in SQL.items():
        rows = "gates JOIN runs ON runs.id = gates.run" if name.startswith("if_gate_") else "runs"
        whole = f"SELECT 1 FROM {rows} WHERE {sql}" if name.startswith("if_") else sql
        connection.execute(f"EXPLAIN {whole}", _nulls(whole))
    connection.close()


def test_two_statements_cannot_share_a_name() -> None:
    with pytest.raises(ValueError, match="two statements are called a"):
        parse("-- name: a\nSELECT 1;\n-- name: a\nSELECT 2;\n")


def test_a_file_of_a_newer_treadle_is_refused_with_both_versions(opened: Opener, place: Path) -> None:
    opened().close()
    newer = apsw.Connection(str(place))
    newer.pragma("user_version", 99)
    newer.close()
    known = migrations()[-1][0]
    with pytest.raises(StorePlaceError, match=rf"version 99, this Treadle knows versions up to {known}"):
        opened()


def test_another_programs_database_is_left_alone(opened: Opener, place: Path) -> None:
    foreign = apsw.Connection(str(place))
    foreign.execute("CREATE TABLE cats (name)")
    foreign.close()
    with pytest.raises(StorePlaceError, match="another program's database"):
        opened()


def test_a_step_reads_and_writes_no_index_but_those_of_its_keys(opened: Opener, place: Path) -> None:
    """The hot path's plan: no scan, no temporary tree."""
    opened()
    connection = connect(place)
    for name in ("step_run", "turn_run", "append_history", "read_history", "read_timers", "read_outbox"):
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {SQL[name]}", _nulls(SQL[name]))]
        assert not [line for line in plan if ("SCAN" in line and "SCAN outbox" not in line) or "TEMP" in line], plan
    connection.close()


def _nulls(sql: str) -> Any:
    named = re.findall(r":(\w+)", sql)
    return dict.fromkeys(named) if named else (None,) * (1 if "?1" in sql else sql.count("?"))

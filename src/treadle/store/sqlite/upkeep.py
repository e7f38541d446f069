"""Upkeep of the file while its owner runs: copies, checks, facts.

Each uses a connection of its own, so that no verb waits for it. Promises that a copy is one moment of the database,
complete on disk before it gets its name. Must not write to the database.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from treadle.errors import StorePlaceError
from treadle.store.sqlite import private
from treadle.store.sqlite.connect import connect, migrations
from treadle.store.sqlite.faults import unavailable
from treadle.store.sqlite.file_checks import APPLICATION_ID
from treadle.store.sqlite.place import check_place, filesystem_of
from treadle.store.sqlite.queries import SQL

PAGES_AT_ONCE = 512
"""Pages between two calls of `progress`: 2 MiB."""
PROBLEMS_MAX = 100
SQLITE_MAGIC, APPLICATION_ID_AT, HEADER_BYTES = b"SQLite format 3\0", 68, 72
"""Where the header of a SQLite file says which program it belongs to."""

Progress = Callable[[int, int], None]
"""(pages left, pages in all)"""


def backup(path: Path, target: Path, progress: Progress | None, *, overwrite: bool = False) -> None:
    """Copies the database as it is now. The copy is written beside the target, synced, and renamed: a target that
    exists is untouched until then. Refuses an existing target, unless `overwrite`."""
    check_place(target)
    if target.exists() and not overwrite:
        raise StorePlaceError(str(target), "it exists already", "choose another name, or remove it first")
    _refuse_other_file(target)
    _refuse_log(target)
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    try:
        _copy(path, part, progress)
        _sync(part)
        part.rename(target)
        _sync(target.absolute().parent)
    except apsw.Error as problem:
        raise unavailable(problem, str(target)) from problem
    finally:
        part.unlink(missing_ok=True)


def _refuse_other_file(target: Path) -> None:
    """Only a copy of a store is replaced: a slip in the name must not cost a file. An empty file is no loss."""
    if not target.exists():
        return
    with target.open("rb") as file:
        head = file.read(HEADER_BYTES)
    is_store = head.startswith(SQLITE_MAGIC) and int.from_bytes(head[APPLICATION_ID_AT:], "big") == APPLICATION_ID
    if head and not is_store:
        raise StorePlaceError(str(target), "it is not a Treadle store", "choose another name")


def _refuse_log(target: Path) -> None:
    """A write-ahead log beside the target belongs to the old file. SQLite would replay it into the new one."""
    log = target.with_name(target.name + "-wal")
    if log.exists() and log.stat().st_size:
        problem = f"{log.name} beside it has commits: somebody uses it, or it was not closed"
        raise StorePlaceError(str(target), problem, "choose another name, or close or remove both files first")


def _copy(path: Path, part: Path, progress: Progress | None) -> None:
    source = connect(path, read_only=True)
    private.make(part)
    copy = apsw.Connection(str(part))
    try:
        # Holds a snapshot: without it every commit of the owner would restart the copy.
        source.execute("BEGIN; SELECT count(*) FROM runs").fetchall()
        with copy.backup("main", source, "main") as pages:
            while not pages.done:
                pages.step(PAGES_AT_ONCE)
                if progress is not None:
                    progress(pages.remaining, pages.page_count)
        source.execute("ROLLBACK")
        problems = [row[0] for row in copy.execute("PRAGMA quick_check(1)") if row[0] != "ok"]
        if problems:
            raise apsw.CorruptError(f"the copy fails its check: {problems[0]}")
    finally:
        copy.close()
        source.close()


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def integrity(path: Path) -> list[str]:
    """What is wrong with the file; empty if nothing is."""
    connection = connect(path, read_only=True)
    try:
        pages = connection.execute(f"PRAGMA integrity_check({PROBLEMS_MAX})").fetchall()
        problems = [str(text) for (text,) in pages if text != "ok"]
        problems += _schema_problems(connection)
        for table, row, parent, _ in islice(connection.execute("PRAGMA foreign_key_check"), PROBLEMS_MAX):
            problems.append(f"row {row} of {table} refers to a row of {parent} that does not exist")
        for run, seq, last in islice(connection.execute(SQL["runs_out_of_step"]), PROBLEMS_MAX):
            problems.append(f"run {run} is at {seq}, its history ends at {last}")
        for entity, workflow in islice(connection.execute(SQL["positions_astray"]), PROBLEMS_MAX):
            problems.append(f"the position of {entity} in {workflow} is not its last move there")
        return problems
    except (apsw.Error, UnicodeDecodeError) as problem:
        return [f"it cannot be read to the end: {problem}"]
    finally:
        connection.close()


def _schema_problems(connection: apsw.Connection) -> list[str]:
    """Differences between the file's schema and that of the migrations: a changed bit there may change what columns and
    conditions mean."""
    fresh = apsw.Connection(":memory:")
    try:
        for _, statements in migrations():
            fresh.execute(statements)
        wanted, found = dict(_descriptions(fresh)), dict(_descriptions(connection))
    finally:
        fresh.close()
    names = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    return [f"the description of {name} is not what it was made with" for name in names]


def _descriptions(connection: apsw.Connection) -> list[tuple[str, str]]:
    return [(f"{kind} {name}", text) for kind, name, text in connection.execute(SQL["descriptions"])]


def facts(path: Path) -> dict[str, Any]:
    """Versions, settings and sizes, for `treadle doctor`."""
    connection = connect(path, read_only=True)
    try:
        names = ("journal_mode", "synchronous", "page_size", "page_count", "freelist_count", "user_version")
        wal = path.with_name(path.name + "-wal")
        size = path.stat().st_size
        return {
            "quick_check": connection.execute("PRAGMA quick_check(1)").get,
            "open_to_all": private.is_open_to_all(path),
            "bytes": size,
            "sqlite_version": apsw.sqlite_lib_version(),
            **{name: connection.pragma(name) for name in names},
            "wal_bytes": wal.stat().st_size if wal.exists() else 0,
            "filesystem": filesystem_of(path),
        }
    finally:
        connection.close()

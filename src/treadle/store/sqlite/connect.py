"""Opening of connections to the file, and migration of its schema.

Owns the settings that durability depends on. Promises that they are in force: each is read back after it was set.
Refuses a file that a newer Treadle has written, a file of another program, and an SQLite that can damage a file. Must
not know verbs.

Failure cases
    A migration that is interrupted leaves the version before it: each runs in one transaction with its number. Two
    processes that open an old file at once: the second waits for the first's write lock and finds the work done.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import apsw

from treadle.errors import StorePlaceError, StoreUnavailable
from treadle.store.sqlite import private
from treadle.store.sqlite.faults import unavailable
from treadle.store.sqlite.file_checks import APPLICATION_ID, another_program, check_file
from treadle.store.sqlite.place import check_place

SQLITE_MIN = 3_051_003
"""Before it two connections that write and checkpoint at the same moment can damage the file (the WAL-reset bug)."""
BUSY_MS = 10_000
"""Write transactions take milliseconds; ten seconds of waiting mean a lock that does not go away by itself."""
CACHE_KIB = 16_384
"""Pages of the hot tables of a few ten thousand live runs; SQLite fills it only as needed."""
WAL_BYTES_KEPT = 64 * 1024 * 1024
"""A burst may grow the log; after the next checkpoint the file gives the rest of the disk back."""


def connect(path: Path, *, read_only: bool = False, writer: bool = False) -> apsw.Connection:
    """One connection with everything set. Only a writer checkpoints."""
    _check_library()
    check_place(path, read_only)
    flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    try:
        check_file(path)
        if not read_only:
            private.make(path)
        connection = apsw.Connection(str(path), flags=flags)
        try:
            _set_up(connection, path, read_only, writer)
        except BaseException:
            connection.close()
            raise
    except apsw.Error as problem:
        raise unavailable(problem, str(path)) from problem
    except OSError as problem:
        raise StorePlaceError(str(path), f"it cannot be opened: {problem.strerror}", "look at its folder") from problem
    return connection


def _check_library() -> None:
    if apsw.sqlite_lib_version() and _version_number() < SQLITE_MIN:
        raise StoreUnavailable(
            f"SQLite {apsw.sqlite_lib_version()} can damage a database with several connections; install apsw ≥ 3.51.3"
        )


def _version_number() -> int:
    major, minor, patch = (int(part) for part in apsw.sqlite_lib_version().split(".")[:3])
    return major * 1_000_000 + minor * 1_000 + patch


def _set_up(connection: apsw.Connection, path: Path, read_only: bool, writer: bool) -> None:
    connection.set_busy_timeout(BUSY_MS)
    if writer:
        # Before anything is written: a file keeps what it was made with. It lets `forgetting` give pages back.
        connection.pragma("auto_vacuum", "incremental")
    if not read_only:
        _insist(connection, path, "journal_mode", "wal", "wal")
    # FULL: every commit is synced. NORMAL would lose the newest commits in a power cut.
    _insist(connection, path, "synchronous", "full", 2)
    _insist(connection, path, "foreign_keys", "on", 1)
    _insist(connection, path, "mmap_size", "0", 0)
    # Where a plain fsync does not reach the platter (macOS) this does; elsewhere it changes nothing.
    connection.pragma("fullfsync", "on")
    connection.pragma("cache_size", -CACHE_KIB)
    connection.pragma("journal_size_limit", WAL_BYTES_KEPT)
    connection.create_scalar_function("lowered", _lowered, 1, deterministic=True)
    if not writer:
        connection.wal_autocheckpoint(0)
        connection.pragma("query_only", "on")


def _lowered(*given: apsw.SQLiteValue) -> str:
    """Python's `lower` for SQL, whose own knows only ASCII."""
    return str(given[0]).lower()


def _insist(connection: apsw.Connection, path: Path, name: str, wanted: str, expected: str | int) -> None:
    connection.pragma(name, wanted)
    if connection.pragma(name) != expected:
        raise StorePlaceError(
            str(path),
            f"PRAGMA {name} is {connection.pragma(name)!r} and not {wanted!r}",
            "the filesystem or this build of SQLite cannot keep the store's promises there",
        )


def migrations() -> list[tuple[int, str]]:
    """(version, statements), oldest first."""
    found = []
    for file in files(__package__).joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_\w+\.sql", file.name)
        if match:
            found.append((int(match[1]), file.read_text(encoding="utf-8")))
    return sorted(found)


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Brings the file to the version this Treadle knows, or refuses it."""
    known = migrations()
    newest = known[-1][0]
    if _version(connection, path, newest) == newest:
        return
    if connection.readonly("main"):
        raise StorePlaceError(str(path), "it has an older schema", "open it once for writing to bring it up to date")
    for version, statements in known:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection, path, newest) < version:
                connection.execute(statements)
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", version)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _version(connection: apsw.Connection, path: Path, newest: int) -> int:
    version = int(connection.pragma("user_version"))
    tables = connection.execute("SELECT count(*) FROM sqlite_master").get
    if tables and connection.pragma("application_id") != APPLICATION_ID:
        raise another_program(path)
    if version > newest:
        raise StorePlaceError(
            str(path),
            f"its schema has version {version}, this Treadle knows versions up to {newest}",
            "it was written by a newer Treadle: use that one, or restore a backup",
        )
    return version

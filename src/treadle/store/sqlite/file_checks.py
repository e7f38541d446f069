"""Checks a file and its log before SQLite opens them, and changes neither.

Owns the refusals that would come too late from SQLite itself: SQLite switches another program's file to WAL mode before
it can be recognised; it takes a log with a damaged header for an empty one, and commits behind a damaged page of the
log for the remains of a crash, so that acknowledged commits disappear silently. Promises that a refused file is
unchanged, byte for byte. Must not open the database file or the index of the log itself: closing them would drop
SQLite's locks in the rest of this process. The log has no locks.

Theory of operation
    The format is SQLite's (walformat.html). A header of the log is written and synced before the first page behind it,
    so no crash leaves pages behind a header that does not hold. A transaction is synced before the next one is written:
    where a page of the log does not hold and a later transaction has begun, it is not a crash but damage. If nothing
    follows it cannot be told from a crash, and is taken for one.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

import apsw

from treadle.errors import StorePlaceError

APPLICATION_ID = 0x54524431
"""`TRD1` in the header: tells our files from other people's databases."""
_LOG_HEADER, _FRAME_HEADER = 32, 24
_BIG_ENDIAN, _LITTLE_ENDIAN = 0x377F0683, 0x377F0682
STRANGE_MAX = 2
"""Pages with the salt of another log. One may be damaged; more of them are left over from the log before."""
LOOKS = 3
"""Checks of a log that a process may be writing: a half-written page is complete at the next check, damage stays."""

Sums = tuple[int, int]


def check_file(path: Path) -> None:
    """Refuses another program's database, and a log whose header is damaged. Cheap: for every connection."""
    size = path.stat().st_size if path.exists() else 0
    _check_header(path, size)
    if size and not _is_ours(path):
        raise another_program(path)


def another_program(path: Path) -> StorePlaceError:
    """The error for a file that is not Treadle's."""
    return StorePlaceError(str(path), "it is another program's database", "choose another file")


def _is_ours(path: Path) -> bool:
    """Whether the file is Treadle's, or empty. It is opened as `immutable`: without locks or recovery, and no file is
    made beside it. A file that cannot be read without its log, as after a power cut during a checkpoint, counts as
    ours: SQLite reports what is wrong with it."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{quote(str(path.absolute()))}?immutable=1", flags=flags)
    try:
        if connection.pragma("application_id") == APPLICATION_ID:
            return True
        return not connection.execute("SELECT count(*) FROM sqlite_master").get
    except apsw.Error:
        return True
    finally:
        connection.close()


def log_path(path: Path) -> Path:
    """`treadle.db` → `treadle.db-wal`."""
    return path.with_name(path.name + "-wal")


def _check_header(path: Path, size: int) -> None:
    log = log_path(path)
    for _ in range(LOOKS):
        try:
            with log.open("rb") as file:
                header, has_pages = file.read(_LOG_HEADER), bool(file.read(1))
        except FileNotFoundError:
            return
        if not has_pages:
            return
        if size == 0:
            problem = "it is empty, and there is a log with commits beside it"
            raise StorePlaceError(str(path), problem, "restore the file, or a backup")
        if _holds(header):
            return
    raise StorePlaceError(
        str(path),
        f"the header of its log {log.name} is damaged: SQLite would take it for empty, and the last commits for gone",
        f"keep a copy of both files and restore a backup; or move {log.name} away to go on without those commits",
    )


def _holds(header: bytes) -> bool:
    magic, version = struct.unpack(">II", header[:8])
    if magic not in (_BIG_ENDIAN, _LITTLE_ENDIAN) or version != 3_007_000:
        return False
    sums = _summed((0, 0), struct.unpack(f"{_order(header)}6I", header[:24]))
    return bool(struct.unpack(">II", header[24:]) == sums)


def _order(header: bytes) -> str:
    return ">" if int.from_bytes(header[:4], "big") == _BIG_ENDIAN else "<"


def _summed(sums: Sums, words: tuple[int, ...]) -> Sums:
    one, two = sums
    for first, second in zip(words[::2], words[1::2], strict=True):
        one = (one + first + two) & 0xFFFFFFFF
        two = (two + second + one) & 0xFFFFFFFF
    return one, two


def check_log(path: Path) -> None:
    """Refuses a log with commits behind a damaged page. Reads all of it, some 60 µs a page: only for the first process
    that opens a store, as after a crash."""
    place = 0
    for _ in range(LOOKS):
        try:
            with log_path(path).open("rb") as log:
                place = _damaged_page(log)
        except FileNotFoundError:
            return
        if not place:
            return
    name = log_path(path).name
    raise StorePlaceError(
        str(path),
        f"page {place} of its log {name} is damaged, and commits follow it, which SQLite would drop",
        f"keep a copy of both files and restore a backup; or cut {name} before that page to go on without them",
    )


def _damaged_page(log: BinaryIO) -> int:
    """The first page with a wrong checksum whose transaction is followed by another; counted from 1, 0 for none."""
    header = log.read(_LOG_HEADER)
    if len(header) < _LOG_HEADER:
        return 0
    salts, size, order = header[16:24], int.from_bytes(header[8:12], "big"), _order(header)
    sums: Sums = struct.unpack(">II", header[24:])
    number = damaged = strange = 0
    has_committed = False
    while strange < STRANGE_MAX and len(frame := log.read(_FRAME_HEADER + size)) == _FRAME_HEADER + size:
        number += 1
        is_strange = frame[8:16] != salts
        if not damaged and not is_strange:
            sums = _summed(sums, struct.unpack(f"{order}2I", frame[:8]))
            sums = _summed(sums, struct.unpack(f"{order}{size // 4}I", frame[_FRAME_HEADER:]))
            if struct.unpack(">II", frame[16:24]) == sums:
                continue
        damaged = damaged or number
        if is_strange:
            strange += 1
        elif has_committed:
            return damaged
        else:
            has_committed = frame[4:8] != bytes(4)
    return 0

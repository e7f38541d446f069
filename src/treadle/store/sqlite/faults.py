"""Translation of SQLite's errors into the port's exceptions.

Promises that no error is swallowed: one that is not the fault of the disk or the file is a bug of ours and is passed on
unchanged. Must not decide what to do about it.
"""

from __future__ import annotations

import apsw

from treadle.errors import StoreDamaged, StoreUnavailable

_REMEDIES: dict[type[apsw.Error], str] = {
    apsw.FullError: "the disk is full: make room, the store goes on by itself",
    apsw.IOError: "the disk reports an error: look at the system's log, then restart",
    apsw.CorruptError: "the file is damaged: stop, keep a copy of it, restore a backup",
    apsw.NotADBError: "the file is no database: stop, keep a copy of it, restore a backup",
    apsw.BusyError: "another process has kept the file locked for too long: look for long transactions or a copy",
    apsw.LockedError: "another connection of this process has kept a table locked",
    apsw.CantOpenError: "the file cannot be opened: look at its directory and permissions",
    apsw.ReadOnlyError: "the file cannot be written: look at its permissions and at how it was opened",
    apsw.PermissionsError: "access was denied: look at the file's permissions",
    apsw.AuthError: "access was denied: look at the file's permissions",
    apsw.NoMemError: "there is no memory left",
    apsw.ProtocolError: "the lock protocol failed: is the file on a network filesystem?",
    apsw.NoLFSError: "the filesystem cannot keep files this large",
}

SEALED = "treadle"
"""Start of the message with which a file that is being moved, or was moved, refuses writes."""

_SYNC_FAILED = {apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC}


def unavailable(problem: apsw.Error, path: str, *, outcome_unknown: bool = False) -> Exception:
    """The exception that callers see; the problem itself if it is a bug."""
    if getattr(problem, "extendedresult", 0) == apsw.SQLITE_CONSTRAINT_TRIGGER:
        made = StoreUnavailable(str(problem).partition(f"{SEALED}: ")[2], final=True)
        made.__cause__ = problem
        return made
    for kind, remedy in _REMEDIES.items():
        if isinstance(problem, kind):
            text = f"{path}: {problem}: {remedy}"
            made = StoreUnavailable(text, outcome_unknown=outcome_unknown, final=is_final(problem))
            made.__cause__ = problem
            return made
    return problem


def damaged_text(problem: UnicodeDecodeError, path: str) -> StoreDamaged:
    """The error for stored text that is no longer valid UTF-8: SQLite does not check it, Python does."""
    made = StoreDamaged(path, f"a text that begins with {problem.object[:60]!r} is not UTF-8")
    made.__cause__ = problem
    return made


def is_final(problem: apsw.Error) -> bool:
    """Whether the connection must not be used again. After a failed sync the kernel may have dropped the very pages
    that were not written, and the next sync would succeed without them; a damaged file only gets worse."""
    extended = getattr(problem, "extendedresult", 0)
    return isinstance(problem, apsw.CorruptError | apsw.NotADBError) or extended in _SYNC_FAILED

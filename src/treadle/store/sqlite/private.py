"""Private files: only their user may read them, from the first byte on.

SQLite gives its log the permissions of the database, so that it is enough to make the database private. Existing files
keep their permissions (a group may share a store); `doctor` warns if every user may read one.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

MODE = 0o600


def make(path: Path) -> None:
    """Makes an empty private file, unless the file exists."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))


def mode_beside(place: Path) -> int:
    """The permissions of a file beside a store: those of the store, but never for every user."""
    try:
        return stat.S_IMODE(place.stat().st_mode) & 0o660
    except OSError:
        return MODE


def is_open_to_all(path: Path) -> bool:
    """Whether users outside its owner and group may read or write it."""
    try:
        return bool(path.stat().st_mode & 0o006)
    except OSError:
        return False


def write_whole(path: Path, text: str) -> None:
    """Replaces a small file, in one step and durably."""
    _written(path, text).rename(path)
    _sync_folder(path)


def write_first(path: Path, text: str) -> None:
    """Makes a small file, in one step and durably, unless it exists: of several processes at once one makes it."""
    part = _written(path, text)
    try:
        path.hardlink_to(part)
    except FileExistsError:
        return
    except OSError:
        part.rename(path)  # a file system without links
    finally:
        part.unlink(missing_ok=True)
    _sync_folder(path)


def _written(path: Path, text: str) -> Path:
    """A new file beside the path, under a name of its own: another process may be writing, too."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE)
    try:
        os.write(file, text.encode())
        os.fsync(file)
    finally:
        os.close(file)
    return part


def _sync_folder(path: Path) -> None:
    folder = os.open(path.absolute().parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def key_path(place: Path) -> Path:
    """`treadle.db` → `treadle.db.key`; the same for every name of the same file."""
    real = Path(os.path.realpath(place))
    return real.with_name(real.name + ".key")


def read_key(place: Path) -> str | None:
    """The key of a store; None if it has none."""
    try:
        return key_path(place).read_text().strip() or None
    except OSError:
        return None


def key_of(place: Path, known: str | None) -> str:
    """The key of a store; the first call makes it, also if several processes call at once."""
    kept = read_key(place)
    if kept is None and known is None:
        write_first(key_path(place), secrets.token_hex(32))
        kept = read_key(place)
    key = known or kept or secrets.token_hex(32)
    if key != kept:
        write_whole(key_path(place), key)
    return key

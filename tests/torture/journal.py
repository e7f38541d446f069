"""Append-only journals of JSON lines: what a client was told, what a task function did.

Owns the files beside the database that the judge believes. One line is one `write` on a descriptor opened for
appending, so lines of several processes never mix, and a line that was written survives the kill of its writer. A kill
in the middle of a write may leave the beginning of a line, with the next one behind it: its writer has not gone on, so
nobody believes it was written. Must not be read while somebody writes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import msgspec

Line = dict[str, Any]


class Journal:
    """One writer's end."""

    def __init__(self, path: str | Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def say(self, sure: bool = False, **line: Any) -> None:
        """Writes a line; `sure` returns when it is on the disk."""
        os.write(self._file, msgspec.json.encode({"at": now_ms(), "mono": mono_ms(), **line}) + b"\n")
        if sure:
            os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)


def now_ms() -> int:
    """The same clock the engine stamps its events with."""
    return time.time_ns() // 1_000_000


def mono_ms() -> int:
    """The clock that all processes of a machine share, whatever they believe the time to be."""
    return time.monotonic_ns() // 1_000_000


def read(path: str | Path) -> list[Line]:
    """Every line, oldest first; none for a journal that nobody has begun."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return []
    return [line for text in content.splitlines() if (line := _whole(text)) is not None]


def _whole(text: bytes) -> Line | None:
    """The line that was written to its end; None if only a beginning was."""
    begins = text.rfind(b'{"at":')
    try:
        line: Line = msgspec.json.decode(text[max(begins, 0) :])
    except msgspec.DecodeError:
        return None
    return line

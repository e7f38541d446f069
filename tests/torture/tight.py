"""Disks without room: a VFS that is full when told, and a real small filesystem filled with ballast.

    python -m tests.torture.tight DIRECTORY      inside a mount namespace of its own: see test_disk_full.py

Owns both ways of running out of room. The database is on the tight disk, the journals are not: the judge must be able
to believe them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw

from tests.torture.engine import DATABASE
from tests.torture.inside import play
from tests.torture.judge import judge
from tests.torture.verdict import Verdict
from treadle.store.sqlite import SqliteStore

FULL_S = (0.2, 0.3, 0.1)
"""Three times: full for so long, with as much room in between. Longer than the engine's first tries."""


class TightDisk(apsw.VFS):
    """The process's default VFS until `unregister`. Once `room` (bytes) is used up nothing can be written."""

    def __init__(self) -> None:
        self.room: int | None = None
        self.sync_fails = False
        self.refusals = 0
        super().__init__("treadle-tight", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _TightFile(self, name, flags)


class _TightFile(apsw.VFSFile):
    def __init__(self, disk: TightDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        disk = self._disk
        if disk.room is not None:
            disk.room -= len(data)
            if disk.room < 0:
                disk.refusals += 1
                raise apsw.FullError("no room")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if self._disk.sync_fails:
            self._disk.refusals += 1
            problem = apsw.IOError("the disk could not sync")
            problem.extendedresult = apsw.SQLITE_IOERR_FSYNC  # type: ignore[attr-defined]
            raise problem
        super().xSync(flags)


async def fill_and_free(place: Path, fill: Callable[[], None], free: Callable[[], None], seed: int) -> Verdict:
    """An engine with a crowd of runs on a disk that is full again and again."""
    store = await SqliteStore.open(place / DATABASE)
    loop = asyncio.get_running_loop()

    planned: list[asyncio.TimerHandle] = []

    def begin() -> None:
        at = 0.0
        for seconds in FULL_S:
            planned.extend((loop.call_later(at, fill), loop.call_later(at + seconds, free)))
            at += 2 * seconds

    def end() -> None:
        """A quick crowd has finished before the disk was full for the last time."""
        for one in planned:
            one.cancel()
        free()

    return judge(await play(place, store, seed, actors=3, begin=begin, end=end))


class Ballast:
    """A file that takes up what is left of a filesystem."""

    def __init__(self, place: Path) -> None:
        self._file = place / "ballast"
        self.filled = 0

    def fill(self) -> None:
        """Until not a single byte more is taken."""
        with self._file.open("ab", buffering=0) as file:
            for size in (65_536, 4_096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))
        self.filled += 1

    def free(self) -> None:
        self._file.unlink(missing_ok=True)


def main(arguments: list[str]) -> int:
    place = Path(arguments[0])
    small = place / "small"
    (place / DATABASE).symlink_to(small / DATABASE)
    ballast = Ballast(small)
    verdict = asyncio.run(fill_and_free(place, ballast.fill, ballast.free, os.getpid()))
    sys.stdout.write(f"filled {ballast.filled} times, {verdict.runs} runs, {len(verdict.findings)} findings\n")
    sys.stdout.write("".join(f"✗ {finding}\n" for finding in verdict.findings[:20]))
    return 1 if verdict.findings or not ballast.filled else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

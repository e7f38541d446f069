"""Power cuts: what SQLite writes is recorded, and every disk that a cut could have left behind can be made from that.

Owns a VFS that passes everything on to the real one and keeps a log of writes, truncations and syncs, with marks where
the store acknowledged a commit; and the model of a disk:
 1. What was written before a file's last sync is there.
 2. Of what was written after it any subset is there, in any mixture, each write torn at 512-byte sectors.
 3. A file that was created and never synced may be missing; one that was deleted without a sync of its directory may
    be back.
One recording gives thousands of cuts. Must not know what is in the files.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw
from msgspec import Struct

SECTOR = 512
NAME = "treadle-power"
JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL


class Op(Struct, frozen=True):
    """One thing that happened to a file; of a mark only `told` is set."""

    kind: str
    """write | truncate | sync | delete | told"""
    file: str = ""
    at: int = 0
    content: bytes = b""
    directory: bool = False
    """The directory was synced too: what was created and deleted in it is so for good."""
    told: Any = None


class Recorder(apsw.VFS):
    """The process's default VFS from its making until `unregister`. `lies`: the disk says synced and is not."""

    def __init__(self, lies: bool = False) -> None:
        self.log: list[Op] = []
        self.lies = lies
        super().__init__(NAME, "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        # A file without a name is SQLite's scratch space, deleted as it is opened: no cut leaves it behind.
        return _RecordedFile(self, name, flags) if name else apsw.VFSFile("unix", name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        self.log.append(Op("delete", Path(filename).name, directory=syncdir and not self.lies))

    def told(self, what: Any) -> None:
        """Somebody was promised this."""
        self.log.append(Op("told", told=what))


class _RecordedFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self._recorder = recorder
        self._name = Path(path).name
        # As SQLite's own VFS does: the first sync of a new journal or log is one of its directory too.
        self._syncs_directory = bool(flags[0] & apsw.SQLITE_OPEN_CREATE and flags[0] & JOURNALS)
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self._recorder.log.append(Op("write", self._name, offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:
        super().xTruncate(newsize)
        self._recorder.log.append(Op("truncate", self._name, newsize))

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        if not self._recorder.lies:
            self._recorder.log.append(Op("sync", self._name, directory=self._syncs_directory))
            self._syncs_directory = False


class Disk:
    """What is on the disk for sure, and what may be."""

    def __init__(self) -> None:
        self._sure: dict[str, bytearray] = {}
        self._pending: dict[str, list[Op]] = {}
        self._deleted: set[str] = set()
        """Deleted, and their directory was not synced since."""

    def take(self, op: Op) -> None:
        """One more operation happened."""
        if op.kind == "sync":
            image = self._sure.setdefault(op.file, bytearray())
            for pending in self._pending.pop(op.file, []):
                _apply(image, pending)
        elif op.kind == "delete":
            self._pending.pop(op.file, None)
            self._deleted.add(op.file)
        elif op.kind in ("write", "truncate"):
            if op.file in self._deleted:  # a new file of the same name
                self._deleted.discard(op.file)
                self._sure.pop(op.file, None)
            self._pending.setdefault(op.file, []).append(op)
        if op.directory:
            for file in self._deleted:
                self._sure.pop(file, None)
            self._deleted.clear()

    def cut(self, place: Path, chance: random.Random) -> None:
        """Writes one of the disks the power may leave behind."""
        back = {file for file in sorted(self._deleted) if chance.random() < 0.5}
        for file in sorted({*self._sure, *self._pending} - self._deleted | back & self._sure.keys()):
            image = bytearray(self._sure.get(file, b""))
            kept = list(_survivors(self._pending.get(file, []), chance))
            for op in kept:
                _apply(image, op)
            if file in self._sure or kept:
                (place / file).write_bytes(image)


def _survivors(pending: list[Op], chance: random.Random) -> Iterable[Op]:
    """Nothing, everything, the first few, or any mixture of sectors."""
    manner = chance.choice(("nothing", "everything", "beginning", "mixture", "mixture"))
    if manner == "everything":
        yield from pending
    elif manner == "beginning" and pending:
        yield from pending[: chance.randrange(len(pending) + 1)]
    elif manner == "mixture":
        kept = chance.random()
        for op in pending:
            for sector in _sectors(op):
                if chance.random() < kept:
                    yield sector


def _sectors(op: Op) -> Iterable[Op]:
    if op.kind != "write":
        yield op
        return
    start = 0
    while start < len(op.content):
        end = min(len(op.content), start + SECTOR - (op.at + start) % SECTOR)
        yield Op("write", op.file, op.at + start, op.content[start:end])
        start = end


def _apply(image: bytearray, op: Op) -> None:
    if op.kind == "truncate":
        del image[op.at :]
        return
    if len(image) < op.at:
        image.extend(bytes(op.at - len(image)))
    image[op.at : op.at + len(op.content)] = op.content

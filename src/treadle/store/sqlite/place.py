"""Places at which a database file may be kept.

Owns the refusals of places that would otherwise lead to damage or unclear errors later: network filesystems, on which
SQLite's locks and shared memory do not work; directories, pipes and devices; places that do not exist or cannot be
written. Promises one exception that names the path, the problem and the remedy. If the system does not tell what is
mounted, no filesystem is refused.
"""

from __future__ import annotations

import os
from pathlib import Path

from treadle.errors import StorePlaceError

MOUNTS = Path("/proc/self/mountinfo")

NETWORK = frozenset(
    {
        *("9p", "afpfs", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs3", "nfs4", "orangefs", "pvfs2", "smb", "smb2", "smb3", "smbfs", "vboxsf", "vmhgfs", "webdav"),
        *("fuse.ceph", "fuse.cephfs", "fuse.davfs", "fuse.davfs2", "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys"),
        *("fuse.juicefs", "fuse.rclone", "fuse.s3fs", "fuse.smbnetfs", "fuse.sshfs", "fuse.vmhgfs-fuse"),
    }
)


def check_place(path: Path, read_only: bool = False) -> None:
    """Raises `StorePlaceError` if no store can be kept there."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise StorePlaceError(str(path), f"there is no directory {parent}", "create it first")
    if path.is_dir():
        raise StorePlaceError(str(path), "it is a directory", "name a file in it, for example treadle.db")
    if path.exists() and not path.is_file():  # opening a pipe would wait for a process at its other end
        raise StorePlaceError(str(path), f"it is {_kind(path)}, not a file", "name a file, for example treadle.db")
    if read_only and not path.exists():
        raise StorePlaceError(str(path), "there is no such file", "deploy a workflow or start an engine there first")
    needed = os.R_OK if read_only else os.R_OK | os.W_OK
    if path.exists() and not os.access(path, needed):
        raise StorePlaceError(str(path), "this user may not write it", "change its permissions or its owner")
    if not read_only and not os.access(parent, os.W_OK | os.X_OK):
        raise StorePlaceError(
            str(path), f"this user may not create files in {parent}", "SQLite keeps a log beside the file: allow it"
        )
    kind = filesystem_of(path)
    if kind in NETWORK:
        raise StorePlaceError(
            str(path),
            f"it is on a network filesystem ({kind}), where SQLite's locks do not hold",
            "use a local disk, or PostgreSQL for several machines",
        )


def _kind(path: Path) -> str:
    kinds = {"a pipe": path.is_fifo, "a socket": path.is_socket, "a device": path.is_char_device}
    return next((kind for kind, is_so in kinds.items() if is_so()), "something else")


def filesystem_of(path: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of filesystem a path is on; None where the system does not say."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    place = os.path.realpath(path)
    best = ("", "")
    for line in table.splitlines():
        # id parent major:minor root MOUNT-POINT options… - TYPE source super-options
        left, separator, right = line.partition(" - ")
        fields = left.split(" ")
        if not separator or len(fields) < 5:
            continue
        point = _unescaped(fields[4])
        if _is_under(place, point) and len(point) >= len(best[0]):  # a later mount hides an earlier one
            best = (point, right.split(" ")[0])
    return best[1] or None


def _is_under(place: str, point: str) -> bool:
    return place == point or place.startswith(point.rstrip("/") + "/")


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text

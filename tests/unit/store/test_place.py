"""Where a database file may lie."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treadle.errors import StorePlaceError
from treadle.store.sqlite import place
from treadle.store.sqlite.place import check_place, filesystem_of

TABLE = r"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:40 / /mnt/share rw shared:5 - nfs4 server:/export rw,vers=4.2
31 30 0:41 / /mnt/share/local rw - tmpfs tmpfs rw
32 22 0:42 / /mnt/with\040space rw - cifs //host/share rw
33 22 0:43 / /mnt/hidden rw - ext4 /dev/vdb rw
34 22 0:44 / /mnt/hidden rw - fuse.sshfs user@host: rw
broken line
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    table = tmp_path / "mountinfo"
    table.write_text(TABLE)
    return table


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/treadle.db", "ext4"),
        ("/mnt/share/treadle.db", "nfs4"),
        ("/mnt/shared/treadle.db", "ext4"),
        ("/mnt/share/local/treadle.db", "tmpfs"),
        ("/mnt/with space/treadle.db", "cifs"),
        ("/mnt/hidden/treadle.db", "fuse.sshfs"),
    ],
)
def test_the_deepest_and_latest_mount_says_what_a_path_is_on(mounts: Path, path: str, kind: str) -> None:
    assert filesystem_of(Path(path), mounts) == kind


def test_nothing_is_refused_where_the_system_does_not_say_what_is_mounted(tmp_path: Path) -> None:
    assert filesystem_of(tmp_path, tmp_path / "nothing") is None


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "9p", "fuse.sshfs"])
def test_a_network_filesystem_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str) -> None:
    monkeypatch.setattr(place, "filesystem_of", lambda _path: kind)
    with pytest.raises(StorePlaceError, match=rf"network filesystem \({kind}\).*PostgreSQL"):
        check_place(tmp_path / "t.db")


def test_a_local_disk_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for kind in ("ext4", "xfs", "btrfs", "overlay", "tmpfs", None):
        monkeypatch.setattr(place, "filesystem_of", lambda _path, kind=kind: kind)
        check_place(tmp_path / "t.db")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(StorePlaceError, match="it is a directory; name a file in it"):
        check_place(tmp_path)


def test_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorePlaceError) as refused:
        check_place(tmp_path / "a" / "t.db")
    assert refused.value.path == str(tmp_path / "a" / "t.db")
    assert (refused.value.problem, refused.value.remedy) == (f"there is no directory {tmp_path}/a", "create it first")


def test_a_file_to_be_read_has_to_exist(tmp_path: Path) -> None:
    with pytest.raises(StorePlaceError, match="no such file"):
        check_place(tmp_path / "t.db", read_only=True)


def test_what_may_not_be_written_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "t.db"
    file.touch()
    # Asked of the system instead of set up: the tests may run as root, who may write everything.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != file or not mode & os.W_OK)
    with pytest.raises(StorePlaceError, match="may not write it"):
        check_place(file)
    check_place(file, read_only=True)
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != tmp_path)
    with pytest.raises(StorePlaceError, match="may not create files"):
        check_place(file)

"""The power goes: every acknowledged commit is there afterwards. And the proof that this test can see a loss."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.torture.cutting import cut_often, record
from tests.torture.power import SECTOR, Disk, Op, Recorder
from treadle.store.sqlite import connect

CUTS = 60


@pytest.mark.slow
def test_an_acknowledged_commit_survives_the_loss_of_power(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 31)
    done = cut_often(record(tmp_path, seed), CUTS, seed, tmp_path)
    assert not done.losses, f"seed {seed}:\n" + "\n".join(done.losses[:10])
    assert done.checked > CUTS and done.syncs > 20, "there was something to lose"


@pytest.mark.slow
def test_planted_a_disk_that_lies_about_syncing_is_found_out(tmp_path: Path) -> None:
    assert cut_often(record(tmp_path, 1, lies=True), CUTS, 1, tmp_path).losses


@pytest.mark.slow
def test_planted_a_log_that_is_not_synced_with_every_commit_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`synchronous=NORMAL`: what most programs run with, and what the store refuses."""
    insist = connect._insist

    def lenient(connection: Any, path: Path, name: str, wanted: str, expected: str | int) -> None:
        if name == "synchronous":
            wanted, expected = "normal", 1
        insist(connection, path, name, wanted, expected)

    monkeypatch.setattr(connect, "_insist", lenient)
    losses = cut_often(record(tmp_path, 1), CUTS, 1, tmp_path).losses
    assert losses
    wrong = [loss for loss in losses if "cannot be" in loss and "and commits follow it" not in loss]
    assert not wrong, "NORMAL forgets, it does not damage; where the log shows what was forgotten it is refused"


def test_the_scratch_files_of_sqlite_are_not_on_the_disk_that_a_cut_leaves(tmp_path: Path) -> None:
    recorder = Recorder()
    try:
        connection = apsw.Connection(str(tmp_path / "x.db"))
        connection.execute("PRAGMA temp_store=file; PRAGMA temp.cache_size=1; CREATE TABLE kept (x)")
        connection.execute("CREATE TEMP TABLE scratch AS SELECT randomblob(100000) UNION ALL SELECT randomblob(100000)")
        connection.close()
    finally:
        recorder.unregister()
    assert {op.file for op in recorder.log} == {"x.db", "x.db-journal"}


def test_a_cut_leaves_what_was_synced_and_any_sectors_of_the_rest(tmp_path: Path) -> None:
    disk, old, new = Disk(), b"a" * 4 * SECTOR, b"b" * 4 * SECTOR
    for op in (Op("write", "x", 0, old), Op("sync", "x"), Op("write", "x", 0, new), Op("write", "y", 0, new)):
        disk.take(op)
    found = set()
    for seed in range(200):
        (tmp_path / "y").unlink(missing_ok=True)
        disk.cut(tmp_path, random.Random(seed))
        content = (tmp_path / "x").read_bytes()
        sectors = [content[at : at + SECTOR] for at in range(0, len(content), SECTOR)]
        assert len(content) == 4 * SECTOR and all(sector in (old[:SECTOR], new[:SECTOR]) for sector in sectors)
        found.add((tuple(sector[:1] for sector in sectors), (tmp_path / "y").exists()))
    assert {exists for _, exists in found} == {True, False}
    assert len({sectors for sectors, _ in found}) > 8, "torn in many ways"


def test_a_file_deleted_without_a_sync_of_its_directory_may_be_back(tmp_path: Path) -> None:
    disk = Disk()
    for op in (Op("write", "j", 0, b"old"), Op("sync", "j"), Op("delete", "j")):
        disk.take(op)
    assert {_exists_after(disk, tmp_path, seed) for seed in range(20)} == {True, False}
    disk.take(Op("sync", "other", directory=True))
    assert {_exists_after(disk, tmp_path, seed) for seed in range(20)} == {False}


def _exists_after(disk: Disk, place: Path, seed: int) -> bool:
    (place / "j").unlink(missing_ok=True)
    disk.cut(place, random.Random(seed))
    return (place / "j").exists()

"""No room on the disk: the engine says so, loses nothing, and goes on by itself when there is room again. A sync that
failed is another matter: nothing is written through that connection any more."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.torture.engine import DATABASE
from tests.torture.processes import ROOT
from tests.torture.tight import TightDisk, fill_and_free
from treadle.errors import EngineStopped, StoreUnavailable
from treadle.language import load_value
from treadle.runtime.coordinate import committer
from treadle.runtime.deliver import core
from treadle.runtime.engine import Engine
from treadle.runtime.surroundings.outage import Outage
from treadle.store.sqlite import SqliteStore


@pytest.fixture
def disk() -> Iterator[TightDisk]:
    made = TightDisk()
    yield made
    made.unregister()


class Felt(Outage):
    """Counts what could not be done."""

    failures = 0
    looks = 0

    def failed(self, what: str, problem: StoreUnavailable) -> None:
        self.failures += 1
        super().failed(what, problem)


@pytest.mark.slow
def test_a_full_disk_stops_the_engine_only_while_it_is_full(
    tmp_path: Path, disk: TightDisk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outage = Felt()  # the process's own may still be busy with another test's store
    monkeypatch.setattr(committer, "OUTAGE", outage)
    seed = random.SystemRandom().randrange(1 << 31)
    chance = random.Random(seed)

    def fill() -> None:
        disk.room = chance.randrange(40_000)  # it ends somewhere in the middle of a transaction

    def free() -> None:
        """Not before the engine has felt it: on a busy machine nobody may have wanted to write so far."""
        if outage.failures or outage.looks > 500:
            disk.room = None
        else:
            outage.looks += 1
            asyncio.get_running_loop().call_later(0.01, free)

    verdict = asyncio.run(fill_and_free(tmp_path, fill, free, seed))
    assert not verdict.findings, f"seed {seed}:\n" + "\n".join(verdict.findings[:10])
    assert disk.refusals and verdict.runs > 20
    assert disk.refusals <= 10 * outage.failures, "a disk without room is not asked again and again"
    assert "the disk is full: make room" in "".join(capsys.readouterr()), "it is reported, with what to do"


def in_a_small_filesystem(place: Path, command: list[str]) -> list[str]:
    """The command in a mount namespace of its own, with four MiB of memory mounted at `small`: the crowd needs two."""
    mount = f"mount -t tmpfs -o size=4m none {shlex.quote(str(place / 'small'))}"
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{mount} && exec {shlex.join(command)}"]


def can_mount(place: Path) -> bool:
    (place / "small").mkdir()
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(in_a_small_filesystem(place, ["true"]), capture_output=True).returncode == 0


@pytest.mark.slow
def test_a_real_filesystem_without_room_loses_nothing(tmp_path: Path) -> None:
    if not can_mount(tmp_path):
        pytest.skip("this machine lets nobody mount a filesystem of their own")
    command = in_a_small_filesystem(tmp_path, [sys.executable, "-m", "tests.torture.tight", str(tmp_path)])
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert "0 findings" in done.stdout and "the disk is full: make room" in done.stderr


def test_after_a_failed_sync_the_connection_writes_nothing_any_more(tmp_path: Path, disk: TightDisk) -> None:
    """The pages that were not synced may be gone, and the next sync would succeed without them."""

    async def play() -> None:
        store = await SqliteStore.open(tmp_path / DATABASE)
        await store.put_document("note", "a", "1", {"n": 1})
        disk.sync_fails = True
        with pytest.raises(StoreUnavailable) as failed:
            await store.put_document("note", "a", "2", {"n": 2})
        assert failed.value.outcome_unknown
        disk.sync_fails = False
        with pytest.raises(StoreUnavailable, match="restart"):
            await store.put_document("note", "a", "3", {"n": 3})
        await store.close()
        again = await SqliteStore.open(tmp_path / DATABASE)
        (note,) = await again.documents("note")
        assert note.version in (1, 2) and await again.integrity() == []
        await again.close()

    asyncio.run(play())
    assert disk.refusals


def test_an_engine_on_a_full_disk_can_be_closed_and_lets_go_of_the_file(
    tmp_path: Path, disk: TightDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "PATIENCE_S", 0.05)

    async def play() -> None:
        async with asyncio.timeout(30):
            with contextlib.suppress(StoreUnavailable):  # it may say so, as long as it ends
                async with Engine(tmp_path / DATABASE) as engine:
                    await engine.deploy(load_value({"workflow": "w", "nodes": {"a": {"action": {"kind": "human"}}}}))
                    disk.room = 0
                    starting = asyncio.create_task(engine.start("w"))
                    while not disk.refusals:
                        await asyncio.wait([starting], timeout=0.01)
            with pytest.raises(EngineStopped):
                await starting
            disk.room = None
            async with Engine(tmp_path / DATABASE) as again:
                await (await again.start("w")).cancel()

    asyncio.run(play())
    assert disk.refusals

"""What is wrong with a file or its log is said before anything is changed, and commits are never dropped in silence."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from treadle.errors import OwnedElsewhere, StorePlaceError, TreadleError
from treadle.runtime.engine import Engine
from treadle.runtime.operate.upkeep import back_up, check_everything, examine
from treadle.store.port import InboxRequest
from treadle.store.sqlite import Ownership, SqliteStore


def everything(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


async def opened(place: Path) -> None:
    async with Engine(place):
        pass


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("number", [0, 77])
def test_another_program_s_file_is_refused_and_stays_as_it_was(tmp_path: Path, mode: str, number: int) -> None:
    place = tmp_path / "theirs.db"
    theirs = apsw.Connection(str(place))
    theirs.pragma("journal_mode", mode)
    theirs.pragma("application_id", number)
    theirs.execute("CREATE TABLE songs (name)")
    theirs.close()
    before = everything(tmp_path)
    for attempt in (opened(place), SqliteStore.open(place), examine(place), check_everything(place)):
        with pytest.raises(StorePlaceError, match="another program's database"):
            asyncio.run(attempt)
    assert everything(tmp_path) == before


def killed_with_a_log(folder: Path, requests: int = 5) -> Path:
    """A file whose last commits are in its log alone, as a killed process leaves it."""
    place, left = folder / "live.db", folder / "left"

    async def fill() -> None:
        store = await SqliteStore.open(place)
        for number in range(requests):
            await store.submit(InboxRequest(f"r{number}", "run", None, number))  # type: ignore[arg-type]
        left.mkdir()
        for name in ("live.db", "live.db-wal"):
            shutil.copyfile(folder / name, left / name)
        await store.close()

    asyncio.run(fill())
    return left / "live.db"


def asked(place: Path) -> list[str]:
    async def ask() -> list[str]:
        store = await SqliteStore.open(place)
        try:
            return [request.id for request in await store.inbox(0)]
        finally:
            await store.close()

    return asyncio.run(ask())


def test_a_log_that_holds_is_taken_up(tmp_path: Path) -> None:
    assert asked(killed_with_a_log(tmp_path)) == ["r0", "r1", "r2", "r3", "r4"]


def frame(number: int) -> int:
    """Where a page of the log begins, counted from 1."""
    return 32 + (number - 1) * (4096 + 24)


@pytest.mark.parametrize("at", [0, 5, 13, 17, 26, frame(2) + 100, frame(3) + 8])
def test_a_damaged_log_is_refused_and_kept(tmp_path: Path, at: int) -> None:
    place = killed_with_a_log(tmp_path)
    log = place.with_name("live.db-wal")
    content = bytearray(log.read_bytes())
    content[at] ^= 4
    log.write_bytes(content)
    before = everything(place.parent)
    for _ in range(2):
        with pytest.raises(StorePlaceError, match=r"log live.db-wal.*damaged.*restore a backup"):
            asked(place)
    after = everything(place.parent)
    assert {name: after[name] for name in before} == before, "the evidence has changed"


def test_a_log_that_a_crash_has_cut_is_taken_up_to_there(tmp_path: Path) -> None:
    place = killed_with_a_log(tmp_path)
    log = place.with_name("live.db-wal")
    log.write_bytes(log.read_bytes()[:-100])
    assert asked(place) == ["r0", "r1", "r2", "r3"]


def test_an_empty_file_beside_a_log_is_refused(tmp_path: Path) -> None:
    place = killed_with_a_log(tmp_path)
    place.write_bytes(b"")
    log = place.with_name("live.db-wal").read_bytes()
    with pytest.raises(StorePlaceError, match="it is empty, and there is a log"):
        asked(place)
    assert place.with_name("live.db-wal").read_bytes() == log


def doctored(place: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "treadle.cli.main", "doctor", "--store", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("cut", [100, 4096])
def test_doctor_does_not_approve_a_file_that_was_cut(tmp_path: Path, cut: int) -> None:
    place = tmp_path / "cut.db"
    asyncio.run(opened(place))
    assert doctored(place)[0] == 0
    place.write_bytes(place.read_bytes()[:-cut])
    code, said = doctored(place)
    assert code == 1, said


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


@pytest.mark.parametrize(("make", "what"), [(a_pipe, "a pipe"), (a_socket, "a socket")])
def test_what_is_not_a_file_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None], what: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket is short
    make(Path("t.db"))
    place = Path("t.db")
    for attempt in (opened(place), check_everything(place), examine(place), back_up(place, tmp_path / "b.db")):
        with pytest.raises(StorePlaceError, match=f"it is {what}, not a file"):
            asyncio.run(asyncio.wait_for(attempt, 10))
    assert [file.name for file in tmp_path.iterdir()] == ["t.db"]


@pytest.mark.parametrize("verb", ["fsck", "doctor", "engine", "runs", "backup"])
def test_a_missing_directory_is_said_in_words(tmp_path: Path, verb: str) -> None:
    place = tmp_path / "nowhere" / "t.db"
    given = {"runs": ["runs", "list"], "backup": ["backup", str(tmp_path / "copy.db")]}.get(verb, [verb])
    command = [sys.executable, "-m", "treadle.cli.main", *given, "--store", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    assert done.returncode in (1, 5) and "Errno" not in said and "Traceback" not in said, said
    assert "nowhere" in said


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_only_its_user_may_read_a_store_and_what_lies_beside_it(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    before = os.umask(0o022)
    try:

        async def lives() -> dict[str, int]:
            async with Engine(place):
                await back_up(place, tmp_path / "copy.db")
                return {file.name: mode_of(file) for file in tmp_path.iterdir()}

        modes = asyncio.run(lives())
    finally:
        os.umask(before)
    assert set(modes) >= {"t.db", "t.db-wal", "t.db.lock", "t.db.key", "copy.db"}
    assert set(modes.values()) == {0o600}, modes


def test_a_lock_that_everybody_could_hold_becomes_as_closed_as_its_store(tmp_path: Path) -> None:
    place, lock = tmp_path / "t.db", tmp_path / "t.db.lock"
    asyncio.run(opened(place))
    lock.chmod(0o644)
    place.chmod(0o660)  # a group shares it
    asyncio.run(opened(place))
    assert (mode_of(place), mode_of(lock)) == (0o660, 0o660)


def test_a_stranger_who_holds_the_lock_is_named(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    asyncio.run(opened(place))
    hold = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    command = [sys.executable, "-c", hold, f"{place}.lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout is not None and stranger.stdout.readline()
        try:
            with pytest.raises(
                OwnedElsewhere, match=rf"process {stranger.pid} \(.* of user .*\), which says nothing about itself"
            ):
                asyncio.run(opened(place))
        finally:
            stranger.communicate(b"\n", timeout=10)


def test_the_key_of_callbacks_is_not_in_the_database_and_survives(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    asyncio.run(opened(place))
    key = place.with_name("t.db.key").read_text()
    assert len(key) == 64 and key.encode() not in place.read_bytes()
    asyncio.run(opened(place))
    assert place.with_name("t.db.key").read_text() == key


def test_a_key_that_was_a_document_moves_into_its_file(tmp_path: Path) -> None:
    place = tmp_path / "t.db"

    async def as_it_was() -> None:
        store = await SqliteStore.open(place)
        await store.put_document("_callback_key", "key", "hash", "ab" * 32)
        await store.close()

    asyncio.run(as_it_was())
    asyncio.run(opened(place))
    assert place.with_name("t.db.key").read_text() == "ab" * 32

    async def documents() -> int:
        store = await SqliteStore.open(place)
        try:
            return len(await store.documents("_callback_key"))
        finally:
            await store.close()

    assert asyncio.run(documents()) == 0


def test_who_may_not_open_the_lock_is_told_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "t.db"
    asyncio.run(opened(place))

    def refuse(*_given: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("treadle.store.sqlite.ownership.os.open", refuse)
    with pytest.raises(TreadleError, match=r"lock t.db.lock cannot be opened: Permission denied; it belongs to"):
        Ownership(place, "me").try_take()

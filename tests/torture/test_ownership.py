"""Who coordinates a file, with real processes: two that want it, one that sleeps on it, one that waits for its end."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.torture.engine import DATABASE
from tests.torture.killing import START_S
from tests.torture.processes import Processes
from treadle.model.states import RunStatus
from treadle.runtime.connecting import connect
from treadle.store.sqlite import Other, Ownership, ownership
from treadle.store.sqlite.ownership import lock_path


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path / "stderr.log")
    yield started
    started.close()
    assert "Traceback" not in (tmp_path / "stderr.log").read_text()


def test_whoever_only_asks_is_not_taken_for_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the torture: a client that lost the processor while it asked kept an engine from starting."""
    place = tmp_path / DATABASE
    asker = os.open(lock_path(place), os.O_RDWR | os.O_CREAT)
    fcntl.flock(asker, fcntl.LOCK_SH)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 20:
            os.close(asker)

    monkeypatch.setattr(ownership.time, "sleep", pause)  # type: ignore[attr-defined]
    engine, late = Ownership(place, owner="engine"), Ownership(place, owner="late")
    assert engine.try_take() is None and len(pauses) == 20
    other = late.try_take()
    assert other is not None and other.owner == "engine" and len(pauses) == 20, "an owner is believed at once"
    engine.release()


@pytest.mark.parametrize("old", ["", '{"pid": 1073741824, "owner": "gone"}'])
def test_an_owner_that_has_not_written_its_note_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    place = tmp_path / DATABASE
    lock_path(place).write_text(old.replace("{", f'{{"host": "{socket.gethostname()}", '))
    owner, pauses = os.open(lock_path(place), os.O_RDWR), list[float]()
    fcntl.flock(owner, fcntl.LOCK_EX)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 20:
            note = Other(os.getpid(), socket.gethostname(), "new")
            lock_path(place).write_bytes(msgspec.json.encode(note))

    monkeypatch.setattr(ownership.time, "sleep", pause)  # type: ignore[attr-defined]
    other = Ownership(place, owner="late").try_take()
    assert other is not None and other.owner == "new"
    os.close(owner)


@pytest.mark.slow
def test_of_two_engines_started_together_one_owns_and_the_other_is_told_who(
    tmp_path: Path, processes: Processes
) -> None:
    both = {processes.start("engine", tmp_path), processes.start("engine", tmp_path)}
    owner = processes.wait("ready", START_S)["pid"]
    refused = processes.wait("owned", START_S)
    assert {owner, refused["pid"]} == both
    assert f"(pid {owner})" in refused["by"]
    assert processes.wait("gone", START_S)["code"] == 3
    assert processes.alive == {owner}


@pytest.mark.slow
def test_an_owner_that_is_stopped_keeps_its_file_and_goes_on_when_it_is_continued(
    tmp_path: Path, processes: Processes
) -> None:
    """A sleeping process still holds its lock, so there is never a second writer: nobody takes over, requests wait."""
    owner = processes.start("engine", tmp_path)
    processes.wait_ready(owner, START_S)

    async def play() -> None:
        async with connect(tmp_path / DATABASE) as client:
            processes.signal(owner, signal.SIGSTOP)
            starting = asyncio.create_task(client.start("chain", {"n": 1}, key="once"))
            other = processes.start("engine", tmp_path)
            refused = await asyncio.to_thread(processes.wait, "owned", START_S)
            assert refused["pid"] == other and f"(pid {owner})" in refused["by"]
            assert not starting.done()
            processes.signal(owner, signal.SIGCONT)
            run = await asyncio.wait_for(starting, START_S)
            ended = await run.wait(START_S)
            assert ended.status is RunStatus.COMPLETED and ended.output == {"n": 1_112}

    asyncio.run(play())


@pytest.mark.slow
def test_a_standby_takes_over_what_a_killed_owner_was_doing(tmp_path: Path, processes: Processes) -> None:
    owner = processes.start("engine", tmp_path)
    processes.wait_ready(owner, START_S)
    standby = processes.start("engine", tmp_path, "--wait")

    async def play() -> None:
        async with connect(tmp_path / DATABASE) as client:
            run = await client.start("nap", {"n": 1})
            await asyncio.to_thread(processes.kill, owner)
            await asyncio.to_thread(processes.wait_ready, standby, START_S)
            assert (await run.wait(START_S)).output == {"n": 4}

    bell = Ownership.wake_of(tmp_path / DATABASE)
    assert bell is not None
    asyncio.run(play())
    assert not Path(bell).parent.exists(), "the next owner clears away where the killed one listened"


@pytest.mark.slow
def test_an_engine_that_is_asked_to_stop_leaves_nothing_behind_that_a_kill_would_not(
    tmp_path: Path, processes: Processes
) -> None:
    owner = processes.start("engine", tmp_path)
    processes.wait_ready(owner, START_S)
    processes.signal(owner, signal.SIGTERM)
    assert processes.wait("gone", START_S, owner)["code"] == 0
    following = processes.start("engine", tmp_path)
    processes.wait_ready(following, START_S)

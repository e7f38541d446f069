"""Who coordinates a file: one at a time, and the next one at once when it is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from treadle.store.sqlite import Ownership, ownership
from treadle.store.sqlite.ownership import lock_path

HOLDER = """
import sys
from treadle.store.sqlite import Ownership
held = Ownership(sys.argv[1], owner="first", wake="/tmp/first.sock")
assert held.try_take() is None
print("held", flush=True)
sys.stdin.read()
"""

PARENT = """
import os, sys
from treadle.store.sqlite import Ownership
held = Ownership(sys.argv[1], owner="parent")
assert held.try_take() is None
child = os.fork()
if child == 0:
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
os._exit(0)
"""


def _holder(place: Path, script: str = HOLDER) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_one_of_two_contenders_gets_the_file(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    one, two = Ownership(place, owner="one", wake="w1"), Ownership(place, owner="two")
    assert Ownership.who(place) is None
    assert one.try_take() is None and one.held
    assert one.try_take() is None, "it has it already"
    other = two.try_take()
    assert other is not None and not two.held
    assert (other.pid, other.owner, other.wake) == (os.getpid(), "one", "w1")
    assert other.description.startswith(f"engine one (pid {os.getpid()}) since ")
    assert Ownership.wake_of(place) == "w1"
    one.release()
    one.release()
    assert Ownership.who(place) is None
    assert two.try_take() is None
    two.release()


def test_the_lock_file_stays(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    held = Ownership(place, owner="one")
    held.try_take()
    inode = lock_path(place).stat().st_ino
    held.release()
    assert lock_path(place).stat().st_ino == inode


def test_every_name_of_a_file_has_the_same_lock(tmp_path: Path) -> None:
    place, alias = tmp_path / "t.db", tmp_path / "alias.db"
    place.touch()
    alias.symlink_to(place)
    held = Ownership(alias, owner="one")
    held.try_take()
    assert Ownership(place, owner="two").try_take() is not None
    held.release()


def test_a_note_nobody_can_read_is_still_an_owner(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    held = Ownership(place, owner="one")
    held.try_take()
    lock_path(place).write_text("{half")
    other = Ownership(place, owner="two").try_take()
    assert other is not None and "which says nothing about itself" in other.description
    assert Ownership.wake_of(place) is None
    held.release()


class TornList(type(Path())):  # type: ignore[misc]
    """The system's list of locks, of which the first reading has lost every line."""

    readings = 0

    def read_text(self, *words: str) -> str:
        TornList.readings += 1
        text: str = super().read_text(*words)
        return text if TornList.readings > 1 else ""


def test_an_owner_that_one_reading_of_the_list_of_locks_misses_is_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "LOCKS", TornList("/proc/locks"))
    place = tmp_path / "t.db"
    held = Ownership(place, owner="one")
    held.try_take()
    lock_path(place).write_text("{half")
    other = Ownership(place, owner="two").try_take()
    assert other is not None and other.pid == os.getpid() and TornList.readings > 1
    held.release()


@pytest.mark.slow
def test_a_waiting_engine_takes_over_when_the_owner_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    owner = _holder(place)
    assert _line(owner) == "held"
    heir = Ownership(place, owner="heir")
    other = heir.try_take()
    assert other is not None and (other.owner, other.pid) == ("first", owner.pid)
    assert Ownership.wake_of(place) == "/tmp/first.sock"

    async def inherit() -> None:
        waiting = asyncio.ensure_future(heir.wait_gone())
        asyncio.get_running_loop().call_soon(owner.send_signal, signal.SIGKILL)  # once it waits
        await asyncio.wait_for(waiting, 10)

    asyncio.run(inherit())
    assert heir.held
    found = Ownership.who(place)
    assert found is not None and found.owner == "heir"
    heir.release()
    owner.communicate()


def test_whoever_stops_waiting_does_not_get_the_lock(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    one, two, three = (Ownership(place, owner=name) for name in ("one", "two", "three"))
    one.try_take()

    async def impatient() -> None:
        given_up = asyncio.ensure_future(two.wait_gone())
        asyncio.get_running_loop().call_soon(given_up.cancel)  # once it waits
        await asyncio.wait([given_up])
        one.release()
        await asyncio.wait_for(three.wait_gone(), 10)

    asyncio.run(impatient())
    assert three.held and not two.held
    three.release()


@pytest.mark.slow
def test_a_forked_child_does_not_keep_the_lock_of_its_dead_parent(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    parent = _holder(place, PARENT)
    child = int(_line(parent))
    parent.wait()
    os.kill(child, 0)  # alive
    heir = Ownership(place, owner="heir")
    asyncio.run(asyncio.wait_for(heir.wait_gone(), 20))  # the child may still have to let go of its copy
    assert heir.held
    _end(parent)

"""A process is called dead only when the operating system says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.runtime.cluster import predecessor
from treadle.runtime.cluster.predecessor import is_dead, this_process

SAYS = "from treadle.runtime.cluster.predecessor import this_process; print(this_process(), flush=True); input()"


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen([sys.executable, "-c", SAYS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield child
    child.kill()
    child.communicate()


def said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def test_a_living_process_is_not_dead(other: subprocess.Popen[str]) -> None:
    process = said(other)
    assert process.split(" ")[:3] == this_process().split(" ")[:3]
    assert not is_dead(process) and not is_dead(this_process())


def test_a_killed_one_is_dead_before_and_after_its_parent_has_heard_of_it(other: subprocess.Popen[str]) -> None:
    process = said(other)
    other.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is still in the table of processes
    assert is_dead(process)
    other.wait()
    assert is_dead(process)


def test_another_process_under_the_same_number_is_another(other: subprocess.Popen[str]) -> None:
    *which, start = said(other).split(" ")
    assert is_dead(" ".join([*which, str(int(start) - 1)]))


@pytest.mark.parametrize("part", [0, 1, 2])
def test_of_another_machine_boot_or_namespace_nothing_is_known(other: subprocess.Popen[str], part: int) -> None:
    fields = said(other).split(" ")
    other.kill()
    other.wait()
    assert is_dead(" ".join(fields))
    fields[part] += "x"
    assert not is_dead(" ".join(fields))


@pytest.mark.parametrize("text", ["", "x", "a b c d e", "a b c 1 2 3"])
def test_what_nobody_can_read_proves_nothing(text: str) -> None:
    assert not is_dead(text)


def test_without_proc_a_process_says_nothing_of_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = this_process()
    monkeypatch.setattr(predecessor, "PROC", tmp_path)
    assert this_process() == "" and not is_dead(mine)

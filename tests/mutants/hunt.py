"""Plants each mutant in a copy of src/ and sees whether the suite notices. The working tree is never touched.

Owns copies, processes and the report. A mutant that makes the suite hang is caught, too: by the clock.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Literal, NamedTuple

from tests.mutants.bug import DoesNotFit, Mutant, Room
from tests.mutants.random_changes import Change

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
SECONDS_MAX: dict[Room, int] = {"kernel": 180, "runtime": 240, "store": 240}
"""Of the processor, several times what a suite takes: what uses more goes round in circles. Not of the clock on the
wall: on a busy machine that would take slow suites for mutants that were caught."""
WAITING = 10
"""So many times that long may pass on the wall: what takes longer waits for something that never comes."""


class Finding(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant | Change
    verdict: Literal["caught", "survived", "stale"]
    by: str
    seconds: float


def place_of(sources: Path, bug: Mutant | Change) -> Path:
    """The file it changes."""
    return sources / "treadle" / bug.room / bug.file


def check_fits(mutants: Iterable[Mutant]) -> list[str]:
    """Which patches no longer fit the working tree."""
    problems = []
    for mutant in mutants:
        try:
            mutant.planted(place_of(SOURCES, mutant).read_text("utf-8"))
        except DoesNotFit as problem:
            problems.append(f"{mutant.name}: {problem}")
    return problems


def suite(sources: Path, room: Room, arguments: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """The fast suite of a room against these sources."""
    settings = {
        **os.environ,
        "PYTHONPATH": f"{sources}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TREADLE_PROPERTY_SCALE": "0.3",
        "TREADLE_PROPERTY_QUICK": "1",
    }
    limit = SECONDS_MAX[room]
    command = [sys.executable, "-m", "tests.mutants.suite", room, "--seconds", str(limit), *arguments]
    wait_s = WAITING * limit
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=wait_s)
    if done.returncode == -signal.SIGXCPU:
        raise subprocess.TimeoutExpired(command, limit)
    return done


def failing_already(sources: Path, room: Room) -> list[str]:
    """What fails without any mutant."""
    done = suite(sources, room, ["--all"])
    return done.stdout.splitlines() + ([done.stderr[-500:]] if done.returncode not in (0, 1) else [])


@contextmanager
def copied(sources: Path) -> Iterator[Path]:
    """A copy of these sources, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(sources, copy, ignore=shutil.ignore_patterns("__pycache__"))
        yield copy


def first_changed(before: str, after: str) -> int:
    """The number of the first line that differs."""
    lines = zip_longest(before.splitlines(), after.splitlines())
    return next(number for number, (old, new) in enumerate(lines, 1) if old != new)


def hunt_one(mutant: Mutant | Change, original: Path, ignored: list[str]) -> Finding:
    """Plants one mutant in a copy of its own."""
    began = time.monotonic()
    with copied(original) as sources:
        file = place_of(sources, mutant)
        try:
            before = file.read_text("utf-8")
            after = mutant.planted(before)
            file.write_text(after, "utf-8")
            where = ["--about", mutant.file, "--at", str(first_changed(before, after))]
            done = suite(sources, mutant.room, [*where, *ignored])
        except DoesNotFit as problem:
            return Finding(mutant, "stale", str(problem), time.monotonic() - began)
        except subprocess.TimeoutExpired:
            limit = SECONDS_MAX[mutant.room]
            return Finding(mutant, "caught", f"the clock: no end after {limit} s", time.monotonic() - began)
    by = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr.strip()[-200:]
    return Finding(mutant, "caught" if done.returncode else "survived", by, time.monotonic() - began)


def hunt(
    mutants: Sequence[Mutant | Change], original: Path, ignored: dict[Room, list[str]], jobs: int
) -> Iterator[Finding]:
    """All of them, as they are done."""
    with ThreadPoolExecutor(jobs) as pool:
        begun = [pool.submit(hunt_one, mutant, original, ignored[mutant.room]) for mutant in mutants]
        for future in as_completed(begun):
            yield future.result()

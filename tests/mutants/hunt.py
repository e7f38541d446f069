"""Plants each mutant in a copy of src/ and sees whether the suite notices. The working tree is never touched.

Owns copies, processes and the report. A mutant that makes the suite hang is caught, too: by the clock.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from tests.mutants.catalogue import Mutant

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src"
KERNEL = Path("treadle") / "kernel"
SECONDS_MAX = 120
"""Four times what the whole suite takes on a busy machine: what runs longer goes round in circles."""


class Finding(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    verdict: Literal["caught", "survived", "stale"]
    by: str
    seconds: float


class DoesNotFit(Exception):
    """A patch whose old text is not there exactly once: the source has moved on."""


def planted(mutant: Mutant, text: str) -> str:
    """The file's text with the mistake in it."""
    found = text.count(mutant.old)
    if found != 1:
        raise DoesNotFit(f"{mutant.file} has its old text {found} times, not once: {mutant.old.strip()[:80]!r}")
    return text.replace(mutant.old, mutant.new)


def check_fits(mutants: Iterable[Mutant]) -> list[str]:
    """Which patches no longer fit the working tree."""
    problems = []
    for mutant in mutants:
        try:
            planted(mutant, (SOURCES / KERNEL / mutant.file).read_text("utf-8"))
        except DoesNotFit as problem:
            problems.append(f"{mutant.name}: {problem}")
    return problems


def suite(sources: Path, arguments: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """The fast suite against these sources."""
    settings = {
        **os.environ,
        "PYTHONPATH": f"{sources}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TREADLE_PROPERTY_SCALE": "0.3",
        "TREADLE_PROPERTY_QUICK": "1",
    }
    command = [sys.executable, "-m", "tests.mutants.suite", *arguments]
    return subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=SECONDS_MAX)


def failing_already(sources: Path) -> list[str]:
    """What fails without any mutant."""
    done = suite(sources, ["--all"])
    return done.stdout.splitlines() + ([done.stderr[-500:]] if done.returncode not in (0, 1) else [])


@contextmanager
def copied(sources: Path) -> Iterator[Path]:
    """A copy of these sources, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(sources, copy, ignore=shutil.ignore_patterns("__pycache__"))
        yield copy


def hunt_one(mutant: Mutant, original: Path, ignored: list[str]) -> Finding:
    """Plants one mutant in a copy of its own."""
    began = time.monotonic()
    with copied(original) as sources:
        file = sources / KERNEL / mutant.file
        try:
            file.write_text(planted(mutant, file.read_text("utf-8")), "utf-8")
            done = suite(sources, ignored)
        except DoesNotFit as problem:
            return Finding(mutant, "stale", str(problem), time.monotonic() - began)
        except subprocess.TimeoutExpired:
            return Finding(mutant, "caught", f"the clock: nothing after {SECONDS_MAX} s", time.monotonic() - began)
    by = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr.strip()[-200:]
    return Finding(mutant, "caught" if done.returncode else "survived", by, time.monotonic() - began)


def hunt(mutants: list[Mutant], original: Path, ignored: list[str], jobs: int) -> Iterator[Finding]:
    """All of them, as they are done."""
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(hunt_one, mutant, original, ignored) for mutant in mutants]):
            yield future.result()

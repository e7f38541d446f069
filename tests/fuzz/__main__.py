"""`./dev fuzz`: random requests against a real service for as long as it is told, from a fresh seed.

Four parts share the time: requests that break the description, requests that keep to it (both by Schemathesis), odd
inputs by Hypothesis, and the readers by Atheris where it is installed. The seed is printed first; with it, the first
three draw the same again.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.described import ROOT, Finding, broken_requests, led_requests
from tests.fuzz.world import Attacked
from tests.postgres import new_database

EXAMPLES_A_MINUTE = 150
"""Odd inputs of each kind that a minute of the whole allows: eight kinds, measured at some 20 requests a second."""
READERS = ("json", "cursor", "form", "signature", "definition", "page")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    given = parser.parse_args()
    say(f"seed {given.seed}")
    try:
        described(given.store, given.seed, given.minutes)
    except Finding as finding:
        say(f"{finding}\n✗ again: ./dev fuzz --store {given.store} --minutes {given.minutes} --seed {given.seed}")
        return 1
    return odd_inputs(given.seed, given.minutes) or readers(given.minutes)


def described(store: str, seed: int, minutes: float) -> None:
    """The service against its own description. Raises Finding."""
    with (
        tempfile.TemporaryDirectory() as folder,
        new_database() if store == "postgres" else nullcontext() as dsn,
        Attacked(dsn or str(Path(folder) / "treadle.db"), Path(folder)) as service,
    ):
        say(broken_requests(service, seed))
        say(led_requests(service, seed, examples=1_000, seconds=max(10, int(minutes * 60 * 0.4))))


def odd_inputs(seed: int, minutes: float) -> int:
    examples = str(max(50, int(EXAMPLES_A_MINUTE * minutes)))
    command = [sys.executable, "-m", "pytest", "-q", f"--hypothesis-seed={seed}", "tests/server/test_odd_inputs.py"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "TREADLE_FUZZ_EXAMPLES": examples}).returncode


def readers(minutes: float) -> int:
    """Atheris on every reader in turn; the first that fails ends it."""
    if find_spec("atheris") is None:
        say("atheris is not installed: the readers were not fed by it (uv pip install atheris)")
        return 0
    seconds = max(5, int(minutes * 60 * 0.2 / len(READERS)))
    for reader in READERS:
        command = [
            sys.executable,
            "-m",
            "tests.fuzz.coverage_guided",
            reader,
            f"-max_total_time={seconds}",
            "-timeout=10",
        ]
        with tempfile.TemporaryDirectory() as corpus:
            place = f"-artifact_prefix={tempfile.gettempdir()}/treadle-fuzz-{reader}-"
            code = subprocess.run([*command, place, corpus], cwd=ROOT).returncode
        if code:
            return code
    return 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

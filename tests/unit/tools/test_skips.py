"""Skipped tests are told with their reasons, and a reason nobody knows fails the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.skips import EXPECTED, unexpected

ROOT = Path(__file__).parents[3]


def run(tmp_path: Path, reason: str, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_it.py").write_text(
        f"import pytest\n\ndef test_a():\n    pytest.skip({reason!r})\n\ndef test_b():\n    assert True\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "--rootdir", str(tmp_path), str(tmp_path)]
    return subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [(), ("-n", "1")])
def test_a_reason_nobody_knows_fails_the_run_and_is_told(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run(tmp_path, "there is no PostgreSQL for tests (useradd)", *options)
    assert done.returncode == 1, done.stdout
    assert "✗    1  there is no PostgreSQL for tests (useradd)" in done.stdout
    assert "not on the list in tests/skips.py" in done.stdout


def test_a_known_reason_is_told_and_passes(tmp_path: Path) -> None:
    done = run(tmp_path, "this machine has no PostgreSQL of its own")
    assert done.returncode == 0, done.stdout
    assert "1 skipped" in done.stdout and "     1  this machine has no PostgreSQL of its own" in done.stdout


def test_a_reason_is_known_by_its_beginning() -> None:
    assert unexpected(["no sandbox here: bubblewrap is not installed", "pgbouncer is not installed (Debian: …)"]) == []
    assert unexpected(["I say: no sandbox here", "because", "because"]) == ["I say: no sandbox here", "because"]
    assert all(EXPECTED.values()), "each says why it is all right"

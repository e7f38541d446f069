"""Settings that would only do harm are refused, wherever they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from treadle import EngineSettings


@pytest.mark.parametrize("name", ["lease_ms", "claim_ms"])
def test_a_lease_too_short_to_be_kept_is_refused(name: str) -> None:
    for value in (0, 100, 999):
        with pytest.raises(ValueError, match=f"{name} must be at least 1000"):
            EngineSettings(**{name: value})  # type: ignore[arg-type]
    assert getattr(EngineSettings(**{name: 1_000}), name) == 1_000  # type: ignore[arg-type]


def test_the_command_line_says_so_too(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.write("treadle.toml", "[engine]\nlease_ms = 0\n")
    said = shell("engine", code=3).stderr
    assert "lease_ms must be at least 1000" in said
    assert "treadle config --origin" in said

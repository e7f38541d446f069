"""The PostgreSQL for tests is made as root also where the PATH does not lead to root's programs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from treadle.testing.world import postgres


@pytest.mark.parametrize("path", ["/usr/bin:/bin", None])
def test_root_s_programs_are_found_in_their_places_and_the_path_is_as_before(
    path: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "treadle-useradd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(postgres, "PLACES_OF_ROOT", (str(tmp_path),))
    monkeypatch.delenv("PATH")
    if path is not None:
        monkeypatch.setenv("PATH", path)
    assert shutil.which(program.name) is None
    with postgres.programs_of_root():
        assert shutil.which(program.name) == str(program)
        assert shutil.which("sh") is not None, "what the PATH leads to is still found"
    assert shutil.which(program.name) is None
    assert os.environ.get("PATH") == path

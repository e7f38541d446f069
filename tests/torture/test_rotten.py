"""Damaged copies of a file are refused, reported or harmless; and the campaign can see one that is none of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime import rotting
from tests.torture.rotten import rot_often


@pytest.mark.slow
def test_no_damaged_copy_passes_for_a_sound_one(tmp_path: Path) -> None:
    done = rot_often(tmp_path / "rot", 40, 10, lambda _text: None)
    assert not done.unseen, "\n".join(done.unseen)
    assert done.refused > 15


@pytest.mark.slow
def test_planted_an_fsck_that_finds_nothing_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotting, "is_noticed", lambda _place: False)
    assert rot_often(tmp_path / "rot", 12, 10, lambda _text: None).unseen

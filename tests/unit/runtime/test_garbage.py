"""The collector's settings are changed once, and only if they are Python's own."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from treadle.cli.frame.opening import engine_settings
from treadle.project.settings import Configuration
from treadle.runtime import garbage
from treadle.runtime.engine import EngineSettings


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    frozen: list[str] = []
    before = gc.get_threshold()
    monkeypatch.setattr(garbage, "_spared", False)
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("frozen"))
    yield frozen
    gc.set_threshold(*before)


def test_imports_are_set_aside_once_however_many_engines_open(as_it_was: list[str]) -> None:
    gc.set_threshold(700, 10, 10)
    garbage.spare_collector()
    garbage.spare_collector()
    assert as_it_was == ["frozen"]
    assert gc.get_threshold() == (garbage.YOUNG, 10, 10)


def test_the_command_line_spares_the_collector_and_a_library_asks_first(tmp_path: Path) -> None:
    assert engine_settings(Configuration({}, {}, tmp_path)).spare_collector
    assert not EngineSettings().spare_collector


def test_thresholds_somebody_has_chosen_stay() -> None:
    gc.set_threshold(123, 4, 5)
    garbage.spare_collector()
    assert gc.get_threshold() == (123, 4, 5)

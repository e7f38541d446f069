"""A bar is shown to somebody who watches, once it has taken long; whoever does not watch sees nothing."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.runtime.executing import turns
from treadle.cli.screen import progress
from treadle.cli.upkeep.db import _staged

NAMES = ["one", "two", "three"]


@pytest.mark.parametrize(
    ("terminal", "patience", "quiet", "shown"),
    [(True, -1.0, False, True), (True, 60.0, False, False), (True, -1.0, True, False), (False, -1.0, False, False)],
)
def test_every_item_comes_once_and_in_order_with_or_without_a_bar(
    terminal: bool,
    patience: float,
    quiet: bool,
    shown: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", patience)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert list(progress.patiently(NAMES, str, quiet=quiet)) == NAMES
    assert bool(capsys.readouterr().err) == shown


def test_a_move_names_the_part_it_is_at(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", -1.0)
    monkeypatch.setattr(progress, "EVERY_S", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.Counter("") as counter:
        told = _staged(counter)
        told("runs", 1_744, 2_000)
        told("comparing history", 12, 0)
    said = capsys.readouterr().err
    assert "copying runs: 1,744 of 2,000 (87 %)" in said
    assert "comparing history: 12" in said


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_who_waits_long_is_told_once_and_who_does_not_is_not(
    patience: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PATIENCE_S", patience)

    async def wait() -> None:
        with progress.no_answer_yet():
            await turns(5)

    asyncio.run(wait())
    assert capsys.readouterr().err.count("no answer yet") == (1 if patience == 0 else 0)

"""A bar is shown to somebody who watches, once it has taken long; whoever does not watch sees nothing."""

from __future__ import annotations

import sys

import pytest

from treadle.cli import progress

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

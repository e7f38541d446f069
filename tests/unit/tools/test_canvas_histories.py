"""web/tests/golden holds what the kernel's fold gives today: the canvas's own fold is compared with it."""

from __future__ import annotations

import pytest

from tools import canvas_histories
from treadle.model.event_rows import _TYPES

NEVER_IN_A_SCENARIO = {"custom"}
"""A custom event has a type of its own for each name."""


@pytest.mark.parametrize("name", sorted(canvas_histories.chosen()))
def test_the_golden_histories_are_up_to_date(name: str) -> None:
    found = (canvas_histories.GOLDEN / f"{name}.json").read_text("utf-8")
    titles = canvas_histories.chosen()[name]
    assert canvas_histories.written(name, titles) == found, "run: .venv/bin/python -m tools.canvas_histories"


def test_the_golden_histories_have_every_type_of_event_between_them() -> None:
    texts = [path.read_text("utf-8") for path in canvas_histories.GOLDEN.glob("*.json")]
    missing = {kind for kind in _TYPES if not any(f'"type":"{kind}"' in text for text in texts)}
    assert missing == NEVER_IN_A_SCENARIO


def test_the_golden_histories_stay_small() -> None:
    assert sum(path.stat().st_size for path in canvas_histories.GOLDEN.glob("*.json")) < 2_000_000

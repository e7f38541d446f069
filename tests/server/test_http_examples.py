"""The answers in the documentation were given by a service, and still are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.client import Served
from tools.http_examples import Playing, asking

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
PAGES = sorted(page.name for page in REFERENCE.glob("http*.md") if "```console\n$ t" in page.read_text("utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_every_answer_of_a_page_was_made_by_playing_it(page: str, own_service: Served) -> None:
    text = (REFERENCE / page).read_text("utf-8")
    with own_service as served:
        played = Playing(asking(served)).page(text)
    assert played == text, f"play it: .venv/bin/python -m tools.http_examples docs/reference/{page}"

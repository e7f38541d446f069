"""docs/lifecycle.md is what tools/lifecycle_docs.py draws from the tables of today."""

from __future__ import annotations

from tools import lifecycle_docs
from treadle.kernel.lifecycle import TABLES


def test_the_page_is_up_to_date() -> None:
    assert lifecycle_docs.PAGE.read_text("utf-8") == lifecycle_docs.page(), "run: ./dev python tools/lifecycle_docs.py"


def test_the_page_has_every_row_and_every_machine() -> None:
    page = lifecycle_docs.page()
    for rows in TABLES.values():
        for (state, cause), after in rows.items():
            assert f"| {state} | `{cause}` | {after} |" in page
    assert page.count("stateDiagram-v2") == len(TABLES)

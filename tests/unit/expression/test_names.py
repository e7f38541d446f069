"""Names that people compare by eye hold nothing that cannot be seen."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.expression.names import escaped, name_problem


@pytest.mark.parametrize("name", ["a", "step_1", "größe", "a b", "日本", "می‌خواهم", "👩‍💻", 'q"uote', ""])
def test_what_people_write_is_a_name(name: str) -> None:
    assert name_problem(name) is None
    assert escaped(name) == name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("pay\u202ement", "`pay\\u202ement` holds U+202E (RIGHT-TO-LEFT OVERRIDE)"),
        ("a\u2066b", "U+2066"),
        ("a\u200bb", "U+200B (ZERO WIDTH SPACE)"),
        ("a\u00a0b", "U+00A0 (NO-BREAK SPACE)"),
        ("\ufeffa", "U+FEFF"),
        ("a\nb", "`a\\u000ab` holds U+000A (a control character)"),
        ("a\x7f", "U+007F"),
        ("a\U000e0041", "\\U000e0041"),
    ],
)
def test_what_cannot_be_seen_is_named_by_its_number(name: str, says: str) -> None:
    assert says in (name_problem(name) or "")


@given(st.text())
def test_what_is_shown_can_be_seen(text: str) -> None:
    for letter in escaped(text):
        assert letter in " \u200c\u200d" or unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}

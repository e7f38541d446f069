"""JSON equality as expectations mean it."""

from __future__ import annotations

from typing import Any

import pytest

from treadle.testing.scenario.comparing import SHOWN_MAX, matches, shown


@pytest.mark.parametrize(
    ("expected", "actual", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (False, 0, False),
        ("1", 1, False),
        (None, None, True),
        ({"a": None}, {}, True),
        ({}, {"a": None}, True),
        ({}, {"a": 1}, False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 2], False),
        ({"a": [{"b": True}]}, {"a": [{"b": True}]}, True),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, False),
        ({"contains": {"a": 1}}, {"a": 1, "b": 2}, True),
        ({"contains": {"a": 1}}, {"b": 2}, False),
        ({"contains": {"a": {"b": 1}}}, {"a": {"b": 1, "c": 2}}, False),
        ([{"contains": {"a": 1}}], [{"a": 1, "b": 2}], True),
        ({"contains": {"a": 1}}, [1], False),
        ({"contains": 3}, {"contains": 3}, True),
        ({"a": 1}, None, False),
    ],
)
def test_values_match(expected: Any, actual: Any, equal: bool) -> None:
    assert matches(expected, actual) is equal


def test_a_long_value_is_cut_in_messages() -> None:
    assert len(shown("x" * 10_000)) == SHOWN_MAX + 1

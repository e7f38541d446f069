"""Equality of JSON values in expectations (docs/reference/scenarios.md, Expectations).

An absent key compares as null, numbers compare by value, true is not 1, and `{contains: {...}}` anywhere
compares only the keys it gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

Json = Any

SHOWN_MAX = 400
"""Characters of a value in a message: enough to see the difference, short enough to stay on the screen."""


class Difference(NamedTuple):
    """One expectation that does not hold."""

    what: str
    expected: str
    actual: str

    def within(self, name: str) -> Difference:
        return self._replace(what=f"{name}.{self.what}")

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, was {self.actual}"


Differences = Iterator[Difference]


def matches(expected: Json, actual: Json) -> bool:
    """Whether a value is what was expected."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and _matches_map(expected, actual)
    if isinstance(expected, list):
        return (
            isinstance(actual, list)
            and len(expected) == len(actual)
            and all(matches(left, right) for left, right in zip(expected, actual, strict=True))
        )
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    return bool(expected == actual)


def _matches_map(expected: dict[str, Json], actual: dict[str, Json]) -> bool:
    partial = partial_keys(expected)
    if partial is not None:
        return all(matches(value, actual.get(key)) for key, value in partial.items())
    keys = expected.keys() | actual.keys()
    return all(matches(expected.get(key), actual.get(key)) for key in keys)


def partial_keys(expected: Json) -> dict[str, Json] | None:
    """The keys of a `{contains: {...}}`; None for anything else."""
    if isinstance(expected, dict) and expected.keys() == {"contains"} and isinstance(expected["contains"], dict):
        return expected["contains"]
    return None


def shown(value: Json) -> str:
    """A value in a message."""
    text = msgspec.json.encode(value, order="deterministic").decode()
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"

"""Values of any origin become plain JSON, or are refused with their place."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import uuid
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.actions.plain import NotPlain, plain


@dataclasses.dataclass
class Point:
    x: int
    tags: set[str]


class Colour(enum.Enum):
    RED = "red"


class Record(msgspec.Struct):
    at: datetime.date
    ratio: float = 0.5


class ModelLike:
    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"mode": mode, "n": (1, 2)}


class Name(str):
    __slots__ = ()


class Pair(NamedTuple):
    a: int
    b: Any


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (None, None),
        (True, True),
        ("grün", "grün"),
        ((1, [2.5, ("x",)]), [1, [2.5, ["x"]]]),
        ({1: "one", "a": {"b": ()}}, {"1": "one", "a": {"b": []}}),
        (Point(1, {"t"}), {"x": 1, "tags": ["t"]}),
        (Record(datetime.date(2024, 2, 29)), {"at": "2024-02-29", "ratio": 0.5}),
        ([Colour.RED], ["red"]),
        (ModelLike(), {"mode": "json", "n": [1, 2]}),
        (decimal.Decimal("1.50"), "1.50"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"\x00\x01", "AAE="),
        (Name("ann"), "ann"),
        ({"who": [Name("ann")]}, {"who": ["ann"]}),
        (Pair(1, Name("x")), [1, "x"]),
        (collections.Counter("aab"), {"a": 2, "b": 1}),
        ({"p": Point(1, set())}, {"p": {"x": 1, "tags": []}}),
        (2**64 - 1, 2**64 - 1),
    ],
)
def test_a_value_becomes_plain_json(value: Any, json: Any) -> None:
    result = plain(value)
    assert result == json
    assert type(result) is type(json)


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        ({"a": [1, float("nan")]}, "$.a[1]", "nan"),
        (float("-inf"), "$", "-inf"),
        ([2**64], "$[0]", "64 bits"),
        (-(2**63) - 1, "$", "64 bits"),
        ({"t": "\ud800"}, "$.t", "surrogate"),
        ({"\ud800": 1}, "$", "surrogate"),
        ({(1, 2): 3}, "$", "keys of a JSON object are text"),
        ({"x": object()}, "$.x", "object"),
        ([lambda: 1], "$[0]", "function"),
        (Record(datetime.date(2024, 1, 1), float("inf")), "$.ratio", "inf"),
        (LOOP, "", "contains itself"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value: Any, place: str, reason: str) -> None:
    with pytest.raises(NotPlain) as refusal:
        plain(value)
    assert str(refusal.value).startswith(place)
    assert reason in str(refusal.value)


text = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(text, below, max_size=4),
    max_leaves=20,
)


@pytest.mark.slow
@given(json_values)
def test_plain_json_is_copied_exactly_and_survives_the_codec_of_history(value: Any) -> None:
    copy = plain(value)
    assert copy == value
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(copy)) == value


def test_nothing_is_shared_with_the_original() -> None:
    original = {"a": [{"b": 1}]}
    copy = plain(original)
    copy["a"][0]["b"] = 2
    copy["a"].append(3)
    assert original == {"a": [{"b": 1}]}

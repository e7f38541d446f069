"""Large values leave their records and come back as they were."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.model import effects as f
from treadle.model import events as e
from treadle.model.codec import pack_events, unpacking
from treadle.model.errors import Error
from treadle.model.ids import GroupId, TokenId
from treadle.model.requests import Emit
from treadle.store.packing import AnyEffect, pack, unpacking_effects
from treadle.store.spill import MARK, Resolver, Spill, marks_in

T = TokenId(1)
BIG = "x" * 500

EVENTS: list[e.Event] = [
    e.RunCompleted(1, 0, {"a": BIG}),
    e.ContextUpdated(1, 0, [(("state", "a"), BIG), (("state", "b"), 1)]),
    e.GroupOpened(1, 0, GroupId(1), ["name:g"], T, "n", "n", (), 2, ["t"], items=[1, {"b": BIG}]),
    e.RunFailed(1, 0, Error("TASK_FAILED", "no", details={"body": BIG})),
    e.CallbackReceived(1, 0, T, 1, output=BIG, requests=(Emit("x", BIG),)),
]


def _round(event: e.Event, limit: int) -> tuple[e.Event, Spill, bytes]:
    spill = Spill(limit)
    block = pack_events([spill.shrunk(event)])
    (back,) = unpacking(Resolver(spill.blobs.__getitem__))(block)
    return back, spill, block


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.type)
def test_a_large_value_leaves_from_wherever_an_author_may_put_one(event: e.Event) -> None:
    back, spill, block = _round(event, 100)
    assert back == event
    assert len(block) < 300
    assert set(marks_in(block, spill.blobs.__getitem__)) == set(spill.blobs) != set()


def test_only_the_large_part_leaves() -> None:
    one, two = Spill(100), Spill(100)
    one.shrunk(e.RunCompleted(1, 0, {"scan": BIG, "small": 1}))
    two.shrunk(e.Custom(1, 0, "x", [{"deep": BIG}]))
    assert one.blobs == two.blobs == {key: pack(BIG) for key in one.blobs}


def test_a_value_of_many_small_parts_leaves_as_a_whole() -> None:
    many = [{"n": i} for i in range(1_000)]
    back, spill, block = _round(e.RunCompleted(1, 0, many), 100)
    assert back == e.RunCompleted(1, 0, many)
    assert len(spill.blobs) == 1 and len(block) < 100


def test_small_values_stay() -> None:
    event = e.RunCompleted(1, 0, {"a": "b"})
    spill = Spill(100)
    assert spill.shrunk(event) == event
    assert spill.blobs == {}


def test_an_unknown_mark_is_no_value() -> None:
    block = pack_events([e.RunCompleted(1, 0, msgspec.msgpack.Ext(MARK + 1, b"?"))])
    with pytest.raises(ValueError, match="unknown extension type 2"):
        unpacking(Resolver(lambda _digest: b""))(block)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


@given(JSON, st.integers(1, 80))
def test_whatever_leaves_comes_back(value: Any, limit: int) -> None:
    event = e.ContextUpdated(1, 0, [(("state", "x"), value)])
    assert _round(event, limit)[0] == event
    effect = f.StartChild(T, "child", "w", value, 1, 10)  # type: ignore[arg-type]
    spill = Spill(limit)
    packed = pack(spill.shrunk(effect))
    assert unpacking_effects(Resolver(spill.blobs.__getitem__))(packed) == effect


def test_every_effect_has_a_decoder() -> None:
    assert {kind.__struct_config__.tag for kind in AnyEffect.__args__} >= {"run_task", "publish", "start_child"}

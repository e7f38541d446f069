"""`emit`, `send` and the group actions: what a task asks of its run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.actions.calls import error, reply
from treadle.actions.protocol import Done
from treadle.model.requests import ChangeGroup, Emit, Send


@pytest.mark.parametrize(
    ("kind", "config", "input", "request_"),
    [
        ("emit", {"type": "sold"}, {}, Emit("sold")),
        ("emit", {"type": "sold", "data": "$.input.order"}, {"order": 7}, Emit("sold", 7)),
        ("emit", {"type": "sold", "data": {"a": 1}}, {"data": 2}, Emit("sold", {"a": 1})),
        ("emit", {"type": "sold"}, {"data": {"a": 1}, "type": "other"}, Emit("sold", {"a": 1})),
        ("send", {"signal": "go"}, {}, Send("go")),
        (
            "send",
            {"signal": "go", "run": "$.input.peer"},
            {"peer": "r2", "key": "k", "data": [1]},
            Send("go", "k", [1], "r2"),  # type: ignore[arg-type]
        ),
        ("cancel_group", {"group": "t1"}, {}, ChangeGroup("cancel_group", "t1")),
        ("cancel_group", {"group": "t1", "join": "drop"}, {}, ChangeGroup("cancel_group", "t1", join="drop")),
        ("close_group", {"group": "t1"}, {}, ChangeGroup("close_group", "t1")),
        ("add_siblings", {"group": "t1"}, {"items": [1, 2]}, ChangeGroup("add_siblings", "t1", items=[1, 2])),
        ("add_siblings", {"group": "t1"}, {"count": 3}, ChangeGroup("add_siblings", "t1", count=3)),
        ("add_siblings", {"group": "t1"}, {"items": []}, ChangeGroup("add_siblings", "t1", items=[])),
    ],
)
def test_an_action_becomes_a_request(kind: str, config: Any, input: Any, request_: Any) -> None:
    answer = reply(kind, config, input)
    assert isinstance(answer, Done)
    assert answer.requests == (request_,)


@pytest.mark.parametrize(
    ("kind", "config", "input", "message"),
    [
        ("emit", {}, {}, "'type' must be text"),
        ("emit", {"type": "$.input.gone"}, {}, "'type' must be text"),
        ("send", {"signal": "go", "run": 5}, {}, "'run' must be text"),
        ("cancel_group", {"group": "t1", "join": "later"}, {}, "'fire' or 'drop'"),
        ("add_siblings", {"group": "t1"}, {}, "either 'items' or 'count'"),
        ("add_siblings", {"group": "t1"}, {"items": [], "count": 1}, "either 'items' or 'count'"),
        ("add_siblings", {"group": "t1"}, {"items": "ab"}, "is an array"),
        ("add_siblings", {"group": "t1"}, {"count": -1}, "whole number"),
        ("add_siblings", {"group": "t1"}, {"count": True}, "whole number"),
        ("add_siblings", {}, {"count": 1}, "'group' must be text"),
    ],
)
def test_a_request_that_makes_no_sense_fails_the_step(kind: str, config: Any, input: Any, message: str) -> None:
    assert message in error(kind, config, input).message

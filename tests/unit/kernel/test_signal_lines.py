"""Waiters for a signal are found by its key, not by looking at everybody who waits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.driving import RUN, Driven, graph_of
from treadle.kernel.signal_lines import Lines, join_line, join_line_by_key, keep_signal, kept_signals_by_key, waiters
from treadle.model import commands as c
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus

KEYS: list[Any] = [1, "1", True, None, 1.5, [1], {"a": 1}]


def test_only_those_with_the_same_key_and_those_without_one_are_looked_at() -> None:
    lines: Lines = {}
    join_line_by_key(lines, "go", TokenId(1), "x")
    join_line(lines, "go", TokenId(2), None)
    join_line_by_key(lines, "go", TokenId(3), "y")
    join_line_by_key(lines, "go", TokenId(4), "x")
    assert list(waiters(lines, "go", "x")) == [(1, None), (2, None), (4, None)], "longest waiting first"
    assert list(waiters(lines, "go", "z")) == [(2, None)]
    assert list(waiters(lines, "come", "x")) == []


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_that_json_tells_apart_have_places_of_their_own(key: Any) -> None:
    lines: Lines = {}
    for number, other in enumerate(KEYS):
        keep_signal(lines, "go", other, number)
    found = [KEYS[number] for number in kept_signals_by_key(lines, "go", key)]
    composite = isinstance(key, list | dict)
    assert found == ([[1], {"a": 1}] if composite else [key])


def test_ten_thousand_waiters_with_keys_of_their_own_are_each_found_and_leave_nothing_behind() -> None:
    many = 10_000
    document = {
        "limits": {"max_tokens_per_run": 3 * many, "max_spawn_count": many},
        "nodes": {"a": {}, "s": {"action": {"kind": "signal", "name": "go", "key": "$._branch.index"}}},
        "transitions": [{"from": "a", "to": "s", "spawn_count": many}],
    }
    driven = Driven(graph_of(document))
    driven.do(c.StartRun(run=RUN))
    looked_at = sum(len(list(waiters(driven.state.lines, "go", key))) for key in range(many))
    assert looked_at == many, "each signal has one waiter to ask"
    for key in reversed(range(3)):
        driven.do(c.SendSignal("go", key, None, f"s{key}"))
    assert driven.state.live == many - 3
    driven.do(c.CancelRun())
    assert driven.state.status is RunStatus.CANCELLED
    assert driven.state.lines == {}

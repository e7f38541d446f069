"""Values from outside may be hostile: nested ten thousand deep they are refused at once and change nothing."""

from __future__ import annotations

from typing import Any

from tests.driving import TASK, Driven, graph_of
from treadle.kernel.depth import DEPTH_MAX, is_too_deep
from treadle.model import commands as c
from treadle.model.ids import RunId, TokenId


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def test_the_deepest_allowed_value_is_allowed_and_one_level_more_is_not() -> None:
    assert not is_too_deep(nested(DEPTH_MAX))
    assert is_too_deep(nested(DEPTH_MAX + 1))
    assert is_too_deep({"a": nested(10_000)})


def test_a_run_is_not_started_with_a_hostile_input() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK}}))
    decision = driven.do(c.StartRun(RunId("run-1"), nested(10_000)))
    assert decision.rejection is not None and decision.rejection.kind == "BAD_REQUEST"
    assert not decision.events


def test_an_output_that_is_too_deep_fails_its_visit_and_not_the_engine() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK}})).start()
    driven.do(c.FinishAttempt(TokenId(1), 1, nested(10_000)))
    assert driven.state.error is not None and driven.state.error.kind == "SCHEMA"


def test_a_signal_that_is_too_deep_is_refused() -> None:
    driven = Driven(graph_of({"nodes": {"a": {"action": {"kind": "signal", "name": "s"}}}})).start()
    decision = driven.do(c.SendSignal("s", None, nested(10_000)))
    assert decision.rejection is not None and decision.rejection.kind == "BAD_REQUEST"

"""Edges of rules that only a small change of the kernel would move: each test is one that such a change survived."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.driving import TASK, Driven, graph_of, problems
from treadle.kernel.node_join import shared_path
from treadle.model import commands as c
from treadle.model import events as e

Json = Any


def test_a_wait_for_a_signal_that_is_tried_again_takes_no_signal_between_two_attempts() -> None:
    """2.7: it has left the line of waiters, and takes the signal when it waits again."""
    wait = {"action": {"kind": "signal", "name": "s"}, "timeout_ms": 10}
    again = {"retry": {"max_attempts": 2, "initial_delay_ms": 50}}
    driven = Driven(graph_of({"nodes": {"a": {**wait, **again}}})).start()
    driven.fire("attempt")
    assert driven.count("token.retry_scheduled") == 1, driven.log()
    driven.do(c.SendSignal("s", None, 7, "1"))
    assert driven.count("signal.taken") == 0, driven.log()
    driven.fire("retry")
    assert driven.count("signal.taken") == 1 and driven.ended
    assert not problems(driven)


def test_an_output_that_no_expression_reads_is_not_kept() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]})).start()
    driven.finish("a", output={"x": 1})
    assert not driven.count("context.updated"), driven.log()


def test_work_that_a_signal_from_before_interrupts_has_begun_once() -> None:
    driven = Driven(
        graph_of(
            {
                "nodes": {"hold": TASK, "a": TASK, "b": TASK, "beside": TASK},
                "start": ["hold", "beside"],
                "transitions": [{"from": "hold", "to": "a"}, {"from": "a", "to": "b", "trigger": {"signal": "go"}}],
            }
        )
    ).start()
    driven.do(c.SendSignal("go", None, 1, "1"))
    decision = driven.finish("hold")
    begun = [event.attempt for event in decision.events if isinstance(event, e.TokenStarted) and event.attempt]
    assert begun and set(begun) == {1}, driven.log()
    assert len(driven.tokens("b")) == 1


def test_a_node_s_join_may_fire_as_the_last_visit_that_the_limit_allows() -> None:
    def met(limit: int) -> Driven:
        nodes = {"p": TASK, "q": TASK, "j": {**TASK, "join": "all_inbound"}}
        ways = [{"from": "p", "to": "j"}, {"from": "q", "to": "j"}]
        driven = Driven(
            graph_of({"nodes": nodes, "transitions": ways, "limits": {"max_tokens_per_run": limit}})
        ).start()
        driven.finish("p")
        driven.finish("q")
        return driven

    enough = met(3)
    assert len(enough.tokens("j")) == 1, enough.log()
    few = met(2)
    assert few.state.error is not None and few.state.error.kind == "LIMIT_EXCEEDED"


@pytest.mark.interpreted
def test_the_path_that_tokens_share_ends_with_a_whole_fan_out() -> None:
    def shared(*paths: str) -> str:
        return shared_path(cast(Any, [SimpleNamespace(path=path) for path in paths]))

    assert shared("root.a.1.b.1", "root.a.1.b.2") == "root.a.1"
    assert shared("root.a.1", "root.b.1") == "root"
    assert shared("root.a.1.b.2", "root.a.1.b.2") == "root.a.1.b.2"
    assert shared("root.a.1", "root.a.1.b.2") == "root.a.1"

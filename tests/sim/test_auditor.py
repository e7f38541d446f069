"""The auditor notices: every rule is shown a history in which exactly that was falsified, and one in which nothing was.

What is falsified is what the auditor sees, never what the kernel decided; so a rule that sleeps is found here, however
right the kernel is.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.driving import TASK, graph_of
from tests.sim.watching import Forgery, Watching, changed, twice, watching, without, without_effect
from tests.simulator.audit.journal import check_letters
from tests.simulator.post import Letter
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.errors import Error, Rejection
from treadle.model.events import EntityRef  # type: ignore[attr-defined]
from treadle.model.ids import RunId, TimerId, TokenId

JOINED: dict[str, Any] = {
    "nodes": {"a": {}, "b": {**TASK, "output_mapping": {"state.v": "$.v"}}, "z": TASK},
    "transitions": [
        {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
        {
            "from": "b",
            "to": "z",
            "synchronization": {
                "sibling_group": "t",
                "merge": {"source": "_branch.output.v", "target": "state.all", "strategy": "append"},
            },
        },
    ],
}
SAGA: dict[str, Any] = {
    "nodes": {"a": {**TASK, "compensate": TASK}, "b": {**TASK, "compensate": TASK}, "c": TASK},
    "transitions": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}],
}


def test_an_honest_history_gives_no_cause_for_complaint() -> None:
    watched = watching(JOINED)
    watched.finish(2, {"v": 1}).finish(3, {"v": 2}).finish(4)
    assert watched.record.status == "completed"
    assert not watched.record.complaints


def joined(forge: Forgery | None = None, last: Forgery | None = None) -> Watching:
    """Two branches that meet; `forge` falsifies the first arrival, `last` the second, with which the join fires."""
    return watching(JOINED).finish(2, {"v": 1}, forge).finish(3, {"v": 2}, last)


@pytest.mark.parametrize(
    ("rule", "forge"),
    [
        ("fires once", twice(e.JoinFired)),
        ("join asleep", without(e.JoinFired)),
        ("conservation", without(e.TokenCreated)),
        ("conservation", twice(e.TokenCreated)),
        ("quorum", changed(e.JoinFired, arrived=1)),
        ("merge", changed(e.JoinFired, writes=[(("state", "all"), [2, 1])])),
        ("merge", changed(e.JoinArrived, value=7)),
        ("frames", changed(e.JoinArrived, frames=())),
        ("results", changed(e.TokenWaiting, output={"v": 99})),
        ("lifecycle", twice(e.TokenCompleted)),
        ("scope", changed(e.ContextUpdated, scope=None)),
        ("dispatch", without_effect(x.RunTask)),
    ],
)
def test_a_falsified_join_is_noticed(rule: str, forge: Forgery) -> None:
    assert rule in joined(last=forge).rules


def test_a_join_that_fires_too_early_is_noticed() -> None:
    early = e.JoinFired(0, 0, "z", 1, total=2, arrived=1)  # type: ignore[arg-type]

    def forge(events: list[e.Event], _effects: list[x.Effect]) -> None:
        early.seq = events[-1].seq + 1
        events.append(early)

    assert "quorum" in joined(forge).rules


def test_a_missing_number_is_noticed() -> None:
    def forge(events: list[e.Event], _effects: list[x.Effect]) -> None:
        del events[0]

    assert "sequence" in watching(JOINED).finish(2, {"v": 1}, forge).rules


def test_a_result_of_another_attempt_is_noticed() -> None:
    watched = watching({"nodes": {"a": {**TASK, "retry": {"max_attempts": 2}}}})
    watched.do(c.FailAttempt(TokenId(1), 1, Error("X", "x", retryable=True)))
    watched.do(c.FireTimer(TimerId(1)))
    watched.record.visits[1].attempt = 1
    assert "attempts" in watched.finish(1).rules


def test_a_timer_that_fires_early_by_the_clock_of_the_store_is_noticed() -> None:
    watched = watching({"nodes": {"a": {"action": {"kind": "wait", "ms": 50}}}})
    watched.driven.now += 50
    assert "timers" in watched.do(c.FireTimer(TimerId(1)), late_ms=1).rules


def test_a_timer_the_store_was_not_told_of_is_noticed() -> None:
    watched = Watching(graph_of({"nodes": {"a": {"action": {"kind": "wait", "ms": 50}}}}))
    assert "timers" in watched.do(c.StartRun(run=RunId("r")), without_effect(x.SetTimer)).rules


def test_work_that_begins_during_a_pause_is_noticed() -> None:
    watched = watching({"nodes": {"a": TASK, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]})
    watched.record.status = "paused"
    assert "paused" in watched.finish(1).rules


def test_a_gate_with_two_decisions_is_noticed() -> None:
    watched = watching({"nodes": {"a": {"action": {"kind": "human"}}}})
    assert "gates" in watched.do(c.CompleteGate(TokenId(1), {"ok": True}), twice(e.GateCompleted)).rules


def test_an_answer_nobody_gave_is_noticed() -> None:
    watched = watching({"nodes": {"a": {"action": {"kind": "human"}}}})
    forge = changed(e.GateCompleted, data={"ok": False})
    assert "gates" in watched.do(c.CompleteGate(TokenId(1), {"ok": True}), forge).rules


def test_a_signal_taken_twice_is_noticed() -> None:
    watched = watching({"nodes": {"a": {"action": {"kind": "signal", "name": "s"}}}})
    assert "signals" in watched.do(c.SendSignal("s", id="1"), twice(e.SignalTaken)).rules


def test_a_visit_over_the_limit_is_noticed() -> None:
    watched = watching({"limits": {"max_tokens_per_run": 1}, "nodes": {"a": TASK}})
    watched.record.forward_visits = 2
    assert "limits" in watched.do(c.SendSignal("s", id="1")).rules


def saga() -> Watching:
    watched = watching(SAGA).finish(1).finish(2)
    return watched.do(c.FailAttempt(TokenId(3), 1, Error("X", "x")))


def test_an_honest_saga_gives_no_cause_for_complaint() -> None:
    watched = saga()
    watched.finish(4).finish(5)
    assert watched.record.status == "compensated"
    assert not watched.record.complaints


def test_compensation_in_the_wrong_order_is_noticed() -> None:
    watched = watching(SAGA).finish(1).finish(2)
    failed = c.FailAttempt(TokenId(3), 1, Error("X", "x"))
    assert "saga" in watched.do(failed, changed(e.CompensationStarted, record=1)).rules


def test_compensation_that_ends_too_soon_is_noticed() -> None:
    ended = e.RunCompensated(0, 0)

    def forge(events: list[e.Event], _effects: list[x.Effect]) -> None:
        ended.seq = events[-1].seq + 1
        events.append(ended)

    watched = saga()
    assert "saga" in watched.finish(4, forge=forge).rules


def test_a_run_that_is_over_and_holds_something_is_noticed() -> None:
    watched = watching({"nodes": {"a": TASK, "b": TASK}})
    assert "over" in watched.do(c.CancelRun(), without(e.TokenCancelled)).rules


def test_a_child_that_ends_twice_is_noticed() -> None:
    child = graph_of({"workflow": "child", "nodes": {"x": TASK}})
    watched = watching({"nodes": {"a": {"action": {"kind": "workflow_call", "workflow": "child"}}}}, None, child)
    run = watched.driven.state.tokens[TokenId(1)].child
    assert run is not None
    assert "children" in watched.do(c.EndChild(TokenId(1), run, "completed"), twice(e.ChildEnded)).rules


def test_a_child_that_nobody_cancels_is_noticed() -> None:
    child = graph_of({"workflow": "child", "nodes": {"x": TASK}})
    watched = watching({"nodes": {"a": {"action": {"kind": "workflow_call", "workflow": "child"}}}}, None, child)
    assert "children" in watched.do(c.CancelRun(), without_effect(x.CancelChild)).rules


def test_an_entity_that_jumps_is_noticed() -> None:
    watched = Watching(graph_of({"nodes": {"a": TASK, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]}))
    watched.do(c.StartRun(run=RunId("r"), entity=EntityRef("e", "order")))
    watched.record.entity = None
    assert "entity" in watched.finish(1).rules


def letter(command: c.Command, rejection: Rejection | None = None) -> Letter:
    sent = Letter(0, RunId("run-1"), command)
    sent.answered_at, sent.rejection, sent.copies = 1, rejection, 1
    return sent


@pytest.mark.parametrize(
    ("rule", "in_history", "rejection"),
    [("acknowledged", False, None), ("refused", True, Rejection("INVALID_STATE", "no"))],
)
def test_a_client_that_was_told_otherwise_is_noticed(rule: str, in_history: bool, rejection: Rejection | None) -> None:
    watched = watching({"nodes": {"a": TASK}})
    command = c.SendSignal("s", id="1")
    if in_history:
        watched.do(command)
    records = {RunId("run-1"): watched.record}
    check_letters(records, {RunId("run-1"): watched.driven.history}, [letter(command, rejection)])
    assert watched.rules == [rule]

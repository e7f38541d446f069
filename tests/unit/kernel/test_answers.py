"""Answers (2.7, 2.16): the same again is accepted, another is refused, late ones are recorded and never applied."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.driving import TASK, Driven, graph_of
from treadle.model import commands as c
from treadle.model.decision import Decision
from treadle.model.errors import Error
from treadle.model.ids import RunId, TimerId, TokenId

Json = Any
HOOK = {"action": {"kind": "webhook", "url": "https://worker.test/"}}
GATE = {"action": {"kind": "human", "form": {"type": "object", "required": ["ok"]}}}
BESIDE = {"beside": TASK}
"""Keeps the run open when the visit under test has ended."""


def run_of(node: dict[str, Json], **fields: Json) -> Driven:
    return Driven(graph_of({"nodes": {"a": {**node, **fields}, **BESIDE}, "start": ["a", "beside"]})).start()


def refused(decision: Decision) -> str | None:
    return decision.rejection.kind if decision.rejection is not None else None


def types(decision: Decision) -> list[str]:
    return [event.type for event in decision.events]


def test_the_same_callback_again_is_accepted_without_effect() -> None:
    driven = run_of(HOOK)
    driven.do(c.ReceiveCallback(TokenId(1), 1, {"v": 1}))
    again = driven.do(c.ReceiveCallback(TokenId(1), 1, {"v": 1}))
    assert (again.events, again.effects, again.rejection) == ([], [], None)


def test_a_different_callback_to_an_answered_attempt_is_a_duplicate() -> None:
    driven = run_of(HOOK)
    driven.do(c.ReceiveCallback(TokenId(1), 1, {"v": 1}))
    other = driven.do(c.ReceiveCallback(TokenId(1), 1, {"v": 2}))
    assert refused(other) == "DUPLICATE" and types(other) == ["callback.refused"]


@pytest.mark.parametrize("unusable", [None, "no JSON"])
def test_a_callback_that_cannot_be_used_is_refused_before_anything_else_and_recorded(unusable: str | None) -> None:
    deep: Json = None
    for _ in range(110):
        deep = [deep]
    driven = run_of(HOOK)
    for _ in range(2):  # before and after the attempt was answered
        wrong = driven.do(c.ReceiveCallback(TokenId(1), 1, deep if unusable is None else None, unusable=unusable))
        assert refused(wrong) == "BAD_REQUEST" and types(wrong) == ["callback.refused"]
        driven.do(c.ReceiveCallback(TokenId(1), 1, {"v": 1}))


def test_a_callback_to_a_superseded_attempt_is_late() -> None:
    driven = run_of(HOOK, timeout_ms=10, retry={"max_attempts": 2, "initial_delay_ms": 5})
    driven.fire("attempt")
    assert refused(driven.do(c.ReceiveCallback(TokenId(1), 1, {}))) == "LATE_RESULT"
    driven.fire("retry")
    assert refused(driven.do(c.ReceiveCallback(TokenId(1), 1, {}))) == "LATE_RESULT"
    assert refused(driven.do(c.ReceiveCallback(TokenId(1), 2, {}))) is None


def test_a_callback_to_a_timed_out_visit_is_late_and_to_a_cancelled_one_invalid() -> None:
    late = Driven(graph_of({"nodes": {"a": {**HOOK, "timeout_ms": 10}, **BESIDE, "h": {}}, "start": ["a", "beside"],
                            "transitions": [{"from": "a", "to": "h", "on": "failure"}]})).start()  # fmt: skip
    late.fire("attempt")
    assert refused(late.do(c.ReceiveCallback(TokenId(1), 1, {}))) == "LATE_RESULT"
    cancelled = run_of(HOOK)
    cancelled.do(c.CancelToken(TokenId(1)))
    assert refused(cancelled.do(c.ReceiveCallback(TokenId(1), 1, {}))) == "INVALID_STATE"


def test_a_callback_to_an_ended_run_is_invalid() -> None:
    driven = run_of(HOOK)
    driven.do(c.CancelRun())
    assert refused(driven.do(c.ReceiveCallback(TokenId(1), 1, {}))) == "INVALID_STATE"


@pytest.mark.parametrize("fields", [{}, {"queue": "q"}], ids=["executing", "offered on a queue"])
def test_a_callback_to_a_visit_that_waits_for_none_is_invalid(fields: dict[str, Json]) -> None:
    driven = run_of(TASK, **fields)
    assert (
        refused(driven.do(c.ReceiveCallback(TokenId(1), 1, {}))) == "INVALID_STATE" and driven.state.status == "running"
    )


STRANGERS = [
    c.ReceiveCallback(TokenId(99), 1),
    c.CompleteGate(TokenId(99)),
    c.CancelToken(TokenId(99)),
    c.RetryToken(TokenId(99)),
    c.ClaimGate(TokenId(99), "ann"),
]


@pytest.mark.parametrize("command", STRANGERS)
def test_a_visit_that_never_was_is_not_found(command: c.Command) -> None:
    assert refused(run_of(TASK).do(command)) == "NOT_FOUND"
    before_the_first = replace(command, token=TokenId(0))
    assert refused(run_of(TASK).do(before_the_first)) == "NOT_FOUND"


@pytest.mark.parametrize("command", [c.CancelRun(), c.PauseRun(), c.FireTimer(TimerId(1)), c.SendSignal("s")])
def test_a_run_that_never_began_is_not_found(command: c.Command) -> None:
    assert refused(Driven(graph_of({"nodes": {"a": TASK}})).do(command)) == "NOT_FOUND"


def test_a_gate_takes_the_same_answer_twice_and_refuses_another() -> None:
    driven = run_of(GATE)
    driven.do(c.CompleteGate(TokenId(1), {"ok": True}, "ann"))
    same = driven.do(c.CompleteGate(TokenId(1), {"ok": True}, "ann"))
    others = [
        driven.do(c.CompleteGate(TokenId(1), {"ok": True}, "bob")),
        driven.do(c.CompleteGate(TokenId(1), {"ok": False}, "ann")),
        driven.do(c.CompleteGate(TokenId(1), {"ok": False})),
    ]
    assert (same.events, refused(same)) == ([], None)
    for other in others:
        assert (other.events, refused(other)) == ([], "INVALID_STATE")
        assert other.rejection is not None
        assert "answered by ann at " in other.rejection.message
        assert '{"ok":true}' in other.rejection.message


def test_an_answer_against_the_form_leaves_the_gate_open() -> None:
    driven = run_of(GATE)
    assert refused(driven.do(c.CompleteGate(TokenId(1), {"no": 1}))) == "SCHEMA"
    assert refused(driven.do(c.CompleteGate(TokenId(1), {"ok": 1}))) is None


def test_an_answer_where_no_gate_waits_is_invalid() -> None:
    assert refused(run_of(TASK).do(c.CompleteGate(TokenId(1), {}))) == "INVALID_STATE"


def test_a_gate_retried_by_an_operator_takes_a_new_answer() -> None:
    document = {
        "nodes": {"a": GATE, "b": TASK},
        "transitions": [{"from": "a", "to": "b", "condition": "nodes.a.output.ok == true"}],
    }
    driven = Driven(graph_of(document)).start()
    driven.do(c.CompleteGate(TokenId(1), {"ok": False}))
    assert driven.state.error is not None and driven.state.error.kind == "NO_MATCHING_TRANSITION"
    driven.do(c.RetryToken(TokenId(1)))
    assert refused(driven.do(c.CompleteGate(TokenId(1), {"ok": True}))) is None and len(driven.tokens("b")) == 1


def test_a_result_of_a_superseded_attempt_is_never_applied() -> None:
    driven = run_of({**TASK, "output_mapping": {"state.v": "$.v"}}, retry={"max_attempts": 2})
    driven.fail("a", retryable=True)
    driven.fire("retry")
    assert types(driven.do(c.FinishAttempt(TokenId(1), 1, {"v": "stale"}))) in ([], ["result.ignored"])
    assert driven.token("a").attempt == 2 and driven.state.context()["state"] == {}


def test_a_result_from_another_worker_than_the_owner_is_a_lease_conflict() -> None:
    driven = run_of(TASK, queue="q")
    driven.do(c.StartAttempt(TokenId(1), 1, "w1", 10_000))
    assert refused(driven.do(c.StartAttempt(TokenId(1), 1, "w2", 10_000))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w2"))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.ExtendLease(TokenId(1), 1, "w2", 20_000))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w1"))) is None


def test_an_expired_lease_offers_the_same_attempt_again() -> None:
    driven = run_of(TASK, queue="q")
    driven.do(c.StartAttempt(TokenId(1), 1, "w1", driven.now + 50))
    driven.fire("lease")
    token = driven.token("a")
    assert (token.state, token.attempt, token.recoveries, token.attempts) == ("dispatched", 1, 1, 1)
    never = driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w9"))
    assert (never.events, refused(never)) == ([], "LEASE_CONFLICT")


def test_an_expired_lease_is_over_before_its_timer_is_delivered() -> None:
    driven = run_of(TASK, queue="q")
    driven.do(c.StartAttempt(TokenId(1), 1, "w1", driven.now + 50))
    driven.now += 50
    assert refused(driven.do(c.ExtendLease(TokenId(1), 1, "w1", driven.now + 50))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w1"))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.FailAttempt(TokenId(1), 1, Error("X", "x"), worker="w1"))) == "LEASE_CONFLICT"
    driven.fire("lease")
    driven.do(c.StartAttempt(TokenId(1), 1, "w2", driven.now + 50))
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w2"))) is None


def test_a_heartbeat_in_time_keeps_the_lease() -> None:
    driven = run_of(TASK, queue="q")
    driven.do(c.StartAttempt(TokenId(1), 1, "w1", driven.now + 50))
    driven.now += 40
    driven.do(c.ExtendLease(TokenId(1), 1, "w1", driven.now + 50))
    driven.now += 40
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w1"))) is None


def test_an_engine_claims_the_work_it_has_in_hand_before_it_gives_up_the_run() -> None:
    driven = run_of(TASK)
    assert types(driven.do(c.StartAttempt(TokenId(1), 1, "node", driven.now + 50))) == ["token.started", "timer.set"]
    assert (driven.token("a").worker, driven.token("a").recoveries) == ("node", 0)
    assert types(driven.do(c.StartAttempt(TokenId(1), 1, "node", driven.now + 50))) == [], (
        "claiming again changes nothing"
    )
    assert refused(driven.do(c.StartAttempt(TokenId(1), 1, "other", driven.now + 50))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}))) == "LEASE_CONFLICT"
    driven.now += 40
    driven.do(c.ExtendLease(TokenId(1), 1, "node", driven.now + 50))
    driven.now += 40
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="node"))) is None
    assert not driven.tokens("a")


def test_claimed_work_is_claimed_also_while_its_run_is_paused() -> None:
    driven = run_of(TASK)
    driven.do(c.PauseRun())
    assert refused(driven.do(c.StartAttempt(TokenId(1), 1, "node", driven.now + 50))) is None
    driven.do(c.FinishAttempt(TokenId(1), 1, {"v": 1}, worker="node"))
    assert refused(driven.do(c.StartAttempt(TokenId(1), 1, "late", driven.now + 50))) is not None, "it has its result"
    driven.do(c.ResumeRun())
    assert not driven.tokens("a")


def test_work_in_hand_is_not_claimed_without_a_lease_nor_for_another_attempt() -> None:
    driven = run_of(TASK)
    assert refused(driven.do(c.StartAttempt(TokenId(1), 1, "node"))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.StartAttempt(TokenId(1), 2, "node", driven.now + 50))) == "LEASE_CONFLICT"
    assert refused(driven.do(c.StartAttempt(TokenId(1), 1, "node", driven.now + 50, recovery=1))) == "LEASE_CONFLICT"


def test_a_claim_on_work_in_hand_that_runs_out_hands_the_work_out_again() -> None:
    driven = run_of(TASK)
    driven.do(c.StartAttempt(TokenId(1), 1, "node", driven.now + 50))
    driven.fire("lease")
    token = driven.token("a")
    assert (token.state, token.attempt, token.recoveries, token.worker) == ("executing", 1, 1, None)
    late = driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="node"))
    assert (late.events, refused(late)) == ([], "LEASE_CONFLICT"), "what was claimed and lost is not applied"
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}))) is None


def test_nobody_answers_for_an_attempt_that_is_only_on_offer() -> None:
    driven = run_of(TASK, queue="q")
    assert refused(driven.do(c.FinishAttempt(TokenId(1), 1, {}, worker="w1"))) == "LEASE_CONFLICT"
    assert driven.token("a").state == "dispatched"


def test_a_worker_lost_too_often_fails_the_visit() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK}})).start()
    for _ in range(4):
        driven.do(lost(driven))
        assert driven.state.status == "running"
    driven.do(lost(driven))
    assert driven.state.error is not None and driven.state.error.kind == "WORKER_LOST"


def lost(driven: Driven) -> c.LoseWorker:
    token = driven.token("a")
    return c.LoseWorker(token.id, token.attempt, token.recoveries)


@pytest.mark.parametrize("status", ["failed", "cancelled", "timed_out"])
def test_a_child_that_ended_badly_fails_the_visit_or_is_caught(status: str) -> None:
    child = graph_of({"workflow": "child", "nodes": {"x": {}}})
    for policy in ("propagate", "catch"):
        call = {"action": {"kind": "workflow_call", "workflow": "child", "on_failure": policy}}
        driven = Driven(graph_of({"nodes": {"a": {**call, "output_mapping": {"state.got": "$"}}}}))
        driven.catalog._graphs["child"] = child
        driven.start()
        driven.do(c.EndChild(TokenId(1), RunId("run-1.1"), status, None, Error("BOOM", "no")))
        if policy == "propagate":
            assert driven.state.error is not None and driven.state.error.kind == "SUBWORKFLOW_FAILED"
        else:
            assert driven.state.context()["state"]["got"]["error"]["kind"] == "BOOM"


def test_progress_that_comes_twice_late_out_of_order_or_too_deep_is_dropped() -> None:
    driven = run_of(TASK)

    def reported(part: int, data: Json = None) -> list[str]:
        return types(driven.do(c.ReportProgress(TokenId(1), 1, part, "share", data)))

    assert reported(1) == ["token.progress"]
    assert reported(3) == ["token.progress"]
    assert reported(3) == reported(2) == reported(1) == []
    deep: Json = None
    for _ in range(110):
        deep = [deep]
    assert reported(4, deep) == []
    assert reported(4) == ["token.progress"]
    driven.finish("a")
    assert reported(5) == []

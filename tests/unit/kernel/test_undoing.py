"""Compensation: one at a time, newest first, across branches and children, halting or going on (2.10)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.driving import TASK, Driven, Shelf, graph_of
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.ids import RecordId, RunId, TokenId

Json = Any
UNDONE = {**TASK, "compensate": TASK}


def chain(length: int, node: dict[str, Json] = UNDONE, **whole: Json) -> Driven:
    """n0 … then `end`, which fails; every visit before it is to be undone."""
    refs = [f"n{i}" for i in range(length)]
    transitions = [{"from": a, "to": b} for a, b in zip(refs, [*refs[1:], "end"], strict=True)]
    nodes = {**dict.fromkeys(refs, node), "end": TASK}
    driven = Driven(graph_of({"nodes": nodes, "transitions": transitions, **whole})).start()
    for ref in refs:
        driven.finish(ref, output={"of": ref})
    return driven


def undoing(driven: Driven) -> list[str]:
    """Nodes whose compensation is being executed."""
    return [
        token.node
        for token in driven.state.tokens.values()
        if token.mode == "compensation" and token.state == "executing"
    ]


def test_visits_are_undone_one_at_a_time_newest_first() -> None:
    driven = chain(3)
    driven.fail("end")
    order = []
    while not driven.ended:
        assert len(undoing(driven)) == 1
        order += undoing(driven)
        token = next(token for token in driven.state.tokens.values() if token.mode == "compensation")
        driven.do(c.FinishAttempt(token.id, token.attempt, {}))
    assert order == ["n2", "n1", "n0"] and driven.state.status == "compensated"


def test_a_compensation_sees_the_input_and_output_of_its_visit() -> None:
    driven = chain(1)
    effects = driven.fail("end").effects
    assert [told.input for told in effects if isinstance(told, x.RunTask)] == [{"input": {}, "output": {"of": "n0"}}]


def test_the_failed_step_itself_is_undone_only_if_it_says_so() -> None:
    for says, undone in ((False, ["n0"]), (True, ["end", "n0"])):
        nodes = {"n0": UNDONE, "end": {**UNDONE, "compensate_on_failure": says}}
        driven = Driven(graph_of({"nodes": nodes, "transitions": [{"from": "n0", "to": "end"}]})).start()
        driven.finish("n0")
        driven.fail("end")
        assert [record.node for record in reversed(driven.state.records.values())] == undone


@pytest.mark.parametrize(
    ("policy", "status", "begun"), [("halt", "compensation_failed", 1), ("continue", "compensating", 2)]
)
def test_a_failed_compensation_halts_or_goes_on(policy: str, status: str, begun: int) -> None:
    driven = chain(2, on_compensation_failure=policy)
    driven.fail("end")
    token = next(token for token in driven.state.tokens.values() if token.mode == "compensation")
    driven.do(c.FailAttempt(token.id, token.attempt, e.Error("BOOM", "no")))  # type: ignore[attr-defined]
    assert driven.state.status == status and driven.count("compensation.started") == begun


@pytest.mark.parametrize(
    ("command", "next_node"),
    [(c.SkipCompensation(RecordId(2)), "n0"), (c.RetryCompensation(RecordId(2)), "n1"), (c.ResumeRun(), "n1")],
)
def test_an_operator_skips_retries_or_resumes_what_halted(command: c.Command, next_node: str) -> None:
    driven = chain(2)
    driven.fail("end")
    token = next(token for token in driven.state.tokens.values() if token.mode == "compensation")
    driven.do(c.FailAttempt(token.id, token.attempt, e.Error("BOOM", "no")))  # type: ignore[attr-defined]
    assert driven.do(command).rejection is None
    assert undoing(driven) == [next_node] and driven.state.status == "compensating"


def test_a_failed_run_without_records_ends_failed() -> None:
    driven = chain(1, TASK)
    driven.fail("end")
    assert driven.state.status == "failed" and not driven.count("run.compensating")


@pytest.mark.parametrize(
    ("policy", "status"), [("on_failure", "cancelled"), ("on_failure_and_cancel", "compensating"), ("off", "cancelled")]
)
def test_a_cancelled_run_is_undone_only_if_it_says_so(policy: str, status: str) -> None:
    driven = chain(1, compensation=policy)
    driven.do(c.CancelRun())
    assert driven.state.status == status


def test_a_visit_cannot_be_retried_once_compensation_has_begun() -> None:
    driven = chain(1)
    driven.fail("end")
    rejection = driven.do(c.RetryToken(TokenId(2))).rejection
    assert rejection is not None and rejection.kind == "INVALID_STATE"


def with_child(compensable: bool = True, **call_more: Json) -> Driven:
    call = {"action": {"kind": "workflow_call", "workflow": "child"}, **call_more}
    document = {
        "nodes": {"n0": UNDONE, "a": call, "end": TASK},
        "transitions": [{"from": "n0", "to": "a"}, {"from": "a", "to": "end"}],
    }
    driven = Driven(graph_of(document), Shelf(graph_of({"workflow": "child", "nodes": {"x": {}}}))).start()
    driven.finish("n0")
    driven.do(c.EndChild(TokenId(2), RunId("run-1.2"), "completed", {}, compensable=compensable))
    return driven


def test_a_completed_child_is_asked_to_undo_its_work_in_its_turn() -> None:
    driven = with_child()
    assert x.CompensateChild(RunId("run-1.2"), TokenId(2)) in driven.fail("end").effects and undoing(driven) == []
    driven.do(c.EndChild(TokenId(2), RunId("run-1.2"), "compensated"))
    assert undoing(driven) == ["n0"]


def test_a_child_that_reports_its_old_end_again_is_not_yet_undone() -> None:
    driven = with_child()
    driven.fail("end")
    assert not driven.do(c.EndChild(TokenId(2), RunId("run-1.2"), "completed", {}, compensable=True)).events
    assert driven.state.status == "compensating" and undoing(driven) == []


def test_a_completed_child_that_has_nothing_to_undo_is_not_asked() -> None:
    driven = with_child(compensable=False)
    assert not [told for told in driven.fail("end").effects if isinstance(told, x.CompensateChild)]
    assert undoing(driven) == ["n0"]


@pytest.mark.parametrize("compensable", [True, False])
def test_a_call_with_a_compensation_of_its_own_is_undone_by_that_and_not_by_the_child(compensable: bool) -> None:
    driven = with_child(compensable, compensate=TASK)
    assert [(record.node, record.child) for record in driven.state.records.values()] == [("n0", None), ("a", None)]
    assert not [told for told in driven.fail("end").effects if isinstance(told, x.CompensateChild)]
    assert undoing(driven) == ["a"]


@pytest.mark.parametrize(
    ("status", "compensable", "is_undone"),
    [("completed", True, True), ("completed", False, False), ("failed", True, False), ("failed", False, False)],
)
def test_a_child_that_ends_after_its_visit_was_cancelled_is_undone_if_it_did_something(
    status: str, compensable: bool, is_undone: bool
) -> None:
    call = {"action": {"kind": "workflow_call", "workflow": "child"}}
    document = {"nodes": {"s": {}, "a": call, "b": TASK}, "transitions": [{"from": "s", "to": r} for r in "ab"]}
    driven = Driven(graph_of(document), Shelf(graph_of({"workflow": "child", "nodes": {"x": {}}}))).start()
    visit = driven.token("a")
    assert visit.child is not None
    child = visit.child
    driven.do(c.CancelToken(visit.id))
    driven.do(c.EndChild(visit.id, child, status, {}, compensable=compensable))
    assert [record.child for record in driven.state.records.values()] == ([child] if is_undone else [])
    told = driven.fail("b").effects
    assert (x.CompensateChild(child, visit.id) in told) is is_undone, driven.log()

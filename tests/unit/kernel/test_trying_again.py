"""An operator's retry where scenarios cannot look: messages of child runs that come twice, late or in the wrong order,
histories of version 0.1, what the state remembers and forgets (6.2)."""

from __future__ import annotations

from msgspec.structs import replace

from tests.driving import RUN, TASK, Driven, Shelf, graph_of
from treadle.kernel.decide import decide
from treadle.kernel.evolve import replay
from treadle.kernel.invariants import violations
from treadle.kernel.reopen_plan import unhandled_visits
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus, Waiting

BOOM = Error("BOOM", "boom")
LET_FINISH = "let_others_finish"
CALL, CHILD = TokenId(1), RunId(f"{RUN}.1")
KID = graph_of({"workflow": "kid", "nodes": {"k": TASK}})
JOINED = {
    "nodes": {"a": {}, "b": TASK, "z": TASK},
    "transitions": [
        {"id": "t", "from": "a", "to": "b", "spawn_count": 3},
        {"from": "b", "to": "z", "synchronization": {"sibling_group": "t", "on_branch_failure": "fail"}},
    ],
}


def calling(**fields: object) -> Driven:
    """A run whose only visit has called a child, and the child has failed."""
    nodes = {"call": {"action": {"kind": "workflow_call", "workflow": "kid", **fields}}}
    graph = graph_of({"nodes": nodes})
    driven = Driven(graph, Shelf(graph, KID))
    driven.do(c.StartRun(run=RUN))
    driven.do(c.EndChild(CALL, CHILD, "failed", error=BOOM))
    return driven


def broken() -> Driven:
    """Of three branches the first has arrived, the second has failed and the join with it; the third was at work."""
    driven = Driven(graph_of(JOINED))
    driven.do(c.StartRun(run=RUN))
    driven.do(c.FinishAttempt(TokenId(2), 1, {}))
    driven.do(c.FailAttempt(TokenId(3), 1, BOOM))
    assert driven.state.status is RunStatus.FAILED
    return driven


# Child runs


def test_a_run_that_is_retried_asks_its_failed_child_first() -> None:
    driven = calling()
    decision = driven.do(c.RetryRun("ann"))
    assert decision.events == []
    assert decision.effects == [x.RetryChild(CHILD, CALL, "ann", 1)]
    assert driven.state.status is RunStatus.FAILED, "it goes on when the child has answered"


def test_a_call_waits_for_its_reopened_child_in_the_same_attempt() -> None:
    driven = calling()
    driven.do(c.ReopenCall(CALL, CHILD, 1))
    token = driven.state.tokens[CALL]
    assert (token.waiting, token.attempt, token.child, token.error) == (Waiting.SUBWORKFLOW, 1, CHILD, None)
    assert driven.state.status is RunStatus.RUNNING
    assert driven.state.error is None
    assert driven.do(c.ReopenCall(CALL, CHILD, 1)).events == [], "the same news again"


def test_the_first_end_of_a_reopened_child_means_nothing_when_it_comes_again() -> None:
    driven = calling()
    driven.do(c.ReopenCall(CALL, CHILD, 1))
    assert driven.do(c.EndChild(CALL, CHILD, "failed", error=BOOM)).events == []
    driven.do(c.EndChild(CALL, CHILD, "completed", {"v": 1}, life=1))
    assert driven.state.status is RunStatus.COMPLETED


def test_the_end_of_a_reopened_child_may_overtake_the_news_of_its_reopening() -> None:
    driven = calling()
    driven.do(c.EndChild(CALL, CHILD, "completed", {"v": 1}, life=1))
    assert driven.state.status is RunStatus.COMPLETED
    late = driven.do(c.ReopenCall(CALL, CHILD, 1))
    assert late.events == []


def test_a_call_that_has_timed_out_stops_a_child_that_is_reopened() -> None:
    graph = graph_of({"nodes": {"call": {"action": {"kind": "workflow_call", "workflow": "kid"}, "timeout_ms": 5}}})
    driven = Driven(graph, Shelf(graph, KID)).start()
    driven.fire("attempt")
    decision = driven.do(c.ReopenCall(CALL, CHILD, 1))
    assert (decision.events, decision.effects) == ([], [x.CancelChild(CHILD)])
    assert driven.state.status is RunStatus.FAILED


def paused() -> Driven:
    """A paused run that has heard of its child's failure, and has not applied it yet."""
    graph = graph_of({"nodes": {"call": {"action": {"kind": "workflow_call", "workflow": "kid"}}}})
    driven = Driven(graph, Shelf(graph, KID))
    driven.do(c.StartRun(run=RUN))
    driven.do(c.PauseRun())
    driven.do(c.EndChild(CALL, CHILD, "failed", error=BOOM))
    assert CALL in driven.state.deferred
    return driven


def test_a_paused_run_takes_back_the_end_of_a_child_that_is_reopened() -> None:
    driven = paused()
    driven.do(c.ReopenCall(CALL, CHILD, 1))
    token = driven.state.tokens[CALL]
    assert (token.waiting, token.child, token.life, driven.state.deferred) == (Waiting.SUBWORKFLOW, CHILD, 1, {})
    assert driven.do(c.ReopenCall(CALL, CHILD, 1)).events == [], "the same news again"
    resumed = driven.do(c.ResumeRun())
    assert not any(isinstance(event, e.TokenFailed) for event in resumed.events)
    driven.do(c.EndChild(CALL, CHILD, "completed", {"v": 1}, life=1))
    assert driven.state.status is RunStatus.COMPLETED


def test_the_end_of_a_child_reopened_during_a_pause_may_overtake_that_news() -> None:
    driven = paused()
    driven.do(c.EndChild(CALL, CHILD, "completed", {"v": 1}, life=1))
    assert driven.do(c.ReopenCall(CALL, CHILD, 1)).events == []
    driven.do(c.ResumeRun())
    assert driven.state.status is RunStatus.COMPLETED


def test_late_news_of_a_reopening_does_not_take_back_the_end_that_came_after_it() -> None:
    graph = graph_of({"nodes": {"call": {"action": {"kind": "workflow_call", "workflow": "kid"}}}})
    driven = Driven(graph, Shelf(graph, KID))
    driven.do(c.StartRun(run=RUN))
    driven.do(c.EndChild(CALL, CHILD, "failed", error=BOOM, life=1))  # its first end and its reopening are on the way
    assert driven.do(c.ReopenCall(CALL, CHILD, 1)).events == []
    assert driven.state.status is RunStatus.FAILED, "the child has ended, and will not say so again"


def test_the_end_of_a_new_child_that_comes_twice_is_not_taken_for_a_late_success_of_the_first() -> None:
    """Both belong to one visit: the first child was cancelled with a failure elsewhere, a retry called the second."""
    call = {"action": {"kind": "workflow_call", "workflow": "kid"}}
    graph = graph_of({"nodes": {"call": call, "task": TASK, "hold": TASK}})
    driven = Driven(graph, Shelf(graph, KID))
    driven.do(c.StartRun(run=RUN))
    task = TokenId(2)
    driven.do(c.FailAttempt(task, 1, BOOM))
    driven.do(c.RetryToken(task))
    second = driven.state.tokens[CALL].child
    assert second not in (None, CHILD)
    again = c.EndChild(CALL, second, "completed", {}, compensable=True)
    driven.do(again)
    assert driven.do(again).events == []


def test_a_child_that_nobody_waits_for_any_more_is_cancelled_when_it_is_reopened() -> None:
    driven = calling()
    driven.do(c.RetryToken(CALL))
    assert driven.do(c.ReopenCall(CALL, CHILD, 1)).effects == [x.CancelChild(CHILD)]


def test_a_child_that_cannot_be_retried_is_replaced() -> None:
    driven = calling()
    driven.do(c.RefuseCall(CALL, CHILD))
    assert driven.state.tokens[CALL].child == RunId(f"{CHILD}~2")


def test_a_child_says_again_that_it_was_reopened_when_its_parent_asks_again() -> None:
    link = x.ChildReopened(RunId("above"), TokenId(7), 1, 1, "operator")
    driven = Driven(KID)
    from treadle.model.references import ParentLink

    driven.do(c.StartRun(run=RUN, parent=ParentLink(RunId("above"), TokenId(7))))
    driven.do(c.FailAttempt(TokenId(1), 1, BOOM))
    assert link in driven.do(c.RetryRun(levels=1)).effects
    again = driven.do(c.RetryRun(levels=1))
    assert (again.events, again.effects) == ([], [link])


def test_a_child_that_has_nothing_to_retry_tells_its_parent_so() -> None:
    from treadle.model.references import ParentLink

    driven = Driven(KID)
    driven.do(c.StartRun(run=RUN, parent=ParentLink(RunId("above"), TokenId(7))))
    driven.do(c.CancelRun())
    decision = driven.do(c.RetryRun(levels=1))
    assert decision.rejection is None
    assert decision.effects == [x.ChildRefused(RunId("above"), TokenId(7), 1, "operator")]


# What is remembered, and for how long


def test_the_visits_a_retry_is_about_are_known_before() -> None:
    assert unhandled_visits(broken().state) == [TokenId(3)]


def test_what_went_down_is_forgotten_once_it_is_back() -> None:
    driven = broken()
    assert sorted(driven.state.fallen) == [2, 4]
    driven.do(c.RetryRun())
    state = driven.state
    assert (state.failures, state.fallen, state.fallen_arrivals, state.unhandled) == ({}, {}, {}, {})
    assert [group.retained for group in state.groups.values()] == [0]


def test_an_old_answer_means_nothing_once_the_visit_is_cancelled_before_its_new_attempt() -> None:
    graph = graph_of({"nodes": {"b": {**TASK, "compensate": TASK}, "c": TASK}, "on_unhandled_failure": LET_FINISH})
    driven = Driven(graph).start()
    visit = driven.token("b").id
    driven.do(c.FailAttempt(visit, 1, BOOM))
    driven.do(c.PauseRun("ann"))
    driven.do(c.RetryToken(visit, "ann"))
    driven.do(c.CancelToken(visit, "ann"))
    decision = driven.do(c.FinishAttempt(visit, 1, {}))
    assert decision.events == [], "attempt 1 was answered, and attempt 2 has not begun"


def test_what_a_join_went_on_without_is_forgotten() -> None:
    document = {**JOINED, "transitions": [dict(t) for t in JOINED["transitions"]]}  # type: ignore[call-overload]
    document["transitions"][1] = {  # type: ignore[index]
        **document["transitions"][1],  # type: ignore[index]
        "synchronization": {"sibling_group": "t", "on_branch_failure": "exclude"},
    }
    driven = Driven(graph_of(document))
    driven.do(c.StartRun(run=RUN))
    driven.do(c.FailAttempt(TokenId(3), 1, BOOM))
    assert driven.state.failures
    driven.do(c.FinishAttempt(TokenId(2), 1, {}))
    driven.do(c.FinishAttempt(TokenId(4), 1, {}))
    assert driven.state.failures == {}
    assert TokenId(3) not in driven.state.tokens
    assert "join has fired" in _refusal(driven, c.RetryToken(TokenId(3)))


def _refusal(driven: Driven, command: c.Command) -> str:
    rejection = driven.do(command).rejection
    assert rejection is not None
    return rejection.message


def test_a_new_attempt_keeps_the_error_its_visit_was_made_to_handle() -> None:
    nodes = {"a": TASK, "h": {**TASK, "input_mapping": {"why": "$._last_error.kind"}}}
    driven = Driven(graph_of({"nodes": nodes, "transitions": [{"from": "a", "to": "h", "on": "failure"}]}))
    driven.do(c.StartRun(run=RUN))
    driven.do(c.FailAttempt(TokenId(1), 1, BOOM))
    driven.do(c.FailAttempt(TokenId(2), 1, Error("OTHER", "other")))
    driven.do(c.RetryToken(TokenId(2)))
    assert driven.state.tokens[TokenId(2)].input == {"why": "BOOM"}


# Histories of version 0.1


def old(event: e.Event) -> e.Event:
    """As version 0.1 would have written it."""
    if isinstance(event, e.JoinFailed):
        return replace(event, remembers=False)
    return replace(event, because=0) if hasattr(event, "because") else event


def test_a_fan_in_that_failed_under_version_0_1_is_not_reopened() -> None:
    driven = broken()
    state = replay(driven.graph, [old(event) for event in driven.history])
    assert violations(driven.graph, state) == []
    for command in (c.RetryRun(), c.RetryToken(TokenId(3))):
        decision = decide(driven.graph, state, command, driven.now, driven.catalog)
        assert decision.rejection is not None
        assert "older version" in decision.rejection.message


def test_a_fan_in_whose_clock_ran_out_under_version_0_1_is_not_reopened() -> None:
    transitions = [
        {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
        {"from": "b", "to": "z", "synchronization": {"sibling_group": "t", "timeout_ms": 100}},
    ]
    driven = Driven(graph_of({"nodes": {"a": {}, "b": TASK, "z": {}}, "transitions": transitions})).start()
    driven.do(c.FinishAttempt(TokenId(2), 1, {}))
    driven.fire("sync")
    state = replay(driven.graph, [old(event) for event in driven.history])
    rejection = decide(driven.graph, state, c.RetryRun(), driven.now, driven.catalog).rejection
    assert rejection is not None and "older version" in rejection.message


def test_a_visit_that_failed_under_version_0_1_is_retried_alone_as_it_was_then() -> None:
    graph = graph_of({"nodes": {"a": TASK, "b": TASK}, "start": ["a", "b"]})
    driven = Driven(graph)
    driven.do(c.StartRun(run=RUN))
    driven.do(c.FailAttempt(TokenId(1), 1, BOOM))
    state = replay(graph, [old(event) for event in driven.history])
    decision = decide(graph, state, c.RetryRun(), driven.now, driven.catalog)
    assert [event.type for event in decision.events][:2] == ["run.resumed", "token.retry_scheduled"]
    assert list(state.tokens) == [1], "what was cancelled with it is not known any more"
    assert violations(graph, state) == []

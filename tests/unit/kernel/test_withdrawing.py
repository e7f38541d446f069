"""Withdrawing: runs, tokens, nodes, groups; what is told outside, and what late results come to (2.8, A5, A6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.driving import TASK, Driven, Shelf, graph_of, problems
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.ids import TokenId

Json = Any
CHILD = Shelf(graph_of({"workflow": "child", "nodes": {"x": {}}}))

OUTSIDE: list[tuple[str, dict[str, Json], type[x.Effect]]] = [
    ("a worker is told to stop", TASK, x.StopTask),
    ("a gate is closed", {"action": {"kind": "human"}}, x.CloseGate),
    ("a timer is cleared", {"action": {"kind": "wait", "ms": 10}}, x.ClearTimer),
    ("a child is cancelled", {"action": {"kind": "workflow_call", "workflow": "child"}}, x.CancelChild),
    ("a webhook worker is told to stop", {"action": {"kind": "webhook", "url": "https://w.test/"}}, x.StopTask),
]


@pytest.mark.parametrize(("why", "node", "effect"), OUTSIDE, ids=[row[0] for row in OUTSIDE])
@pytest.mark.parametrize(
    "command", [c.CancelToken(TokenId(1)), c.CancelRun(), c.AbortRun()], ids=["token", "run", "abort"]
)
def test_whoever_works_for_a_withdrawn_visit_is_told(
    why: str, node: dict[str, Json], effect: type[x.Effect], command: c.Command
) -> None:
    driven = Driven(graph_of({"nodes": {"a": node, "b": TASK}, "start": ["a", "b"]}), CHILD).start()
    decision = driven.do(command)
    assert any(isinstance(told, effect) for told in decision.effects), decision.effects
    assert not problems(driven)


def test_cancelling_a_run_twice_is_no_event() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK}})).start()
    driven.do(c.CancelRun())
    assert driven.state.status == "cancelled" and not driven.do(c.CancelRun()).events


def test_a_run_whose_last_visit_was_withdrawn_on_its_own_completes() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]})).start()
    driven.do(c.CancelToken(TokenId(1)))
    assert driven.state.status == "completed" and not driven.tokens("b")


def grouped(join: dict[str, Json] | None = None) -> Driven:
    sync = {"sibling_group": "t", "merge": {"source": "_branch.output.v", "target": "state.all"}, **(join or {})}
    return Driven(
        graph_of(
            {
                "nodes": {"a": {}, "b": {**TASK, "output_mapping": {"state.v": "$.v"}}, "z": {}},
                "transitions": [
                    {"id": "t", "from": "a", "to": "b", "spawn_count": 3},
                    {"from": "b", "to": "z", "synchronization": sync},
                ],
            }
        )
    ).start()


@pytest.mark.parametrize("arrived", [0, 1, 2])
def test_a_group_completed_from_outside_fires_with_what_has_arrived(arrived: int) -> None:
    driven = grouped()
    for branch in range(arrived):
        driven.finish("b", branch, output={"v": branch})
    driven.do(c.CancelGroup("t"))
    assert driven.state.context()["state"] == {"all": list(range(arrived))} and driven.state.status == "completed"
    assert driven.count("token.cancelled") == 3 - arrived


def test_a_group_that_is_dropped_keeps_finished_visits_completed_and_continues_nowhere() -> None:
    driven = grouped()
    driven.finish("b", 0, output={"v": 0})
    driven.do(c.CancelGroup("t", "drop"))
    assert driven.count("token.cancelled") == 2 and not driven.count("join.fired") and driven.ended
    assert not [x for x in driven.history if isinstance(x, e.TokenCreated) and x.node == "z"]


def test_a_minimum_of_successes_still_holds_when_a_group_is_completed() -> None:
    driven = grouped({"min_success_count": 2})
    driven.finish("b", 0, output={"v": 0})
    driven.do(c.CancelGroup("t"))
    assert driven.state.error is not None and driven.state.error.kind == "MIN_SUCCESS_NOT_MET"


def test_an_unknown_group_is_not_found() -> None:
    rejection = grouped().do(c.CancelGroup("nobody")).rejection
    assert rejection is not None and rejection.kind == "NOT_FOUND"


def test_a_transition_withdraws_exactly_the_nodes_it_names() -> None:
    driven = Driven(
        graph_of(
            {
                "nodes": {"a": {}, "x": TASK, "b": TASK, "k": {"action": {"kind": "human"}}, "other": TASK, "z": {}},
                "transitions": [
                    *({"from": "a", "to": ref} for ref in ("x", "b", "k", "other")),
                    {"from": "x", "to": "z", "cancels": {"nodes": ["b", "k"]}},
                ],
            }
        )
    ).start()
    driven.finish("x")
    assert [len(driven.tokens(ref)) for ref in ("b", "k", "other")] == [0, 0, 1]
    assert driven.state.status == "running" and driven.count("token.cancelled") == 2


@pytest.mark.parametrize(("how", "status"), [(True, "completed"), ("cancelled", "cancelled"), ("failed", "failed")])
def test_a_terminating_node_ends_the_whole_run_at_once(how: Json, status: str) -> None:
    driven = Driven(graph_of({"nodes": {"a": {**TASK, "terminates": how}, "b": TASK}, "start": ["a", "b"]})).start()
    driven.finish("a")
    assert driven.state.status == status and driven.count("token.cancelled") == 1 and not problems(driven)


def test_a_late_result_is_recorded_and_never_applied() -> None:
    node = {**TASK, "output_mapping": {"state.v": "$.v"}}
    driven = Driven(graph_of({"nodes": {"a": node, "b": TASK}, "start": ["a", "b"]})).start()
    driven.do(c.CancelToken(TokenId(1)))
    assert [event.type for event in driven.do(c.FinishAttempt(TokenId(1), 1, {"v": 1})).events] == ["result.ignored"]
    assert driven.state.context()["state"] == {}

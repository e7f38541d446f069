"""Joins at their edges: empty groups, quorums at birth, minimums, overlays, timeouts, dead and mismatched joins."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.driving import TASK, Driven, graph_of
from treadle.graph.compile import compile_graph
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e
from treadle.model.ids import TokenId

Json = Any
WRITER = {**TASK, "output_mapping": {"state.v": "$.v"}}


def fan(sync: dict[str, Json], node: dict[str, Json] | None = None, **whole: Json) -> Driven:
    """a → b, once per item of input.xs → joined at z."""
    nodes = {"a": {}, "b": node or WRITER, "z": TASK}
    transitions = [
        {"id": "t", "from": "a", "to": "b", "foreach": {"collection": "input.xs"}},
        {"from": "b", "to": "z", "synchronization": {"sibling_group": "t", **sync}},
        *whole.pop("more", []),
    ]
    return Driven(graph_of({"nodes": {**nodes, **whole.pop("nodes", {})}, "transitions": transitions, **whole}))


def failed_with(driven: Driven) -> str | None:
    return next((event.error.kind for event in driven.history if isinstance(event, e.JoinFailed)), None)


def merging(strategy: str) -> dict[str, Json]:
    return {"merge": {"source": "_branch.output.v", "target": "state.all", "strategy": strategy}}


EMPTY = {"append": [], "concat": [], "merge_object": {}, "keyed_by_branch": {}, "last_wins": None}  # type: ignore[var-annotated]


@pytest.mark.parametrize(("strategy", "merged"), EMPTY.items())
def test_an_empty_group_is_born_satisfied_with_the_empty_merge(strategy: str, merged: Json) -> None:
    driven = fan(merging(strategy)).start({"xs": []})
    assert len(driven.tokens("z")) == 1 and driven.state.context()["state"] == {"all": merged}


@pytest.mark.parametrize(
    ("sync", "kind"),
    [
        ({"strategy": "any"}, "QUORUM_UNREACHABLE"),
        ({"strategy": {"m_of_n": 2}}, "QUORUM_UNREACHABLE"),
        ({"min_success_count": 1}, "MIN_SUCCESS_NOT_MET"),
    ],
)
def test_an_empty_group_that_needs_a_success_fails_at_once(sync: dict[str, Json], kind: str) -> None:
    assert failed_with(fan(sync).start({"xs": []})) == kind


@pytest.mark.parametrize(("items", "kind"), [([1], "QUORUM_UNREACHABLE"), ([1, 2], None)])
def test_a_quorum_larger_than_its_group_fails_when_the_group_is_made(items: list[int], kind: str | None) -> None:
    assert failed_with(fan({"strategy": {"m_of_n": 2}}).start({"xs": items})) == kind


@pytest.mark.parametrize(("percent", "needed"), [(1, 1), (33, 1), (34, 2), (50, 2), (67, 3), (100, 3)])
def test_a_percentage_is_rounded_up(percent: int, needed: int) -> None:
    driven = fan({"strategy": {"percent": percent}, "on_early_complete": "cancel"}).start({"xs": [0, 0, 0]})
    for branch in range(needed):
        assert driven.count("join.fired") == 0
        driven.finish("b", branch, output={"v": 0})
    assert driven.count("join.fired") == 1


def test_a_firing_creates_exactly_one_continuation_and_completes_who_waited() -> None:
    driven = fan({}).start({"xs": [0, 0]})
    driven.finish("b", 0, output={"v": 0})
    events = driven.finish("b", 1, output={"v": 0}).events
    assert [x.type for x in events][-6:-2] == ["join.fired", "token.completed", "token.completed", "token.created"]


def test_without_a_merge_the_higher_branch_wins_and_the_conflict_is_told() -> None:
    driven = fan({}).start({"xs": [0, 0, 0]})
    for branch, value in ((2, "c"), (0, "a"), (1, "a")):
        driven.finish("b", branch, output={"v": value})
    assert driven.state.context()["state"] == {"v": "c"} and driven.count("context.conflict") == 1


def test_branches_that_agree_are_no_conflict() -> None:
    driven = fan({}).start({"xs": [0, 0]})
    for branch in (1, 0):
        driven.finish("b", branch, output={"v": "same"})
    assert driven.state.context()["state"] == {"v": "same"} and not driven.count("context.conflict")


def test_a_merge_keeps_what_branches_wrote_out_of_the_enclosing_scope() -> None:
    driven = fan(merging("append")).start({"xs": [0, 0]})
    for branch in (1, 0):
        driven.finish("b", branch, output={"v": branch})
    assert driven.state.context()["state"] == {"all": [0, 1]}


def test_a_contribution_that_is_falsy_is_still_a_contribution() -> None:
    driven = fan(merging("append")).start({"xs": [0] * 4})
    for branch, value in enumerate([0, "", False, None]):
        driven.finish("b", branch, output={"v": value})
    assert driven.state.context()["state"] == {"all": [0, "", False, None]}


def test_a_merge_that_does_not_fit_fails_the_fan_in() -> None:
    driven = fan(merging("concat")).start({"xs": [0]})
    driven.finish("b", 0, output={"v": {"no": "array"}})
    assert failed_with(driven) == "MERGE_TYPE" and not driven.tokens("z")


def test_a_merged_value_against_the_state_schema_fails_the_fan_in() -> None:
    schema = {"type": "object", "properties": {"all": {"type": "array", "maxItems": 1}}}
    driven = fan(merging("append"), state_schema=schema).start({"xs": [0, 0]})
    for branch in (0, 1):
        driven.finish("b", branch, output={"v": 1})
    assert failed_with(driven) == "SCHEMA"


def test_a_failed_fan_in_may_be_routed_before_its_target_ran() -> None:
    driven = fan({"on_branch_failure": "fail"}, nodes={"h": TASK}, more=[{"from": "z", "to": "h", "on": "failure"}])
    driven.start({"xs": [0, 0]})
    driven.fail("b", 0)
    handler = driven.token("h")
    assert handler.last_error is not None and handler.last_error.kind == "BRANCH_FAILED" and handler.path == "root"
    assert not [x for x in driven.history if isinstance(x, e.TokenCreated) and x.node == "z"]
    assert driven.state.status == "running"


def test_the_clock_of_a_join_starts_with_its_first_arrival_and_is_never_reset() -> None:
    driven = fan({"timeout_ms": 50}).start({"xs": [0, 0, 0]})
    assert not driven.state.timers
    driven.finish("b", 0, output={"v": 0})
    due = [timer.due for timer in driven.state.timers.values()]
    driven.now += 20
    driven.finish("b", 1, output={"v": 0})
    assert [timer.due for timer in driven.state.timers.values()] == due == [driven.now + 30]


def test_a_join_whose_clock_has_rung_does_not_stop_that_clock_again() -> None:
    driven = fan({"timeout_ms": 50, "on_timeout": "proceed_with_available", **merging("append")}).start({"xs": [0, 0]})
    driven.finish("b", 0)
    (timer,) = [timer for timer in driven.state.timers.values() if timer.purpose == "sync"]
    told = driven.fire("sync").effects
    assert len(driven.tokens("z")) == 1 and x.ClearTimer(timer.id) not in told


def test_a_sync_timeout_times_the_waiting_out_and_withdraws_the_live() -> None:
    driven = fan({"timeout_ms": 50}).start({"xs": [0, 0]})
    driven.finish("b", 0, output={"v": 0})
    types = [event.type for event in driven.fire("sync").events]
    assert failed_with(driven) == "SYNC_TIMEOUT"
    assert types.count("token.timed_out") == 1 and types.count("token.cancelled") == 1


def test_proceeding_with_what_is_available_times_the_live_out() -> None:
    driven = fan({"timeout_ms": 50, "on_timeout": "proceed_with_available", **merging("append")}).start({"xs": [0, 0]})
    driven.finish("b", 1, output={"v": "late?"})
    types = [event.type for event in driven.fire("sync").events]
    assert types.count("token.timed_out") == 1 and "join.fired" in types
    assert driven.state.context()["state"] == {"all": ["late?"]}
    late = driven.do(c.FinishAttempt(TokenId(2), 1, {"v": 1}))
    assert [event.type for event in late.events] == ["result.ignored"]


def test_a_token_outside_the_group_passes_with_a_warning_or_fails_under_strict() -> None:
    document: dict[str, Json] = {
        "nodes": {"s": {}, "a": {}, "b": {}, "x": {}, "z": TASK},
        "transitions": [
            {"from": "s", "to": "x", "condition": "input.skip == true"},
            {"from": "s", "to": "a", "priority": 2},
            {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
            {"from": "b", "to": "z", "synchronization": {"sibling_group": "t"}},
            {"from": "x", "to": "z", "synchronization": {"sibling_group": "t"}},
        ],
    }
    mild = Driven(graph_of(document)).start({"skip": True})
    assert mild.count("join.mismatch") == 1 and len(mild.tokens("z")) == 1
    strict = Driven(compile_graph(replace(mild.graph.definition, strict=True))).start({"skip": True})
    assert strict.state.error is not None and strict.state.error.kind == "JOIN_MISMATCH"


def test_a_join_nobody_can_reach_is_dead_and_the_run_completes() -> None:
    driven = fan({}, nodes={"x": {}}, more=[{"from": "b", "to": "x", "priority": 0}]).start({"xs": [0, 0]})
    for branch in (0, 1):
        driven.finish("b", branch, output={"v": 0})
    assert driven.count("join.dead") == 1 and driven.state.status == "completed"


def test_streaming_writes_the_target_with_every_arrival() -> None:
    sync = merging("append")
    sync["merge"]["streaming"] = True
    driven = fan(sync).start({"xs": [0, 0]})
    driven.finish("b", 1, output={"v": "b"})
    assert driven.state.context()["state"] == {"all": ["b"]}
    driven.finish("b", 0, output={"v": "a"})
    assert driven.state.context()["state"] == {"all": ["a", "b"]}

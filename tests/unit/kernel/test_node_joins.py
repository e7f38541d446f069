"""A node's own join: all inbound, reachable, fifo, counted (2.5, A0, A8, A12)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.driving import TASK, Driven, graph_of
from treadle.model import commands as c

Json = Any


def meeting(join: Json, more: tuple[dict[str, Json], ...] = (), **nodes: Json) -> Driven:
    """a starts p, q and r (each a task), which meet at j."""
    transitions = [{"from": "a", "to": ref} for ref in "pqr"] + [{"from": ref, "to": "j"} for ref in "pqr"]
    whole = {"a": {}, "p": TASK, "q": TASK, "r": TASK, "j": {**TASK, "join": join}, **nodes}
    return Driven(graph_of({"nodes": whole, "transitions": [*transitions, *more]})).start()


def fired(driven: Driven) -> int:
    return driven.count("join.fired")


@pytest.mark.parametrize("order", ["pqr", "rqp", "qpr"])
@pytest.mark.parametrize("join", ["all_inbound", "all_reachable", "inbound_fifo", {"inbound": 3}, {"tokens": 3}])
def test_all_three_are_awaited_in_any_order(join: Json, order: str) -> None:
    driven = meeting(join)
    for ref in order:
        assert fired(driven) == 0
        driven.finish(ref)
    assert fired(driven) == 1 and len(driven.tokens("j")) == 1


def test_all_inbound_whose_third_was_withdrawn_is_a_deadlock() -> None:
    driven = meeting("all_inbound")
    driven.finish("p")
    driven.finish("q")
    driven.do(c.CancelToken(driven.token("r").id))
    assert (
        driven.state.error is not None and driven.state.error.kind == "DEADLOCK" and "'j'" in driven.state.error.message
    )


def test_all_reachable_goes_on_when_the_third_can_no_longer_come() -> None:
    driven = meeting("all_reachable")
    driven.finish("p")
    driven.finish("q")
    driven.do(c.CancelToken(driven.token("r").id))
    assert fired(driven) == 1


def test_all_reachable_does_not_wait_for_a_token_that_has_left_for_good() -> None:
    driven = meeting("all_reachable", ({"from": "r", "to": "x", "priority": 0},), x=TASK)
    driven.finish("p")
    driven.finish("q")
    assert fired(driven) == 0
    driven.finish("r")
    assert fired(driven) == 1 and len(driven.tokens("x")) == 1


@pytest.mark.parametrize(("rest", "visits"), [("absorb", 1), ("cancel", 1)])
def test_a_counted_join_fires_at_the_count_and_deals_with_the_rest(rest: str, visits: int) -> None:
    driven = meeting({"inbound": 2, "rest": rest})
    driven.finish("q")
    assert fired(driven) == 0
    driven.finish("p")
    assert fired(driven) == 1
    assert len(driven.tokens("r")) == (0 if rest == "cancel" else 1)
    if rest == "absorb":
        driven.finish("r")
    driven.finish("j")
    assert driven.state.status == "completed" and fired(driven) == visits


LOOPED = {
    "nodes": {"a": {}, "p": {}, "q": TASK, "j": {"join": {"inbound": 1, "rest": "block"}}, "z": TASK},
    "transitions": [
        {"from": "a", "to": "p", "spawn_count": 2},
        {"from": "a", "to": "q"},
        {"from": "p", "to": "j"},
        {"from": "q", "to": "j"},
        {"from": "j", "to": "z"},
    ],
}


def test_two_tokens_on_one_transition_are_one_branch_and_block_waits_for_the_next_round() -> None:
    driven = Driven(graph_of(LOOPED)).start()
    assert fired(driven) == 1 and len(driven.tokens("z")) == 1
    driven.finish("q")
    assert fired(driven) == 2 and len(driven.tokens("z")) == 2, driven.log()


def test_tokens_are_counted_on_whichever_transition_they_come() -> None:
    driven = Driven(graph_of({**LOOPED, "nodes": {**LOOPED["nodes"], "j": {"join": {"tokens": 3}}}})).start()  # type: ignore[dict-item]
    assert fired(driven) == 0
    driven.finish("q")
    assert fired(driven) == 1


def test_a_remainder_that_can_never_be_completed_is_a_deadlock() -> None:
    driven = Driven(graph_of({**LOOPED, "nodes": {**LOOPED["nodes"], "j": {"join": {"tokens": 2}}}})).start()  # type: ignore[dict-item]
    driven.finish("q")
    driven.finish("z")
    assert driven.state.error is not None and driven.state.error.kind == "DEADLOCK"


def test_fifo_pairs_in_order_and_keeps_the_surplus() -> None:
    document = {**LOOPED, "nodes": {**LOOPED["nodes"], "j": {"join": "inbound_fifo"}}}  # type: ignore[dict-item]
    driven = Driven(graph_of(document)).start()
    driven.finish("q")
    assert fired(driven) == 1
    driven.finish("z")
    assert driven.state.error is not None and driven.state.error.kind == "DEADLOCK"


def test_a_node_join_keeps_one_instance_per_item() -> None:
    driven = Driven(
        graph_of(
            {
                "nodes": {"s": {}, "a": {}, "p": TASK, "q": TASK, "j": {"join": "all_inbound"}, "z": {}},
                "transitions": [
                    {"id": "t", "from": "s", "to": "a", "spawn_count": 2},
                    {"from": "a", "to": "p"},
                    {"from": "a", "to": "q"},
                    {"from": "p", "to": "j"},
                    {"from": "q", "to": "j"},
                    {"from": "j", "to": "z", "synchronization": {"sibling_group": "t"}},
                ],
            }
        )
    ).start()
    driven.finish("p", 0)
    driven.finish("q", 1)
    assert fired(driven) == 0
    driven.finish("q", 0)
    assert fired(driven) == 1
    driven.finish("p", 1)
    assert fired(driven) == 3 and driven.state.status == "completed"


@pytest.mark.parametrize("limit", [1, 2])
def test_all_reachable_waits_for_a_loop_until_its_limit_and_no_longer(limit: int) -> None:
    """From c only the loop leads to j: while it may be followed the join waits, and once it is spent it does not."""
    driven = Driven(
        graph_of(
            {
                "nodes": {"a": {}, "p": TASK, "b": TASK, "c": TASK, "x": {}, "j": {**TASK, "join": "all_reachable"}},
                "transitions": [
                    {"from": "a", "to": "p"},
                    {"from": "a", "to": "b"},
                    {"from": "p", "to": "j"},
                    {"from": "b", "to": "j", "condition": "input.done"},
                    {"from": "b", "to": "c", "priority": 2},
                    {"from": "c", "to": "b", "loop": {"max_iterations": limit}},
                    {"from": "c", "to": "x", "priority": 2},
                ],
            }
        )
    ).start({"done": False})
    driven.finish("p")
    for _ in range(limit):
        driven.finish("b")
        assert fired(driven) == 0, "the loop may be followed once more"
        driven.finish("c")
        assert fired(driven) == 0, "from b there is a way to j"
    driven.finish("b")
    assert fired(driven) == 1, driven.log()

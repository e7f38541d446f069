"""The counters behind every join, move by move: who is live, who waits, who has arrived (2.5)."""

from __future__ import annotations

from tests.driving import TASK, Driven, graph_of, problems
from treadle.kernel.group_state import SiteState
from treadle.model import commands as c
from treadle.model.ids import GroupId

JOIN = {"sibling_group": "t", "strategy": {"m_of_n": 2}}
TWO_HOPS = graph_of(
    {
        "nodes": {"a": {}, "b": TASK, "c": TASK, "away": TASK, "z": TASK},
        "transitions": [
            {"id": "t", "from": "a", "to": "b", "spawn_count": 3},
            {"from": "b", "to": "away", "condition": "nodes.b.output.away == true"},
            {"from": "b", "to": "c", "priority": 2},
            {"from": "c", "to": "z", "synchronization": JOIN},
        ],
    }
)


def site(driven: Driven, group: int = 1) -> SiteState:
    assert not problems(driven), problems(driven)
    return driven.state.groups[GroupId(group)].sites[0]


def counted(driven: Driven, group: int = 1) -> tuple[list[int], list[int], int]:
    """(live branches, branches with an arrival, arrived)"""
    here = site(driven, group)
    return sorted(here.live), sorted(here.waiting), here.arrived


def test_a_branch_stays_live_from_hop_to_hop() -> None:
    driven = Driven(TWO_HOPS).start()
    assert counted(driven) == ([0, 1, 2], [], 0)
    driven.finish("b", 0, output={"away": False})
    assert counted(driven) == ([0, 1, 2], [], 0)


def test_a_branch_that_arrives_is_no_longer_live() -> None:
    driven = Driven(TWO_HOPS).start()
    driven.finish("b", 1, output={"away": False})
    driven.finish("c", 1)
    assert counted(driven) == ([0, 2], [1], 1)


def test_a_branch_routed_where_no_way_leads_back_has_ended_while_it_still_works() -> None:
    driven = Driven(TWO_HOPS).start()
    driven.finish("b", 1, output={"away": True})
    assert counted(driven) == ([0, 2], [], 0)
    assert len(driven.tokens("away")) == 1


def test_a_cancelled_branch_has_ended_and_not_failed() -> None:
    driven = Driven(TWO_HOPS).start()
    driven.do(c.CancelToken(driven.token("b", 0).id))
    assert counted(driven) == ([1, 2], [], 0) and not driven.state.groups[GroupId(1)].failed


def test_a_failed_branch_is_neither_live_nor_arrived() -> None:
    driven = Driven(TWO_HOPS).start()
    driven.fail("b", 2)
    assert counted(driven) == ([0, 1], [], 0) and list(driven.state.groups[GroupId(1)].failed) == [2]


def test_an_operator_s_retry_makes_a_failed_branch_live_again() -> None:
    driven = Driven(TWO_HOPS).start()
    driven.fail("b", 2)
    driven.do(c.RetryToken(driven.token("b", 2).id))
    assert counted(driven) == ([0, 1, 2], [], 0) and not driven.state.groups[GroupId(1)].failed


def test_a_branch_with_two_tokens_has_arrived_when_both_are_through() -> None:
    driven = Driven(
        graph_of(
            {
                "nodes": {"a": {}, "b": TASK, "c": TASK, "d": TASK, "z": {}},
                "transitions": [
                    {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
                    {"from": "b", "to": "c"},
                    {"from": "b", "to": "d"},
                    {"from": "c", "to": "z", "synchronization": {"sibling_group": "t"}},
                    {"from": "d", "to": "z", "synchronization": {"sibling_group": "t"}},
                ],
            }
        )
    ).start()
    driven.finish("b", 0)
    driven.finish("c", 0)
    assert counted(driven) == ([0, 1], [0], 0)
    driven.finish("d", 0)
    assert counted(driven) == ([1], [0], 1)


def test_stragglers_of_an_early_inner_join_are_live_for_no_outer_join() -> None:
    driven = Driven(
        graph_of(
            {
                "nodes": {"a": {}, "b": {}, "c": TASK, "y": TASK, "z": {}},
                "transitions": [
                    {"id": "o", "from": "a", "to": "b", "spawn_count": 2},
                    {"id": "i", "from": "b", "to": "c", "spawn_count": 2},
                    {"from": "c", "to": "y", "synchronization": {"sibling_group": "i", "strategy": "any"}},
                    {"from": "y", "to": "z", "synchronization": {"sibling_group": "o"}},
                ],
            }
        )
    ).start()
    driven.finish("c", 0, 0)
    driven.finish("y", 0)
    assert counted(driven) == ([1], [0], 1)
    driven.finish("c", 1, 1)
    driven.finish("y", 1)
    assert driven.count("join.fired") == 3 and not driven.ended
    driven.finish("c", 0, 1)
    driven.finish("c", 1, 0)
    assert driven.state.status == "completed", driven.log()


def test_a_fired_join_holds_nobody() -> None:
    driven = Driven(TWO_HOPS).start()
    for branch in (0, 1):
        driven.finish("b", branch, output={"away": False})
        driven.finish("c", branch)
    here = site(driven)
    assert (here.status, here.waiting, here.arrived) == ("fired", {}, 0)

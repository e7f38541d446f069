"""Dispatching: paths, frames, groups, empty collections, bad counts and every limit (2.2, 2.3, 2.16)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.driving import TASK, Driven, graph_of
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.ids import GroupId


def opened(driven: Driven) -> list[e.GroupOpened]:
    return [event for event in driven.history if isinstance(event, e.GroupOpened)]


def paths(driven: Driven, node: str) -> list[str]:
    return [event.path for event in driven.history if isinstance(event, e.TokenCreated) and event.node == node]


def test_a_dispatch_numbers_its_tokens_over_all_transitions() -> None:
    driven = Driven(
        graph_of(
            {
                "nodes": {"a": {}, "b": TASK, "c": TASK},
                "transitions": [{"id": "t", "from": "a", "to": "b", "spawn_count": 3}, {"from": "a", "to": "c"}],
            }
        )
    ).start()
    assert paths(driven, "b") == ["root.a.0", "root.a.1", "root.a.2"] and paths(driven, "c") == ["root.a.3"]
    assert [token.frames for token in driven.tokens("b")] == [((1, 0),), ((1, 1),), ((1, 2),)]
    assert driven.token("c").frames == ()


def test_a_hop_inherits_path_and_frames_and_a_join_gives_the_origin_s_back() -> None:
    driven = Driven(
        graph_of(
            {
                "nodes": {"a": {}, "b": {}, "c": TASK, "z": TASK},
                "transitions": [
                    {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
                    {"from": "b", "to": "c"},
                    {"from": "c", "to": "z", "synchronization": {"sibling_group": "t"}},
                ],
            }
        )
    ).start()
    assert paths(driven, "c") == ["root.a.0", "root.a.1"] and driven.token("c", 1).frames == ((1, 1),)
    driven.finish("c", 0)
    driven.finish("c", 1)
    assert driven.token("z").path == "root" and driven.token("z").frames == ()


def test_several_start_nodes_are_all_root() -> None:
    driven = Driven(graph_of({"nodes": {"a": TASK, "b": TASK}, "start": ["a", "b"]})).start()
    assert paths(driven, "a") + paths(driven, "b") == ["root", "root"]


def test_a_static_count_of_one_without_a_name_makes_no_group() -> None:
    driven = Driven(graph_of({"nodes": {"a": {}, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]})).start()
    assert not opened(driven) and paths(driven, "b") == ["root"]


@pytest.mark.parametrize("items", [[], ["x"], ["x", "y"]])
def test_a_foreach_always_makes_a_group(items: list[str]) -> None:
    transitions = [{"id": "t", "from": "a", "to": "b", "foreach": {"collection": "input.xs", "item_var": "x"}}]
    driven = Driven(graph_of({"nodes": {"a": {}, "b": TASK}, "transitions": transitions})).start({"xs": items})
    assert [(group.total, group.items) for group in opened(driven)] == [(len(items), items)]
    assert driven.count("fan_out.empty") == (not items)


NESTED = graph_of(
    {
        "nodes": {"a": {}, "b": {}, "c": TASK, "y": {}, "z": {}},
        "transitions": [
            {"id": "o", "from": "a", "to": "b", "spawn_count": 2},
            {"id": "i", "from": "b", "to": "c", "foreach": {"collection": "input.xs"}},
            {"from": "c", "to": "y", "synchronization": {"sibling_group": "i"}},
            {"from": "y", "to": "z", "synchronization": {"sibling_group": "o"}},
        ],
    }
)


def test_nested_groups_stack_their_frames_and_never_mix() -> None:
    driven = Driven(NESTED).start({"xs": [7, 8]})
    assert [tuple(i for _, i in t.frames) for t in driven.tokens("c")] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for branch in ((0, 1), (1, 0), (1, 1)):
        driven.finish("c", *branch)
    assert driven.count("join.fired") == 1
    driven.finish("c", 0, 0)
    assert driven.ended and paths(driven, "y") == ["root.a.1", "root.a.0"] and paths(driven, "z") == ["root"]


def test_inner_empty_groups_continue_before_the_outer_join_is_decided() -> None:
    driven = Driven(NESTED).start({"xs": []})
    assert paths(driven, "z") == ["root"] and driven.state.status == "completed", driven.log()
    assert driven.count("join.dead") == 0


COUNTS: list[tuple[Any, str | None]] = [
    (0, None),
    (2, None),
    (2.0, None),
    (-1, "INVALID_SPAWN_COUNT"),
    (1.5, "INVALID_SPAWN_COUNT"),
    (True, "INVALID_SPAWN_COUNT"),
    ("2", "INVALID_SPAWN_COUNT"),
    (None, "INVALID_SPAWN_COUNT"),
]
COUNTED = graph_of(
    {
        "nodes": {"a": {}, "b": TASK},
        "transitions": [{"from": "a", "to": "b", "spawn_count": {"from_context": "input.n"}}],
    }
)


@pytest.mark.parametrize(("count", "kind"), COUNTS)
def test_a_dynamic_count_is_a_whole_number_or_the_visit_fails(count: Any, kind: str | None) -> None:
    driven = Driven(COUNTED).start({"n": count})
    assert (driven.state.error.kind if driven.state.error else None) == kind, driven.log()
    if kind is None:
        assert len(driven.tokens("b")) == count


COLLECTIONS: list[tuple[str, Any, int | str]] = [
    ("fail", [1, 2], 2),
    ("fail", {"a": 1}, "INVALID_COLLECTION"),
    ("fail", None, "INVALID_COLLECTION"),
    ("fail", "ab", "INVALID_COLLECTION"),
    ("empty", None, 0),
    ("single", None, 1),
    ("single", "ab", 1),
    ("single", [1, 2], 2),
]


@pytest.mark.parametrize(("policy", "value", "result"), COLLECTIONS)
def test_what_is_no_array_follows_on_missing(policy: str, value: Any, result: int | str) -> None:
    foreach = {"collection": "input.xs", "on_missing": policy}
    driven = Driven(
        graph_of({"nodes": {"a": {}, "b": TASK}, "transitions": [{"from": "a", "to": "b", "foreach": foreach}]})
    )
    driven.start({"xs": value})
    failed = driven.state.error.kind if driven.state.error else None
    assert (failed or len(driven.tokens("b"))) == result, driven.log()


def limited(limits: dict[str, int], count: int) -> Driven:
    transitions = [{"id": "t", "from": "a", "to": "b", "spawn_count": {"from_context": "input.n"}}]
    return Driven(graph_of({"nodes": {"a": {}, "b": TASK}, "transitions": transitions, "limits": limits})).start(
        {"n": count}
    )


@pytest.mark.parametrize(("name", "limit", "fits"), [("max_spawn_count", 3, 3), ("max_tokens_per_run", 4, 3)])
def test_a_dispatch_over_a_limit_is_all_or_nothing(name: str, limit: int, fits: int) -> None:
    assert len(limited({name: limit}, fits).tokens("b")) == fits
    over = limited({name: limit}, fits + 1)
    error = over.state.error
    assert error is not None and error.kind == "LIMIT_EXCEEDED" and name in error.message and "'t'" in error.message
    assert not opened(over) and not paths(over, "b")


def test_a_continuation_counts_as_a_visit() -> None:
    document = {
        "nodes": {"a": {}, "b": {}, "z": {}},
        "transitions": [
            {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
            {"from": "b", "to": "z", "synchronization": {"sibling_group": "t"}},
        ],
    }
    assert Driven(graph_of({**document, "limits": {"max_tokens_per_run": 4}})).start().state.status == "completed"
    over = Driven(graph_of({**document, "limits": {"max_tokens_per_run": 3}})).start()
    assert over.state.error is not None and over.state.error.kind == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("most", [1, 2, 5])
def test_lazy_spawning_keeps_so_many_branches_alive_and_no_more(most: int) -> None:
    foreach = {"collection": "input.xs", "max_in_flight": most}
    transitions = [
        {"id": "t", "from": "a", "to": "b", "foreach": foreach},
        {"from": "b", "to": "z", "synchronization": {"sibling_group": "t"}},
    ]
    driven = Driven(graph_of({"nodes": {"a": {}, "b": TASK, "z": {}}, "transitions": transitions})).start(
        {"xs": [0] * 5}
    )
    alive = []
    for index in range(5):
        alive.append(sum(1 for token in driven.tokens("b") if token.waiting is None))
        assert driven.count("join.fired") == 0
        driven.finish("b", index)
    assert alive == [min(most, 5 - index) for index in range(5)] and driven.state.status == "completed"


OPEN = graph_of(
    {
        "nodes": {"a": {}, "b": TASK, "z": {}},
        "transitions": [
            {"id": "t", "from": "a", "to": "b", "foreach": {"collection": "input.xs"}, "open": True},
            {"from": "b", "to": "z", "synchronization": {"sibling_group": "t"}},
        ],
    }
)


def test_an_open_group_grows_with_indexes_that_follow_on() -> None:
    driven = Driven(OPEN).start({"xs": ["x"]})
    driven.do(c.AddSiblings("t", ["y", "z"]))
    assert [t.frames[0][1] for t in driven.tokens("b")] == [0, 1, 2]
    assert driven.state.groups[GroupId(1)].items == ["x", "y", "z"] and driven.state.groups[1].total == 3  # type: ignore[index]


def test_a_closed_group_grows_no_more() -> None:
    driven = Driven(OPEN).start({"xs": ["x"]})
    driven.do(c.CloseGroup("t"))
    rejection = driven.do(c.AddSiblings("t", ["y"])).rejection
    assert rejection is not None and rejection.kind == "INVALID_STATE"


def test_adding_without_items_or_count_is_a_bad_request() -> None:
    rejection = Driven(OPEN).start({"xs": ["x"]}).do(c.AddSiblings("t")).rejection
    assert rejection is not None and rejection.kind == "BAD_REQUEST"


def test_a_visit_that_has_succeeded_is_completed_although_the_run_may_have_no_other() -> None:
    chain = {"nodes": {"a": TASK, "b": TASK}, "transitions": [{"from": "a", "to": "b"}]}
    driven = Driven(graph_of({**chain, "limits": {"max_tokens_per_run": 1}})).start()
    driven.finish("a", output={"v": 1})
    assert driven.state.status == "failed" and driven.count("token.completed") == 1, driven.log()
    assert driven.count("token.cancelled") == 0, driven.log()

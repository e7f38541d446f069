"""Who takes and gives back which shards, as a pure function: even, without quarrel, and soon at rest."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treadle.runtime.cluster.balance import Moves, moves

Held = dict[int, str]
names = st.sets(st.sampled_from("abcdefgh"), min_size=1)


def play(nodes: set[str], held: Held, shards: int) -> int:
    """Everybody looks at the same standing and does what it should, until nobody has anything to do; how many shards
    were given back meanwhile."""
    released = 0
    for _round in range(4):
        plans = {node: moves(node, nodes, held, shards) for node in sorted(nodes)}
        wanted = [shard for plan in plans.values() for shard in plan.take]
        assert len(wanted) == len(set(wanted)), "two nodes reach for one shard"
        assert not set(wanted) & set(held), "nobody takes what is held"
        for node, plan in plans.items():
            assert all(held[shard] == node for shard in plan.release), "one gives back its own"
        if all(plan == Moves() for plan in plans.values()):
            return released
        for node, plan in plans.items():
            released += len(plan.release)
            for shard in plan.release:
                del held[shard]
            held.update(dict.fromkeys(plan.take, node))
    raise AssertionError("the nodes do not come to rest")


def is_even(nodes: set[str], held: Held, shards: int) -> bool:
    counts = Counter(held.values())
    assert set(held) == set(range(shards)) and set(counts) <= nodes
    return max(counts[node] for node in nodes) - min(counts[node] for node in nodes) <= 1


@given(st.integers(1, 64), names, st.data())
@settings(max_examples=300)
def test_from_whatever_they_hold_nodes_come_to_an_even_rest(shards: int, nodes: set[str], data: st.DataObject) -> None:
    holders = st.one_of(st.none(), st.sampled_from(sorted(nodes)))
    drawn = data.draw(st.lists(holders, min_size=shards, max_size=shards))
    held = {shard: holder for shard, holder in enumerate(drawn) if holder is not None}
    play(nodes, held, shards)
    assert is_even(nodes, held, shards)


@given(st.integers(1, 64), names, st.sampled_from("xyz"))
def test_a_newcomer_costs_exactly_its_own_share(shards: int, nodes: set[str], newcomer: str) -> None:
    held: Held = {}
    assert play(nodes, held, shards) == 0, "what is free is dealt out at once"
    before = dict(held)
    released = play(nodes | {newcomer}, held, shards)
    moved = [shard for shard in held if held[shard] != before[shard]]
    assert is_even(nodes | {newcomer}, held, shards)
    assert all(held[shard] == newcomer for shard in moved) and released == len(moved)


@given(st.integers(1, 64), names.filter(lambda nodes: len(nodes) > 1), st.data())
def test_when_one_is_gone_only_what_it_held_moves(shards: int, nodes: set[str], data: st.DataObject) -> None:
    held: Held = {}
    play(nodes, held, shards)
    gone = data.draw(st.sampled_from(sorted(nodes)))
    before = dict(held)
    for node in nodes - {gone}:
        assert not moves(node, nodes - {gone}, held, shards).take, "its leases have not expired"
    held = {shard: holder for shard, holder in held.items() if holder != gone}
    play(nodes - {gone}, held, shards)
    assert is_even(nodes - {gone}, held, shards)
    assert all(held[shard] == before[shard] for shard in held if before[shard] != gone)


def test_who_only_executes_or_is_about_to_leave_gives_back_everything() -> None:
    held = {0: "a", 1: "leaving", 2: "leaving"}
    assert moves("leaving", {"a"}, held, 4) == Moves(release=(1, 2))
    assert moves("leaving", set(), held, 4) == Moves(release=(1, 2))
    assert moves("worker", {"a"}, held, 4) == Moves()
    assert moves("a", {"a"}, held, 4) == Moves(take=(3,))


@pytest.mark.parametrize("nodes", [{"a"}, {"a", "b"}, {"a", "b", "c"}])
def test_more_nodes_than_shards_leave_some_without(nodes: set[str]) -> None:
    held: Held = {}
    play(nodes, held, 1)
    assert list(held.values()) == ["a"]

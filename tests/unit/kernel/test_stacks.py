"""The fan-outs around a node, by the static graph: what a jump and a migration compare."""

from __future__ import annotations

from typing import Any

from treadle.graph.compile import compile_graph
from treadle.graph.execution_graph import ExecutionGraph
from treadle.graph.jumps import DEPTH_MAX, STACKS_MAX, stacks_of
from treadle.language import load_value


def graph_of(nodes: dict[str, Any], transitions: list[dict[str, Any]]) -> ExecutionGraph:
    document = {"workflow": "w", "start": ["a"], "nodes": nodes, "transitions": transitions}
    return compile_graph(load_value(document).require())


def test_a_fan_out_and_its_join() -> None:
    graph = graph_of(
        {"a": {}, "b": {}, "c": {}},
        [
            {"id": "t", "from": "a", "to": "b", "spawn_count": 2},
            {"from": "b", "to": "c", "synchronization": {"sibling_group": "t"}},
        ],
    )
    assert stacks_of(graph) == {"a": {()}, "b": {("transition:t",)}, "c": {()}}


def test_loops_through_many_fan_outs_are_looked_at_in_part_the_shortest_first() -> None:
    names = [f"n{number}" for number in range(12)]
    rooms = [
        {"id": f"{one}-{two}", "from": one, "to": two, "spawn_count": 2, "condition": "input.go"}
        for one in names
        for two in names
    ]
    graph = graph_of({"a": {}, **{name: {} for name in names}}, [{"from": "a", "to": "n0"}, *rooms])
    found = stacks_of(graph)
    assert found["a"] == {()} and () in found["n0"]
    assert max(map(len, found.values())) == STACKS_MAX
    assert all(len(stack) <= DEPTH_MAX for stacks in found.values() for stack in stacks)
    assert (f"transition:{names[0]}-{names[5]}",) in found[names[5]]

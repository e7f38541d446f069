"""The canvas dialect: a saved drawing becomes the execution graph the specification describes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treadle.language import Loaded, load_text, load_value
from treadle.model import definition as d

Nodes = dict[str, Any]


def drawn(nodes: Nodes, *edges: Any, **fields: Any) -> Loaded:
    """A canvas in few words: id → type or {type, data}; edges as pairs or triples with a mapping. Workers get an
    address unless their `data` is given."""
    kinds = {"Worker": {"type": "Worker", "data": {"webhookUrl": "https://w.example"}}}
    rows = [
        {"id": ref, **(kinds.get(kind, {"type": kind}) if isinstance(kind, str) else kind)}
        for ref, kind in nodes.items()
    ]
    wires = [{"id": f"e{number}", **_edge(*edge)} for number, edge in enumerate(edges)]
    return load_value({"workflow": "drawing", "nodes": rows, "edges": wires, **fields})


def _edge(source: str, target: str, mapping: Any = None) -> dict[str, Any]:
    return {"source": source, "target": target} | ({"data": {"mapping": mapping}} if mapping else {})


def codes(loaded: Loaded) -> list[str]:
    return [problem.code for problem in loaded.problems]


M_SHAPE = drawn(
    {
        "load": "Worker",
        "split": {"type": "Splitter", "data": {"arrayPath": "scenes"}},
        "draw": "Worker",
        "check": "UX",
        "all": "Collector",
        "end": "Worker",
    },
    *(("load", "split"), ("split", "draw"), ("draw", "check"), ("check", "all"), ("all", "end")),
)


def test_a_splitter_starts_one_branch_per_item_and_a_collector_joins_them() -> None:
    assert M_SHAPE.problems == []
    split, collect = M_SHAPE.require().transitions[1], M_SHAPE.require().transitions[3]
    assert split.foreach == d.Foreach(collection="$.nodes.split.output.scenes", by_item=True)
    assert split.sibling_group == "split:items"
    assert collect.synchronization == d.Synchronization(
        sibling_group="split:items",
        on_branch_failure="fail",
        merge=d.Merge(source="$._visit.output", target="$._visit.output", strategy="append"),
    )


def test_a_node_gets_what_comes_from_upstream_and_below_a_splitter_the_item() -> None:
    inputs = {ref: node.input_mapping for ref, node in M_SHAPE.require().nodes.items()}
    assert inputs == {
        "load": "upstream",
        "split": "upstream",
        "draw": "item",
        "check": "upstream",
        "all": "upstream",
        "end": "upstream",
    }


def test_a_canvas_lets_the_others_finish_unless_it_says_otherwise() -> None:
    assert M_SHAPE.require().on_unhandled_failure == "let_others_finish"
    assert drawn({"a": "Worker"}, on_unhandled_failure="fail_run").require().on_unhandled_failure == "fail_run"


def test_a_canvas_survives_its_own_document() -> None:
    assert load_value(M_SHAPE.document).workflow == M_SHAPE.workflow


def test_a_node_with_several_inbound_edges_waits_for_all_of_them() -> None:
    found = drawn({"a": "Worker", "b": "Worker", "c": "Worker"}, ("a", "c"), ("b", "c"), ("a", "c")).require()
    assert found.start == ["a", "b"]
    assert found.nodes["c"].join == d.NodeJoin(kind="all_inbound")
    assert [t.id for t in found.transitions] == ["e0", "e1", "e2"]


def test_a_collector_without_a_splitter_collects_its_inbound_edges() -> None:
    found = drawn({"a": "Worker", "b": "Worker", "c": "Collector"}, ("a", "c"), ("b", "c")).require()
    assert found.nodes["c"].join == d.NodeJoin(kind="all_inbound", collect=True)


def test_a_collector_joins_the_innermost_splitter_that_is_not_yet_collected() -> None:
    found = drawn(
        {"s1": "Splitter", "s2": "Splitter", "w": "Worker", "c2": "Collector", "v": "Worker", "c1": "Collector"},
        *(("s1", "s2"), ("s2", "w"), ("w", "c2"), ("c2", "v"), ("v", "c1")),
    ).require()
    groups = {t.to: t.synchronization.sibling_group for t in found.transitions if t.synchronization}
    assert groups == {"c2": "s2:items", "c1": "s1:items"}
    assert found.nodes["s2"].input_mapping == "item"


def test_edges_of_one_splitter_share_its_group() -> None:
    found = drawn(
        {"s": "Splitter", "a": "Worker", "b": "Worker", "m": "Worker", "c": "Collector"},
        *(("s", "a"), ("s", "b"), ("a", "m"), ("b", "m"), ("m", "c")),
    )
    assert found.problems == []
    assert {t.sibling_group for t in found.require().transitions if t.foreach} == {"s:items"}
    assert found.require().nodes["m"].join == d.NodeJoin(kind="all_inbound")


def test_two_collectors_of_one_splitter_need_no_on_empty() -> None:
    nodes = {"s": "Splitter", "a": "Worker", "b": "Worker", "c": "Collector", "e": "Collector"}
    assert drawn(nodes, ("s", "a"), ("s", "b"), ("a", "c"), ("b", "e")).errors == []


@pytest.mark.parametrize(
    ("path", "collection"),
    [
        (None, "$.nodes.s.output"),
        ("", "$.nodes.s.output"),
        ("items", "$.nodes.s.output.items"),
        ("$.items", "$.nodes.s.output.items"),
        ("output.items[0].parts", "$.nodes.s.output.output.items[0].parts"),
    ],
)
def test_an_array_path_is_relative_to_what_the_splitter_gets(path: Any, collection: str) -> None:
    found = drawn({"s": {"type": "Splitter", "data": {"arrayPath": path}}, "w": "Worker"}, ("s", "w"))
    foreach = found.require().transitions[0].foreach
    assert foreach is not None
    assert foreach.collection == collection


@pytest.mark.parametrize("ref", ["step_1", "step_1_2", "a b", "é", "node-7f3a", 'q"uote', "x.y", "1"])
def test_ids_survive_exactly(ref: str) -> None:
    found = drawn({ref: "Splitter", "w": "Worker", "c": "Collector"}, (ref, "w"), ("w", "c"))
    assert found.problems == []
    assert next(iter(found.require().nodes)) == ref
    assert load_value(found.document).workflow == found.workflow


def test_the_movement_of_entities_is_read_as_the_canvas_writes_it() -> None:
    data = {
        "entityMovement": {
            "onSuccess": {"targetSectionId": "customers", "completeAs": "success", "setEntityType": "customer"},
            "onFailure": {"targetSectionId": "nurture", "completeAs": "neutral"},
        }
    }
    node = drawn({"a": {"type": "Worker", "data": {**data, "webhookUrl": "https://x.example"}}}).require().nodes["a"]
    assert node.entity == d.EntityMoves(
        on_success=d.EntityMove("customers", "success", "customer"), on_failure=d.EntityMove("nurture", "neutral")
    )
    assert node.task is not None
    assert node.task.steps[0].action == d.Action("webhook", {"url": "https://x.example"})


def test_a_node_may_carry_fields_of_the_language_in_its_data() -> None:
    data = {"retry": {"max_attempts": 3}, "timeout_ms": 50, "webhookUrl": "https://x.example"}
    node = drawn({"a": {"type": "Worker", "data": data}}).require().nodes["a"]
    assert (node.retry, node.timeout_ms) == (d.Retry(3), 50)
    assert node.task is not None
    assert node.task.steps[0].action.config == {"url": "https://x.example"}


def test_edge_mappings_are_kept_as_written() -> None:
    found = drawn({"a": "Worker", "b": "Worker"}, ("a", "b", {"text": "output.text", "n": "result[0]"}))
    assert found.require().transitions[0].mapping == {"text": "output.text", "n": "result[0]"}


def test_what_is_for_the_eye_is_kept_apart_and_can_be_drawn_again() -> None:
    looks = {"label": "A", "color": "#fff", "icon": "star", "style": {"opacity": 1}}
    address = {"webhookUrl": "https://x.example", "model": "m", "style": "watercolour"}
    nodes = {
        "a": {
            "type": "Worker",
            "position": {"x": 1, "y": 2},
            "selected": True,
            "data": {**address, "label": "A", "color": "#fff", "icon": "star"},
        },
        "u": {"type": "UX", "data": {**looks, "form": {"type": "object"}, "hotkey": "x"}},
        "s": {"type": "Splitter", "data": {**looks, "arrayPath": "items"}},
        "c": {"type": "Collector", "data": looks},
        "box": {"type": "section", "position": {"x": 0, "y": 0}, "data": {"title": "Leads"}},
        "card": {"type": "section-item", "parentId": "box"},
    }
    edges = (("a", "box"), ("a", "u"), ("u", "s"), ("s", "c"))
    found = drawn(nodes, *edges, viewport={"x": 0, "y": 0, "zoom": 2}).require()
    assert list(found.nodes) == ["a", "u", "s", "c"]
    task = found.nodes["a"].task
    assert task is not None
    assert task.steps[0].action.config["config"] == {"model": "m", "style": "watercolour"}
    assert found.canvas["nodes"] == {
        "a": {
            "type": "Worker",
            "position": {"x": 1, "y": 2},
            "selected": True,
            "data": {"label": "A", "color": "#fff", "icon": "star"},
        },
        "u": {"type": "UX", "data": {**looks, "hotkey": "x"}},
        "s": {"type": "Splitter", "data": looks},
        "c": {"type": "Collector", "data": looks},
    }
    assert [row["id"] for row in found.canvas["sections"]] == ["box", "card"]
    assert found.canvas["viewport"]["zoom"] == 2


@pytest.mark.parametrize(
    ("loaded", "code", "at"),
    [
        (drawn({"a": "Wizard"}), "UNKNOWN_NODE_TYPE", "nodes[0].type"),
        (drawn({"a": {"data": {}}}), "UNKNOWN_NODE_TYPE", "nodes[0]"),
        (drawn({"a": "Worker"}, ("a", "z")), "UNKNOWN_NODE", "edges[0].target"),
        (drawn({"a": "Splitter"}), "SPLITTER_WITHOUT_DOWNSTREAM", "nodes[0]"),
        (drawn({"w": "Worker", "a": "Collector"}), "COLLECTOR_WITHOUT_UPSTREAM", "nodes[1]"),
        (drawn({"a": "Worker", "b": "Worker"}, ("a", "b"), ("b", "a")), "CYCLE", "edges[0]"),
        (drawn({"a": "Worker"}, ("a", "a")), "CYCLE", "edges[0]"),
        (drawn({"a": {"type": "Splitter", "data": {"arrayPath": "a["}}}), "BAD_VALUE", "nodes[0].data.arrayPath"),
        (drawn({"a": {"type": "Worker", "data": {"timeout_ms": 0}}}), "BAD_TIMEOUT", "nodes[0].data.timeout_ms"),
        (drawn({"a": {"type": "Worker", "data": {"action": {"kind": "x"}}}}), "BAD_VALUE", "nodes[0].data.action.kind"),
        (load_value({"workflow": "w", "nodes": [{"type": "Worker"}]}), "BAD_VALUE", "nodes[0]"),
        (load_value({"workflow": "w", "nodes": [{"id": "a", "type": "UX"}] * 2}), "BAD_VALUE", "nodes[1].id"),
        (load_value({"workflow": "w", "nodes": [{"id": "a", "type": "UX"}], "edges": [{}]}), "BAD_VALUE", "edges[0]"),
        (load_value({"workflow": "w", "nodes": [{"id": "a", "type": "UX"}], "edges": 7}), "BAD_VALUE", "edges"),
    ],
)
def test_a_mistake_in_a_drawing_is_placed_in_the_drawing(loaded: Loaded, code: str, at: str) -> None:
    assert (code, at) in [(problem.code, problem.at) for problem in loaded.errors]


def test_a_splitter_whose_items_are_never_collected_is_a_warning() -> None:
    assert codes(drawn({"s": "Splitter", "w": "Worker"}, ("s", "w"))) == ["GROUP_WITHOUT_JOIN"]


@pytest.mark.parametrize(("file", "name"), [("Lead Flow.json", "lead-flow"), ("<text>", "canvas"), ("x/y.json", "y")])
def test_a_drawing_without_a_name_is_called_like_its_file(file: str, name: str) -> None:
    text = json.dumps({"nodes": [{"id": "a", "type": "UX", "data": {}}], "edges": []})
    assert load_text(text, file).require().workflow == name


REFS = st.sampled_from(["a", "b", "c", "d", "e"])


@given(
    st.dictionaries(REFS, st.sampled_from(["Worker", "UX", "Splitter", "Collector", "section"]), min_size=1),
    st.lists(st.tuples(REFS, REFS), max_size=8),
)
def test_any_drawing_is_loaded_or_told_what_is_wrong(nodes: Nodes, edges: list[tuple[str, str]]) -> None:
    found = drawn(nodes, *edges)
    assert (found.workflow is None) == bool(found.errors)
    if found.workflow is not None:
        assert load_value(found.document).workflow == found.workflow

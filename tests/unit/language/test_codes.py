"""Every code has a definition that earns it, with its place; and a near relative that does not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.language.definitions import codes, flow, go, loaded
from treadle.language.problem import ERRORS, WARNINGS

HTTP = {"kind": "http", "url": "https://x.example"}
HUMAN = {"kind": "human"}
JOIN_T1 = {"sibling_group": "t1"}
FAN = go("a", "b", id="t1", spawn_count=3)


def canvas(nodes: dict[str, str], *edges: tuple[str, str]) -> dict[str, Any]:
    return {
        "workflow": "w",
        "nodes": [{"id": ref, "type": kind, "data": {}} for ref, kind in nodes.items()],
        "edges": [{"source": source, "target": target} for source, target in edges],
    }


# code, where it is found, and the definition
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("UNKNOWN_NODE", "transitions[0].to", flow("ab", go("a", "c"))),
    ("UNKNOWN_NODE", "transitions[0].from", flow("ab", go("c", "b"))),
    ("UNKNOWN_NODE", "start", flow("ab", go("a", "b"), start="z")),
    ("UNKNOWN_NODE", "start[1]", flow("ab", go("a", "b"), start=["a", "z"])),
    ("UNKNOWN_NODE", "transitions[0].cancels.nodes[0]", flow("ab", go("a", "b", cancels={"nodes": ["z"]}))),
    ("UNKNOWN_NODE", "transitions[0].condition", flow("ab", go("a", "b", condition='tokens_at("z") > 0'))),
    ("UNKNOWN_NODE", "nodes.b.input.x", flow({"a": {}, "b": {"input": {"x": "$.nodes.z.output"}}}, go("a", "b"))),
    ("UNKNOWN_SIBLING_GROUP", "transitions[0].join.sibling_group", flow("ab", go("a", "b", join={"sibling_group": "z"}))),
    ("UNKNOWN_SIBLING_GROUP", "transitions[0].cancels.groups[0]", flow("ab", go("a", "b", cancels={"groups": ["z"]}))),
    ("UNKNOWN_SIBLING_GROUP", "nodes.a.action.group", flow({"a": {"action": {"kind": "close_group", "group": "z"}}})),
    ("UNKNOWN_TASK", "nodes.a.task", flow({"a": {"task": "nope"}})),
    ("UNKNOWN_TASK", "nodes.a.action", flow({"a": {"action": "nope"}})),
    ("UNKNOWN_TASK", "nodes.a.compensate", flow({"a": {"compensate": "nope"}})),
    ("UNKNOWN_FIELD", "nodes.a.retries", flow({"a": {"retries": 3}})),
    ("UNKNOWN_FIELD", "foo", flow("a", foo=1)),
    ("UNKNOWN_FIELD", "nodes.a.action.uri", flow({"a": {"action": {**HTTP, "uri": "x"}}})),
    ("UNKNOWN_FIELD", "transitions[0].foreach.each", flow("ab", go("a", "b", foreach={"collection": "input.x", "each": 1}))),
    ("UNKNOWN_NODE_TYPE", "nodes[0].type", canvas({"a": "Wizard"})),
    ("NO_START", "nodes", flow("ab", go("a", "b", condition="input.x"), go("b", "a"))),
    ("NO_START", "nodes", flow({})),
    ("NO_START", "start", flow("a", start=[])),
    ("BAD_SCHEMA", "input_schema", flow("a", input_schema={"type": "objekt"})),
    ("BAD_SCHEMA", "state_schema", flow("a", state_schema=7)),
    ("BAD_SCHEMA", "nodes.a.action.form", flow({"a": {"action": {"kind": "human", "form": {"type": 1}}}})),
    ("BAD_VALUE", "", {"nodes": {"a": {}}}),
    ("BAD_VALUE", "workflow", flow("a", workflow="Not A Name")),
    ("BAD_VALUE", "on_timeout", flow("a", on_timeout="explode")),
    ("BAD_VALUE", "strict", flow("a", strict="yes")),
    ("BAD_VALUE", "transitions[0]", flow("a", {"from": "a"})),
    ("BAD_VALUE", "transitions[1].id", flow("abc", go("a", "b", id="t"), go("b", "c", id="t"))),
    ("BAD_VALUE", "transitions[0].foreach", flow("ab", go("a", "b", spawn_count=2, foreach={"collection": "input.x"}))),
    ("BAD_VALUE", "transitions[0].foreach.item_var", flow("ab", go("a", "b", foreach={"collection": "input.x", "item_var": "state"}))),
    ("BAD_VALUE", "transitions[0].trigger", flow("ab", go("a", "b", trigger={"key": 1}))),
    ("BAD_VALUE", "nodes.a.action.kind", flow({"a": {"action": {"kind": "htp"}}})),
    ("BAD_VALUE", "nodes.a.action", flow({"a": {"action": {"kind": "http"}}})),
    ("BAD_VALUE", "nodes.a.steps", flow({"a": {"action": HTTP, "steps": [{"action": HTTP}]}})),
    ("BAD_VALUE", 'nodes.a.output["v"]', flow({"a": {"output": {"v": "$.v"}}})),
    ("BAD_VALUE", "nodes.a.input.x", flow({"a": {"input": {"x": "$5.00"}}})),
    ("BAD_VALUE", "nodes.a.input.x", flow({"a": {"input": {"x": "$.stat.y"}}})),
    ("BAD_VALUE", "transitions[0].join.merge.source", flow("ab", go("a", "b", join={"sibling_group": "a", "merge": {"source": "v", "target": "state.x"}}))),
    ("CONDITION_SYNTAX", "transitions[0].condition", flow("ab", go("a", "b", condition="input.x >"))),
    ("CONDITION_SYNTAX", "transitions[0].condition", flow("ab", go("a", "b", condition="inptu.x > 1"))),
    ("CONDITION_SYNTAX", "transitions[0].condition", flow("ab", go("a", "b", condition={"type": "maybe"}))),
    ("CONDITION_SYNTAX", "transitions[0].condition.operator", flow("ab", go("a", "b", condition={"type": "array_length", "field": "input.x", "operator": "=>", "value": 1}))),
    ("CONDITION_SYNTAX", "transitions[0].condition.conditions[0]", flow("ab", go("a", "b", condition={"type": "or", "conditions": [{"type": "exists"}]}))),
    ("CONDITION_SYNTAX", "nodes.a.input.x", flow({"a": {"input": {"x": {"cel": "1 +"}}}})),
    ("CYCLE", "transitions[0]", flow("ab", go("a", "b"), go("b", "a"), start="a")),
    ("CYCLE", "transitions[0]", flow("a", go("a", "a"), start="a")),
    ("CYCLE", "edges[0]", canvas({"a": "Worker", "b": "Worker", "c": "Worker"}, ("a", "b"), ("b", "a"), ("c", "a"))),
    ("JOIN_CONFLICT", "transitions[3].join", flow("abcd", go("a", "b"), go("a", "c"), go("b", "d", join={"sibling_group": "a"}), go("c", "d", join={"sibling_group": "a", "strategy": "any"}))),
    ("SPAWN_COUNT", "transitions[0].spawn_count", flow("ab", go("a", "b", spawn_count=0))),
    ("SPAWN_COUNT", "transitions[0].spawn_count", flow("ab", go("a", "b", spawn_count=1001))),
    ("SPAWN_COUNT", "transitions[0].spawn_count", flow("ab", go("a", "b", spawn_count=6), limits={"max_spawn_count": 5})),
    ("QUORUM_TOO_LARGE", "transitions[1].join.strategy", flow("abc", FAN, go("b", "c", join={**JOIN_T1, "strategy": {"m_of_n": 4}}))),
    ("QUORUM_TOO_LARGE", "transitions[2].join.strategy", flow("abc", go("a", "b"), go("a", "c"), go("b", "c", join={"sibling_group": "a", "strategy": {"m_of_n": 3}}))),
    ("QUORUM_TOO_LARGE", "transitions[1].join.min_success_count", flow("abc", FAN, go("b", "c", join={**JOIN_T1, "min_success_count": 4}))),
    ("BAD_TIMEOUT", "timeout_ms", flow("a", timeout_ms=0)),
    ("BAD_TIMEOUT", "nodes.a.timeout_ms", flow({"a": {"timeout_ms": -1}})),
    ("BAD_TIMEOUT", "transitions[1].join.timeout_ms", flow("abc", FAN, go("b", "c", join={**JOIN_T1, "timeout_ms": 0}))),
    ("SUSPENDING_STEP", "nodes.a.steps[0].action", flow({"a": {"steps": [{"action": HUMAN}, {"action": HTTP}]}})),
    ("ON_EMPTY_REQUIRED", "transitions[0].foreach", flow("abcd", go("a", "b", id="t1", foreach={"collection": "input.x"}), go("b", "c", join=JOIN_T1), go("b", "d", join=JOIN_T1, priority=2))),
    ("UNWRITTEN_READ", "nodes.a.input.x", flow({"a": {"input": {"x": "$.state.y"}}})),
    ("INPUT_NOT_WRITABLE", 'nodes.a.output["input.x"]', flow({"a": {"output": {"input.x": "$.y"}}})),
    ("INPUT_NOT_WRITABLE", "transitions[1].join.merge.target", flow("abc", FAN, go("b", "c", join={**JOIN_T1, "merge": {"source": "_branch.output", "target": "input.x"}}))),
    ("SPLITTER_WITHOUT_DOWNSTREAM", "nodes[0]", canvas({"a": "Splitter"})),
    ("COLLECTOR_WITHOUT_UPSTREAM", "nodes[0]", canvas({"a": "Collector"})),
    ("UNREACHABLE_NODE", "nodes.b", flow("ab", start="a")),
    ("GROUP_NEVER_ON_STACK", "transitions[2].join.sibling_group", flow("abcd", FAN, go("b", "c", join=JOIN_T1), go("c", "d", join=JOIN_T1))),
    ("JOIN_WITHOUT_FAN_OUT", "transitions[1].join.sibling_group", flow("abc", go("a", "b", id="t1"), go("b", "c", join=JOIN_T1))),
    ("MAYBE_UNWRITTEN_READ", "nodes.c.input.x", flow({"a": {}, "b": {"output": {"state.y": "$.y"}}, "c": {"input": {"x": "$.state.y"}}}, go("a", "b", condition="input.p"), go("a", "c", priority=2), go("b", "c"))),
    ("GROUP_WITHOUT_JOIN", "transitions[0].spawn_count", flow("ab", FAN)),
    ("UNREAD_WRITE", 'nodes.a.output["state.x"]', flow({"a": {"output": {"state.x": "$.x"}}}, output={"y": 1})),
    ("TIMEOUT_HIERARCHY", "nodes.a.timeout_ms", flow({"a": {"timeout_ms": 20, "action": HTTP}}, timeout_ms=10)),
    ("TIMEOUT_HIERARCHY", "nodes.a.action.execution.timeout_ms", flow({"a": {"timeout_ms": 20, "action": {**HTTP, "execution": {"timeout_ms": 30}}}})),
]  # fmt: skip


@pytest.mark.parametrize(("code", "at", "definition"), CASES, ids=[f"{code} {at}" for code, at, _ in CASES])
def test_a_mistake_has_its_code_and_its_place(code: str, at: str, definition: dict[str, Any]) -> None:
    found = [(problem.code, problem.at.replace('["v"]', ".v")) for problem in loaded(definition).problems]
    assert (code, at.replace('["v"]', ".v")) in found
    assert loaded(definition).workflow is None or code in WARNINGS


def test_every_code_of_the_specification_is_covered() -> None:
    untested = (ERRORS | WARNINGS) - {code for code, _, _ in CASES} - {"UNKNOWN_FUNCTION"}
    assert not untested


@pytest.mark.parametrize(
    "definition",
    [definition for code, _, definition in CASES if code in WARNINGS],
    ids=[code for code, _, _ in CASES if code in WARNINGS],
)
def test_under_strict_a_warning_is_an_error_of_the_same_code(definition: dict[str, Any]) -> None:
    lenient, strict = loaded(definition), loaded({**definition, "strict": True})
    assert lenient.workflow is not None
    assert lenient.errors == []
    assert strict.workflow is None
    assert {problem.code for problem in strict.errors} >= {problem.code for problem in lenient.warnings[:1]}
    assert loaded(definition, strict=True).workflow is None


def test_functions_are_looked_up_only_where_the_caller_can_tell() -> None:
    definition = flow({"a": {"action": {"kind": "python", "function": "shop:pay"}}})
    assert codes(definition) == []
    assert codes(definition, functions=lambda name: name == "shop:pay") == []
    problem = loaded(definition, functions=lambda _: False).errors[0]
    assert (problem.code, problem.at) == ("UNKNOWN_FUNCTION", "nodes.a.action.function")


@pytest.mark.parametrize(
    "definition",
    [
        pytest.param(flow({"a": {"action": {"kind": "http"}, "input": {"url": "$.input.url"}}}), id="url from the input"),
        pytest.param(flow({"a": {"action": HUMAN}}), id="a suspending action alone"),
        pytest.param(flow("a", go("a", "a", loop={"max_iterations": 3}), start="a"), id="a bounded loop"),
        pytest.param(flow("a", go("a", "a", condition="input.x"), start="a"), id="a conditional loop"),
        pytest.param(flow("ab", go("a", "b"), go("b", "a", trigger={"signal": "again"}), start="a"), id="a triggered loop"),
        pytest.param(flow("abc", FAN, go("b", "c", join={**JOIN_T1, "strategy": {"m_of_n": 3}})), id="a quorum of all"),
        pytest.param(flow("abc", {**FAN, "open": True}, go("b", "c", join={**JOIN_T1, "strategy": {"m_of_n": 9}})), id="an open group"),
        pytest.param(flow("abcd", go("a", "b", id="t1", foreach={"collection": "input.x", "on_empty": "c"}), go("b", "c", join=JOIN_T1), go("b", "d", join=JOIN_T1, priority=2)), id="on_empty given"),
        pytest.param(flow({"a": {}, "b": {}, "m": {"join": {"tokens": 3}}}, FAN, go("b", "m")), id="a thread merge"),
        pytest.param(flow("abcd", go("a", "b", id="t1", spawn_count=2), go("b", "c", id="t2", spawn_count=2), go("c", "d", join=JOIN_T1)), id="an inner group collected by the outer join"),
        pytest.param(flow("abc", go("a", "b", spawn_count=2), go("b", "c", join={"sibling_group": "a"})), id="a group joined by its node"),
        pytest.param(flow({"a": {"timeout_ms": 10, "action": HTTP}}, timeout_ms=10), id="equal timeouts"),
        pytest.param(flow("abcd", go("a", "b"), go("a", "c"), go("b", "d", join={"sibling_group": "a"}), go("c", "d", join={"sibling_group": "a"})), id="the same join twice"),
        pytest.param(flow("ab", go("a", "b", condition='tokens_at("b") > 0')), id="tokens_at a node"),
        pytest.param(flow("ab", go("a", "b", id="t1", foreach={"collection": "input.x", "item_var": "it"}), go("b", "a", condition="it.ok", join=JOIN_T1), start="a"), id="an item variable"),
    ],
)  # fmt: skip
def test_nothing_is_said_where_nothing_is_wrong(definition: dict[str, Any]) -> None:
    assert codes(definition) == []


def test_all_mistakes_are_told_at_once() -> None:
    definition = flow(
        {"a": {"retries": 1}, "b": {"action": {"kind": "htp"}}, "c": {"timeout_ms": 0}},
        go("a", "x"),
        go("a", "b", spawn_count=0),
        go("a", "c", condition="1 +"),
        timeout_ms="5m",
    )
    assert sorted(codes(definition)) == [
        "BAD_TIMEOUT",
        "BAD_VALUE",
        "BAD_VALUE",
        "CONDITION_SYNTAX",
        "SPAWN_COUNT",
        "UNKNOWN_FIELD",
        "UNKNOWN_NODE",
    ]


def test_a_wrong_node_does_not_make_its_transitions_wrong() -> None:
    assert codes(flow({"a": 7, "b": {}}, go("a", "b"))) == ["BAD_VALUE"]


def test_the_number_of_problems_is_bounded() -> None:
    nodes = {f"n{index}": {"oops": 1} for index in range(1_000)}
    assert len(loaded(flow(nodes)).problems) == 501
    assert "500 more" in loaded(flow(nodes)).problems[-1].message


@pytest.mark.parametrize("value", [None, 7, "text", [1], [], {}, {"workflow": "w", "nodes": None}])
def test_what_is_no_definition_is_a_problem_and_not_an_exception(value: Any) -> None:
    assert loaded(value).errors

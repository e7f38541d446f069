"""The builder says exactly what YAML says, for every field of the language."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.unit.language.definitions import PANEL, loaded
from tests.unit.language.documents import definitions
from treadle.errors import DefinitionError
from treadle.language import load_value, parts
from treadle.language.builder import Flow, FlowOptions, NodeOptions, TransitionOptions
from treadle.language.grammar.node import NODE
from treadle.language.grammar.transition import TRANSITION
from treadle.language.grammar.workflow import WORKFLOW
from treadle.language.parts import append, cel, foreach, python, quorum, retry, step, task
from treadle.language.record import Record


def panel() -> Flow:
    wf = Flow("panel", output={"votes": "$.state.votes"})
    ask, judge, decide = wf.node("ask"), wf.node("judge", output={"state.v": "$.v"}), wf.node("decide")
    ask.to(judge, id="t1", spawn_count=3)
    judge.to(decide, join=quorum(2, of="t1", merge=append("_branch.output.v", "state.votes")))
    return wf


def test_the_panel_built_is_the_panel_written() -> None:
    assert panel().build() == loaded(PANEL).workflow
    assert panel().document() == loaded(PANEL).document


def test_transitions_read_as_they_run() -> None:
    wf = Flow("chain")
    a, b, c = (wf.node(ref) for ref in "abc")
    a.to(b).to(c)
    assert [t.id for t in wf.build().transitions] == ["a->b", "b->c"]


def test_a_node_may_stand_for_its_ref() -> None:
    wf = Flow("fork", start="a")
    a, b, c, end = (wf.node(ref) for ref in ("a", "b", "c", "end"))
    for branch in (b, c):
        a.to(branch)
        branch.to(end, join=parts.every(of=a))
    assert wf.build().transitions[1].synchronization is not None


def test_every_problem_is_raised_at_once() -> None:
    wf = Flow("wrong")
    wf.node("a", timeout_ms=0).to("nowhere", spawn_count=0)
    with pytest.raises(DefinitionError) as caught:
        wf.build()
    assert [problem.code for problem in caught.value.problems] == ["BAD_TIMEOUT", "SPAWN_COUNT", "UNKNOWN_NODE"]  # type: ignore[attr-defined]
    assert "<flow wrong>" in str(caught.value)


def test_a_node_is_added_once() -> None:
    wf = Flow("twice")
    wf.node("a")
    with pytest.raises(ValueError, match="already has a node 'a'"):
        wf.node("a")


def charge(order: str) -> str:
    return order


def test_tasks_actions_and_functions() -> None:
    wf = Flow("shop")
    wf.action("notify", parts.action("emit", type="paid"))
    wf.task("pay", task(step(python(charge), "charge"), step("notify", on_failure="continue"), retry=retry(3)))
    node = wf.node("pay", task="pay", input={"order": cel("input.order")}, compensate=parts.compensation("notify"))
    assert str(node) == "pay"
    found = wf.build().nodes["pay"].task
    assert found is not None
    assert found.name == "pay"
    assert found.steps[0].action.config == {"function": f"{__name__}:charge"}
    assert found.steps[1].on_failure == "continue"


MERGE = {"source": "_branch.output.v", "target": "state.v"}
HTTP = parts.action("http", url="u", timeout_ms=5, retry_policy=retry(2, "linear"))
EXECUTION = {"timeout_ms": 5, "retry_policy": {"max_attempts": 2, "backoff": "linear"}}


@pytest.mark.parametrize(
    ("part", "written"),
    [
        (parts.every("t1"), {"sibling_group": "t1", "strategy": "all"}),
        (parts.first("t1", timeout_ms=5), {"sibling_group": "t1", "strategy": "any", "timeout_ms": 5}),
        (parts.percent(60, "t1"), {"sibling_group": "t1", "strategy": {"percent": 60}}),
        (parts.computed("arrived > 1", "t1"), {"sibling_group": "t1", "strategy": {"cel": "arrived > 1"}}),
        (parts.vote("_branch.output.v", "state.v"), {**MERGE, "strategy": "vote"}),
        (append("_branch.output.v", "state.v", streaming=True), {**MERGE, "strategy": "append", "streaming": True}),
        (foreach("input.xs", "x", max_in_flight=5), {"collection": "input.xs", "item_var": "x", "max_in_flight": 5}),
        (parts.from_context("input.n"), {"from_context": "input.n"}),
        (parts.on_signal("go", buffer="none"), {"signal": "go", "buffer": "none"}),
        (parts.after_ms(5), {"after_ms": 5}),
        (parts.when("input.x"), {"when": "input.x"}),
        (parts.loop(3), {"max_iterations": 3}),
        (parts.cancels(groups=["g"], join="drop"), {"groups": ["g"], "join": "drop"}),
        (parts.literal("$5"), {"literal": "$5"}),
        (parts.exists("state.x"), {"type": "exists", "field": "state.x"}),
        (HTTP, {"kind": "http", "url": "u", "execution": EXECUTION}),
        (python("m:f", process=True), {"kind": "python", "function": "m:f", "process": True}),
    ],
)
def test_a_word_of_the_builder_spells_a_piece_of_the_language(part: Any, written: Any) -> None:
    assert part == written


@pytest.mark.parametrize(
    ("options", "record", "elsewhere"),
    [
        (FlowOptions, WORKFLOW, {"workflow", "nodes", "transitions", "actions", "tasks"}),
        (NodeOptions, NODE, set()),
        (TransitionOptions, TRANSITION, {"from", "to"}),
    ],
)
def test_the_builder_has_every_field_of_the_tables(options: Any, record: Record, elsewhere: set[str]) -> None:
    offered = {record.spellings[name].name for name in options.__annotations__}
    assert offered == {field.name for field in record.fields} - elsewhere


@given(definitions())
def test_any_definition_can_be_built(definition: dict[str, Any]) -> None:
    head = {key: value for key, value in definition.items() if key not in ("workflow", "nodes", "transitions")}
    wf = Flow(definition["workflow"], **head)
    handles = {ref: wf.node(ref, **options) for ref, options in definition["nodes"].items()}
    for row in definition["transitions"]:
        options = {key: value for key, value in row.items() if key not in ("from", "to")}
        handles[row["from"]].to(handles[row["to"]], **options)
    assert wf.build() == load_value(definition).workflow

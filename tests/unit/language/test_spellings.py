"""Every accepted spelling becomes the one canonical form, and defaults are filled in one place."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.language.definitions import PANEL, flow, go, loaded
from treadle.model import definition as d


def workflow(definition: dict[str, Any] | str) -> d.Workflow:
    return loaded(definition).require()


def node(**fields: Any) -> d.Node:
    return workflow(flow({"a": fields, "b": {}}, go("a", "b"))).nodes["a"]


def transition(**fields: Any) -> d.Transition:
    nodes = {"a": {"output": {"state.x": "$"}}, "b": {}}
    return workflow(flow(nodes, {"from": "a", "to": "b", **fields}, output="$.state")).transitions[0]


def sync(**fields: Any) -> d.Synchronization:
    rows = [go("a", "b", id="t1", spawn_count=5), go("b", "c", synchronization={"sibling_group": "t1", **fields})]
    found = workflow(flow({"a": {}, "b": {"output": {"state.v": "$"}}, "c": {}}, *rows, output="$.state"))
    assert found.transitions[1].synchronization is not None
    return found.transitions[1].synchronization


def test_the_panel_of_the_specification_reads_as_it_is_meant() -> None:
    panel = workflow(PANEL)
    assert panel.workflow == "panel"
    assert panel.start == ["ask"]
    assert panel.transitions[0] == d.Transition(id="t1", from_="ask", to="judge", spawn_count=3)
    assert panel.transitions[1].id == "judge->decide"
    assert panel.transitions[1].synchronization == d.Synchronization(
        sibling_group="t1",
        strategy=d.Strategy("m_of_n", 2),
        merge=d.Merge(source="$._branch.output.v", target="$.state.votes"),
    )


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ({"name": "w"}, {"workflow": "w"}),
        ({"initial_node_id": "a"}, {"start": ["a"]}),
        ({"start": "a"}, {"start": ["a"]}),
        ({"context_schema": {"type": "object"}}, {"state_schema": {"type": "object"}}),
        ({"on_timeout": "cancel_all"}, {"on_timeout": "cancel"}),
        ({"timeout_ms": 5000.0}, {"timeout_ms": 5000}),
        ({"timeout_ms": None}, {}),
    ],
)
def test_a_workflow_field_may_be_spelled_otherwise(spelled: dict[str, Any], canonical: dict[str, Any]) -> None:
    first, second = flow("ab", go("a", "b")), flow("ab", go("a", "b"))
    if "name" in spelled:
        del first["workflow"]
    assert workflow({**first, **spelled}) == workflow({**second, **canonical})


HTTP = {"kind": "http", "url": "https://x.example"}
TASK = d.Task(steps=[d.Step(ref="main", action=d.Action(kind="http", config={"url": "https://x.example"}))])


@pytest.mark.parametrize(
    ("fields", "canonical"),
    [
        ({"input": {"x": "$.input.y"}}, d.Node(input_mapping={"x": "$.input.y"})),
        ({"output": {"output.x": "$.y"}}, d.Node(output_mapping={"output.x": "$.y"})),
        ({"output_mapping": {"$.output.x": "$.y"}}, d.Node(output_mapping={"output.x": "$.y"})),
        ({"action": HTTP}, d.Node(task=TASK)),
        ({"steps": [{"ref": "main", "action": HTTP}]}, d.Node(task=TASK)),
        ({"task": {"steps": [{"ref": "main", "action": HTTP}]}}, d.Node(task=TASK)),
        ({"join": "arrival"}, d.Node()),
        ({"join": "all_inbound"}, d.Node(join=d.NodeJoin(kind="all_inbound"))),
        ({"join": {"inbound": 2, "rest": "block"}}, d.Node(join=d.NodeJoin(kind="inbound", count=2, rest="block"))),
        ({"join": {"tokens": 3}}, d.Node(join=d.NodeJoin(kind="tokens", count=3))),
        ({"terminates": True}, d.Node(terminates="completed")),
        ({"terminates": False}, d.Node()),
        ({"terminates": "cancelled"}, d.Node(terminates="cancelled")),
        ({"queue": "q"}, d.Node(queue="q")),
        ({"queue": {"name": "q"}}, d.Node(queue="q")),
        (
            {"queue": {"name": "q", "priority": -1, "key": "$.input.who"}},
            d.Node(queue="q", turn=d.Turn(-1, "$.input.who")),
        ),
        ({"mutex": "m"}, d.Node(mutex=d.Mutex(name="m"))),
        ({"mutex": {"name": "m", "keep": True}}, d.Node(mutex=d.Mutex(name="m", keep=True))),
        ({"concurrency": {"limit": 2, "key": "$.input.k"}}, d.Node(concurrency=d.Concurrency(2, "$.input.k"))),
        (
            {"entityMovement": {"onSuccess": {"targetSectionId": "s", "completeAs": "success", "setEntityType": "c"}}},
            d.Node(entity=d.EntityMoves(on_success=d.EntityMove("s", "success", "c"))),
        ),
        (
            {"compensate": {"action": HTTP, "input": {"id": "$.output.id"}}},
            d.Node(compensate=d.Compensation(task=TASK, input_mapping={"id": "$.output.id"})),
        ),
        ({"retry": {"max_attempts": 3, "backoff": "linear"}}, d.Node(retry=d.Retry(3, "linear"))),
    ],
)
def test_a_node_has_one_canonical_form(fields: dict[str, Any], canonical: d.Node) -> None:
    assert node(**fields) == canonical


def test_a_node_may_be_left_empty_in_yaml() -> None:
    assert workflow("workflow: w\nnodes:\n  a:\n").nodes == {"a": d.Node()}


@pytest.mark.parametrize(
    ("fields", "canonical"),
    [
        ({"priority": 2}, {"priority": 2}),
        ({"condition": "state.x > 1"}, {"condition": {"type": "cel", "expr": "state.x > 1"}}),
        ({"condition": True}, {}),
        ({"condition": {"cel": "input.x"}}, {"condition": {"type": "cel", "expr": "input.x"}}),
        (
            {"condition": {"type": "exists", "field": {"field": "state.x"}}},
            {"condition": {"type": "exists", "field": "$.state.x"}},
        ),
        (
            {"condition": {"type": "in_set", "field": "input.x", "values": [1]}},
            {"condition": {"type": "in_set", "field": "$.input.x", "values": [1]}},
        ),
        (
            {"condition": {"type": "not", "condition": "input.x"}},
            {"condition": {"type": "not", "condition": {"type": "cel", "expr": "input.x"}}},
        ),
        ({"spawn_count": 1}, {}),
        ({"spawn_count": 4}, {"spawn_count": 4}),
        ({"spawn_count": {"from_context": "input.n"}}, {"spawn_from": {"from_context": "$.input.n"}}),
        ({"spawn_count": {"cel": "input.n + 1"}}, {"spawn_from": {"cel": "input.n + 1"}}),
        (
            {"foreach": {"collection": "state.x", "item_var": "item"}},
            {"foreach": d.Foreach(collection="$.state.x", item_var="item")},
        ),
        ({"loop": {"max_iterations": 3}}, {"loop_max_iterations": 3}),
        ({"loop_config": {"max_iterations": 3}}, {"loop_max_iterations": 3}),
        ({"trigger": {"after_ms": 10}}, {"trigger": d.Trigger(after_ms=10)}),
        ({"trigger": {"signal": "s", "buffer": "none"}}, {"trigger": d.Trigger(signal="s", buffer="none")}),
        ({"cancels": {"nodes": "b"}}, {"cancels": d.Cancels(nodes=["b"])}),
        ({"mapping": {"text": "output.text"}}, {"mapping": {"text": "output.text"}}),
    ],
)
def test_a_transition_has_one_canonical_form(fields: dict[str, Any], canonical: dict[str, Any]) -> None:
    assert transition(**fields) == d.Transition(id="a->b", from_="a", to="b", **canonical)


def test_the_seeds_spell_the_ends_of_a_transition_otherwise() -> None:
    rows = [{"from_node_id": "a", "to_node_id": "b"}]
    assert workflow(flow("ab", *rows)) == workflow(flow("ab", go("a", "b")))


@pytest.mark.parametrize(
    "condition",
    [
        "_last_error.kind == 'TASK_FAILED'",
        "has(_last_error.kind)",
        "state._last_error.kind == 'X'",
        {"type": "exists", "field": "_last_error"},
        {"type": "exists", "field": {"field": "state._last_error"}},
        {"type": "not", "condition": {"type": "exists", "field": "$._last_error"}},
        {"type": "and", "conditions": [{"type": "exists", "field": "_last_error.kind"}, "input.x"]},
        {
            "type": "comparison",
            "left": {"field": "_last_error.kind"},
            "operator": "==",
            "right": {"literal": "X"},
        },
    ],
)
def test_a_condition_on_the_last_error_makes_a_failure_transition(condition: Any) -> None:
    assert transition(condition=condition).on == "failure"
    assert transition(condition=condition, on="always").on == "always"


def test_a_text_that_only_mentions_the_last_error_does_not() -> None:
    assert transition(condition="input.x == '_last_error'").on == "success"
    assert transition(condition="input._last_error == 1").on == "success"


@pytest.mark.parametrize(
    ("fields", "canonical"),
    [
        ({"strategy": "any"}, {"strategy": d.Strategy("any")}),
        ({"strategy": {"percent": 60}}, {"strategy": d.Strategy("percent", 60)}),
        ({"strategy": {"cel": "arrived > 1"}}, {"strategy": d.Strategy("cel", expr="arrived > 1")}),
        ({"on_timeout": "proceed", "timeout_ms": 5}, {"on_timeout": "proceed_with_available", "timeout_ms": 5}),
        ({"timeout_ms": None}, {}),
        (
            {"merge": {"source": "$._branch.output.v", "target": "$.state.all", "strategy": "collect"}},
            {"merge": d.Merge(source="$._branch.output.v", target="$.state.all", strategy="append")},
        ),
    ],
)
def test_a_join_has_one_canonical_form(fields: dict[str, Any], canonical: dict[str, Any]) -> None:
    assert sync(**fields) == d.Synchronization(sibling_group="t1", **canonical)


def test_a_join_may_be_called_join_and_its_group_joins_transition() -> None:
    rows = [go("a", "b", id="t1", spawn_count=2), go("b", "c", join={"joins_transition": "t1"})]
    assert workflow(flow("abc", *rows)).transitions[1].synchronization == d.Synchronization(sibling_group="t1")


def test_ids_are_made_of_the_ends_and_numbered_where_they_repeat() -> None:
    rows = [go("a", "b"), go("a", "b", condition="input.x"), go("a", "b", id="a->b#3"), go("a", "b"), go("b", "c")]
    assert [t.id for t in workflow(flow("abc", *rows)).transitions] == [
        "a->b",
        "a->b#2",
        "a->b#3",
        "a->b#4",
        "b->c",
    ]


def test_a_run_starts_at_every_node_that_nothing_leads_to() -> None:
    assert workflow(flow("abcd", go("a", "b"), go("d", "b"), go("b", "c"))).start == ["a", "d"]


def test_tasks_and_actions_are_taken_by_name_from_the_document_or_from_the_library() -> None:
    definition = flow(
        {"a": {"task": "fetch"}, "b": {"action": "ping"}, "c": {"task": "shared"}, "d": {"compensate": "fetch"}},
        go("a", "b"),
        go("b", "c"),
        go("c", "d"),
        actions={"ping": HTTP},
        tasks={"fetch": {"steps": [{"action": "ping"}, {"ref": "twice", "action": HTTP}], "timeout_ms": 9}},
    )
    library = {"tasks": {"shared": {"steps": [{"action": "log"}]}}, "actions": {"log": {"kind": "emit", "type": "x"}}}
    found = loaded(definition, library=library).require().nodes
    ping = d.Action(kind="http", config={"url": "https://x.example"})
    assert found["a"].task == d.Task(steps=[d.Step("step1", ping), d.Step("twice", ping)], name="fetch", timeout_ms=9)
    assert found["b"].task == d.Task(steps=[d.Step("main", ping)])
    assert found["c"].task == d.Task(steps=[d.Step("step1", d.Action("emit", {"type": "x"}))], name="shared")
    assert found["d"].compensate == d.Compensation(task=found["a"].task)


def test_a_name_of_the_document_hides_the_librarys() -> None:
    definition = flow({"a": {"action": "x"}}, actions={"x": {"kind": "emit", "type": "mine"}})
    library = {"actions": {"x": {"kind": "emit", "type": "theirs"}}}
    task = loaded(definition, library=library).require().nodes["a"].task
    assert task is not None
    assert task.steps[0].action.config == {"type": "mine"}


def test_kinds_of_third_parties_are_allowed_by_the_caller() -> None:
    definition = flow({"a": {"action": {"kind": "fax", "number": 1, "execution": {"timeout_ms": 5}}}})
    action = d.Action("fax", {"number": 1}, d.Execution(timeout_ms=5))
    for keys in (None, ["number"]):
        task = loaded(definition, kinds={"fax": keys}).require().nodes["a"].task
        assert task == d.Task(steps=[d.Step("main", action)])
    assert [p.code for p in loaded(definition, kinds={"fax": ["page"]}).problems] == ["UNKNOWN_FIELD"]
    assert [p.code for p in loaded(definition).problems] == ["BAD_VALUE"]

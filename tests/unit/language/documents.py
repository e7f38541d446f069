"""Hypothesis strategies: definitions that are valid by construction, and small damages to them."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

NAMES = ["a", "b", "c", "d"]
JSON = st.sampled_from([None, True, 0, 1.5, "text", [], {}, [1, {"x": 1}], {"literal": "$x"}, {"x": {"y": None}}])
READS = st.sampled_from(["$.input.x", "$.input.items[0].y", "$._branch.index", "$.nodes.a.output", "$"])
SOURCES = st.one_of(JSON, READS, st.builds(lambda expr: {"cel": expr}, st.sampled_from(["input.x", "1 + 2", "'a'"])))
CONDITIONS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        [
            "input.x > 1",
            "has(_last_error.kind)",
            {"type": "exists", "field": "input.x"},
            {"type": "exists", "field": {"field": "state.x"}},
            {"type": "comparison", "left": {"field": "input.x"}, "operator": ">=", "right": {"literal": 80}},
            {"type": "in_set", "field": "input.x", "values": ["a", 1]},
            {"type": "array_length", "field": "input.xs", "operator": "<", "value": 5},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda part: {"type": "not", "condition": part}, inner),
        st.builds(
            lambda kind, parts: {"type": kind, "conditions": parts},
            st.sampled_from(["and", "or"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
    ),
    max_leaves=4,
)
RETRIES = st.fixed_dictionaries(
    {"max_attempts": st.integers(1, 5)},
    optional={
        "backoff": st.sampled_from(["none", "linear", "exponential"]),
        "initial_delay_ms": st.integers(0, 1000),
        "max_delay_ms": st.none() | st.integers(0, 1000),
        "jitter": st.floats(0, 1),
    },
)
ACTIONS = st.one_of(
    st.sampled_from(
        [
            {"kind": "python", "function": "shop:pay", "process": True},
            {"kind": "shell", "argv": ["ls", "-l"], "ok_exit_codes": [0, 1]},
            {"kind": "llm", "prompt": "Say {{ x }}", "response_schema": {"type": "object"}, "temperature": 0.5},
            {"kind": "mcp", "server": "files", "tool": "read", "arguments": {"path": "x"}},
            {"kind": "template", "template": "Hello {{ name }}"},
            {"kind": "assert", "condition": "input.x > 1", "message": "too small"},
            {"kind": "mock", "output": None, "after_ms": 5},
            {"kind": "emit", "type": "paid", "data": {"cel": "input"}},
            {"kind": "send", "signal": "go", "key": "$.input.k"},
            {"kind": "human", "title": "Ok?", "form": {"type": "object"}, "due_ms": 10, "on_expiry": {"default": {}}},
            {"kind": "wait", "ms": 10},
            {"kind": "signal", "name": "go", "buffer": "none"},
            {"kind": "workflow_call", "workflow": "child", "on_failure": "catch"},
            {"kind": "webhook", "url": "https://x.example", "config": {"a": 1}, "timeout_ms": 5},
            {"kind": "artifact_write", "name": "report", "content": "x"},
            {"kind": "cancel_group", "group": "a", "join": "drop"},
        ]
    ),
    st.fixed_dictionaries(
        {"kind": st.just("http"), "url": st.just("https://x.example")},
        optional={
            "method": st.sampled_from(["GET", "post"]),
            "body": JSON,
            "expect_status": st.sampled_from([200, [200, 404]]),
            "execution": st.fixed_dictionaries({}, optional={"timeout_ms": st.integers(1, 9), "retry_policy": RETRIES}),
        },
    ),
    st.builds(
        lambda values: {"kind": "set", "values": values},
        st.dictionaries(st.sampled_from(["x", "y"]), SOURCES.filter(lambda source: source != "$"), max_size=2),
    ),
)
PLAIN = ACTIONS.filter(lambda a: a["kind"] not in ("human", "wait", "signal", "workflow_call", "webhook"))
STEPS = st.lists(
    st.fixed_dictionaries(
        {"action": PLAIN},
        optional={
            "input": st.dictionaries(st.sampled_from(["x", "y"]), READS, max_size=2),
            "output": st.dictionaries(st.sampled_from(["state.x", "output.y.z"]), READS, max_size=2),
            "when": st.one_of(
                CONDITIONS.filter(lambda c: "_last_error" not in str(c)),
                st.just({"if": "input.x", "then": "succeed", "else": "fail"}),
            ),
            "on_failure": st.sampled_from(["abort", "retry", "continue"]),
        },
    ),
    min_size=1,
    max_size=3,
)
TASKS = st.one_of(
    st.builds(lambda action: {"action": action}, ACTIONS),
    st.builds(lambda steps: {"steps": steps}, STEPS),
    st.builds(lambda steps, retry: {"task": {"steps": steps, "retry": retry, "timeout_ms": 50}}, STEPS, RETRIES),
    st.just({}),
)
JOINS = st.sampled_from(
    ["arrival", "all_inbound", "all_reachable", "inbound_fifo", {"inbound": 2, "rest": "block"}, {"tokens": 3}]
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "input": st.dictionaries(st.sampled_from(["p", "q.r"]), SOURCES, max_size=2),
        "output_mapping": st.dictionaries(st.sampled_from(["state.x", "output.y.z"]), READS, max_size=2),
        "retry": RETRIES,
        "timeout_ms": st.integers(1, 1000),
        "fan_out": st.sampled_from(["all", "first_match"]),
        "on_no_match": st.sampled_from(["error", "end"]),
        "join": JOINS,
        "terminates": st.sampled_from([True, False, "cancelled", "failed"]),
        "compensate": st.builds(lambda action: {"action": action, "input": {"id": "$.output.id"}}, PLAIN),
        "compensate_on_failure": st.booleans(),
        "concurrency": st.sampled_from([{"limit": 2}, {"limit": 3, "key": "$.input.k"}]),
        "queue": st.sampled_from(["q", {"name": "q", "priority": 2, "key": "$.input.x"}]),
        "mutex": st.sampled_from(["m", {"name": "m", "keep": True}]),
        "entity": st.just({"on_success": {"section": "done", "complete_as": "success", "set_type": "customer"}}),
        "description": st.just("words"),
    },
)
NODES = st.builds(lambda task, options: {**task, **options}, TASKS, OPTIONS)
SYNCS = st.fixed_dictionaries(
    {"sibling_group": st.sampled_from([*NAMES, "group"])},
    optional={
        "timeout_ms": st.integers(1, 99),
        "on_timeout": st.sampled_from(["fail", "proceed"]),
        "on_branch_failure": st.sampled_from(["include_errors", "exclude", "fail"]),
        "on_early_complete": st.sampled_from(["abandon", "cancel", "pass_through", "block"]),
        "strategy": st.sampled_from(["all", "any", {"m_of_n": 1}, {"percent": 60}, {"cel": "arrived > 1"}]),
        "merge": st.sampled_from(
            [
                {"source": "_branch.output", "target": "state.all", "strategy": "collect"},
                {"source": "$._branch.output.x", "target": "$.output.all", "strategy": "vote", "streaming": True},
            ]
        ),
    },
)
TRANSITIONS = st.fixed_dictionaries(
    {"from": st.sampled_from(NAMES), "to": st.sampled_from(NAMES), "condition": CONDITIONS},
    optional={
        "priority": st.sampled_from([1, 2, 2.5]),
        "on": st.sampled_from(["success", "failure", "always"]),
        "spawn_count": st.sampled_from([1, 3, {"from_context": "input.n"}, {"cel": "input.n"}]),
        "sibling_group": st.just("group"),
        "on_first_completion": st.sampled_from(["continue_all", "cancel_remaining"]),
        "on_first_start": st.sampled_from(["continue_all", "cancel_remaining"]),
        "open": st.booleans(),
        "loop": st.just({"max_iterations": 3}),
        "trigger": st.sampled_from([{"signal": "go", "key": "k", "buffer": 5}, {"after_ms": 0}, {"when": "input.x"}]),
        "interrupting": st.booleans(),
        "cancels": st.sampled_from([{"nodes": ["a"]}, {"groups": "group", "join": "drop"}]),
        "mapping": st.just({"x": "output.text"}),
    },
)
HEADS = st.fixed_dictionaries(
    {},
    optional={
        "description": st.just("words"),
        "tags": st.just(["one", "two"]),
        "input_schema": st.just({"type": "object"}),
        "context_schema": st.just({"type": "object", "properties": {"x": {"default": 1}}}),
        "output": st.sampled_from([{"x": "$.input.x"}, "$.input", {"cel": "input.x"}, {"literal": 1}, 7]),
        "timeout_ms": st.integers(1, 99),
        "on_timeout": st.sampled_from(["human_gate", "fail", "cancel_all"]),
        "on_unhandled_failure": st.sampled_from(["fail_run", "let_others_finish"]),
        "limits": st.just({"max_tokens_per_run": 50}),
        "compensation": st.sampled_from(["on_failure", "on_failure_and_cancel", "off"]),
        "on_compensation_failure": st.sampled_from(["halt", "continue"]),
        "canvas": st.just({"nodes": {"a": {"x": 1}}}),
    },
)


@st.composite
def definitions(draw: st.DrawFn) -> dict[str, Any]:
    """A definition without errors: every transition is conditional, so no cycle is endless; one join per target."""
    rows = draw(st.lists(TRANSITIONS, max_size=6))
    rows.append({"from": "a", "to": "b", "sibling_group": "group", "loop": {"max_iterations": 9}})
    if draw(st.booleans()):
        rows.append({"from": "b", "to": "c", "condition": "input.x", "synchronization": draw(SYNCS)})
    rows = [{**row, "id": f"t{number}"} for number, row in enumerate(rows)]
    return {
        "workflow": "w",
        **draw(HEADS),
        "start": ["a"],
        "nodes": {name: draw(NODES) for name in NAMES},
        "transitions": rows,
    }


WRONG = st.sampled_from(["state.zz > 1", "$.state.zz", "$.[", -1, "a", {"cel": "("}, {"type": "cel", "expr": "("}])


@st.composite
def mutations(draw: st.DrawFn, definition: dict[str, Any]) -> Any:
    """The definition with one value replaced, removed or renamed somewhere."""
    damaged = copy.deepcopy(definition)
    holder, key = draw(st.sampled_from(list(_places(damaged))))
    damage = draw(st.sampled_from(["replace", "remove", "rename"]))
    if damage == "replace" or isinstance(holder, list):
        holder[key] = draw(JSON | WRONG)
    elif damage == "remove":
        del holder[key]
    else:
        holder[key + "x"] = holder.pop(key)
    return damaged


def _places(value: Any) -> Any:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield value, key
        yield from _places(part)

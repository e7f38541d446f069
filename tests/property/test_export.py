"""Random runs: exported as a scenario, each passes as written (6.6)."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.recording import recorded
from treadle import load_value
from treadle.testing.recorded.export import expectations, export
from treadle.testing.scenario.runner import run_text
from treadle.testing.world.new_world import make_world
from treadle.testing.world.outcomes import Outcome

Json = dict[str, Any]


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    """An outcome of an attempt. Durations differ, so that no two things happen at one instant by chance."""
    from treadle.model.errors import Error

    after_ms = draw(st.integers(1, 5_000))
    if draw(st.integers(0, 3)) == 0:
        return Outcome(error=Error("TASK_FAILED", "no", retryable=draw(st.booleans())), after_ms=after_ms)
    cost = draw(st.sampled_from([None, 0.25, 2]))
    return Outcome({"v": draw(st.integers(0, 9))}, after_ms=after_ms, spent={"cost": cost} if cost else None)


@st.composite
def flows(draw: st.DrawFn) -> tuple[Json, dict[str, list[Outcome]]]:
    """A chain of nodes, some fanned out and joined again, some calling a child, with outcomes for each."""
    length = draw(st.integers(1, 4))
    nodes: Json = {}
    transitions: list[Json] = []
    for index in range(length):
        called = draw(st.integers(0, 4)) == 0
        action = {"kind": "workflow_call", "workflow": "leaf"} if called else {"kind": "python", "function": "x:y"}
        nodes[f"n{index}"] = {"action": action, "retry": {"max_attempts": draw(st.integers(1, 3))}}
        if index:
            width = draw(st.integers(1, 3))
            replicated = {"spawn_count": width, "id": f"t{index}"} if width > 1 else {}
            transitions.append({"from": f"n{index - 1}", "to": f"n{index}", **replicated})
            if width > 1:
                nodes[f"j{index}"] = {}
                join = {"sibling_group": f"t{index}", "on_branch_failure": draw(st.sampled_from(["exclude", "fail"]))}
                transitions.append({"from": f"n{index}", "to": f"j{index}", "synchronization": join})
                nodes[f"n{index}"]["on_no_match"] = "end"
    budget = draw(st.sampled_from([None, {"cost": 3}, {"visits": 3, "on_exceeded": "fail"}]))
    flow = {"workflow": "flow", "nodes": nodes, "transitions": transitions, **({"budget": budget} if budget else {})}
    mocks = {ref: draw(st.lists(outcomes(), min_size=1, max_size=4)) for ref, node in nodes.items() if "action" in node}
    return flow, {**mocks, "only": draw(st.lists(outcomes(), min_size=1, max_size=3))}


LEAF = load_value(
    {"workflow": "leaf", "nodes": {"only": {"action": {"kind": "python", "function": "x:y"}}}}, functions=None
)


@given(flows())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_an_exported_run_passes_as_written(drawn: tuple[Json, dict[str, list[Outcome]]]) -> None:
    flow, mocks = drawn
    calls = {node["action"]["kind"] for node in flow["nodes"].values() if "action" in node}
    called = [ref for ref, node in flow["nodes"].items() if node.get("action", {}).get("kind") == "workflow_call"]
    script = {ref: tuple(given) for ref, given in mocks.items() if ref not in called}
    with make_world("memory", script, None) as world:
        if "workflow_call" in calls:
            world.deploy(LEAF.require())
        world.deploy(load_value(flow).require())
        run = world.start("flow", {"topic": "tea"})
        assert isinstance(run, str)
        world.drive()
        past = recorded(world, run)
    text = export(past)
    assert "Not expected" not in text, text
    [result] = run_text(text)
    assert result.ok, result
    assert f'status: "{expectations(past)["status"]}"' in text

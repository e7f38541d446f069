"""The workflows of a seed: one that runs are started of, and perhaps one that it calls."""

from __future__ import annotations

from typing import Any

from tests.simulator.draw import Draw
from tests.simulator.generator.blocks import block
from tests.simulator.generator.contents import task, work
from tests.simulator.generator.flow import flow
from tests.simulator.generator.sketch import Sketch, Span
from tests.simulator.generator.trimmings import trim
from tests.simulator.plan import Plan
from treadle.model.definition import Limits, Workflow

MAIN = "main"
CHILD = "child"

TOKENS_MAX = (60, 120, 200)
"""max_tokens_per_run: loops around fan-outs multiply; a small run says as much as a large one, sooner."""


def generate(plan: Plan) -> list[Workflow]:
    """Every workflow of the seed, the main one first."""
    draw = Draw(plan.seed, "definition")
    callees: tuple[str, ...] = ()
    workflows: list[Workflow] = []
    if plan.has("call"):
        callees = (CHILD,)
        workflows = [_workflow(Sketch(CHILD, plan, draw, (CHILD,) if plan.has("recursion") else (), room=7), 2)]
    return [_workflow(Sketch(MAIN, plan, draw, callees, room=draw.pick((5, 10, 16, 24))), 4), *workflows]


def _workflow(s: Sketch, depth: int) -> Workflow:
    first = s.node(task=task("mock"), output_mapping={"state.v": "$.v", "state.n": "$.n", "state.items": "$.items"})
    s.spared.add(first)
    body = block(s, depth)
    s.edge(first, body.entry)
    for _ in range(s.draw.between(1, 3) if s.room > 2 else 0):
        following = block(s, depth)
        s.edge(body.exit, following.entry)
        body = Span(body.entry, following.exit)
    start = [first]
    if s.has("several_starts", 0.5):
        other = work(s)
        start.append(other)
        if s.draw.chance(0.5):
            s.edge(other, body.entry)
    trim(s)
    return s.build(start, **_settings(s))


def _settings(s: Sketch) -> dict[str, Any]:
    limits = Limits(max_tokens_per_run=s.draw.pick(TOKENS_MAX), max_nesting_depth=2)
    fields: dict[str, Any] = {"limits": limits}
    if s.has("limits", 0.7):
        fields["limits"] = Limits(
            max_tokens_per_run=s.draw.between(5, 40), max_spawn_count=s.draw.between(4, 5), max_nesting_depth=1
        )
    if s.has("run_timeout", 0.7) and s.name == MAIN:
        fields["timeout_ms"] = s.draw.pick((100, 500, 1500))
        fields["on_timeout"] = s.draw.pick(("human_gate", "fail", "cancel"))
    if s.has("let_others_finish", 0.6):
        fields["on_unhandled_failure"] = "let_others_finish"
    if s.plan.has("compensate"):
        fields["compensation"] = s.draw.pick((None, "on_failure", "on_failure_and_cancel", "off"))
        fields["on_compensation_failure"] = s.draw.pick(("halt", "continue"))
    if s.has("schema", 0.4):
        fields["state_schema"] = {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}
    if s.has("schema", 0.3) and s.name == CHILD:
        fields["input_schema"] = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 2}}}
    if s.has("strict", 0.5):
        fields["strict"] = True
    if s.draw.chance(0.5):
        merges = any(
            sync is not None and sync.merge is not None for sync in (e.get("synchronization") for e in s.edges)
        )
        fields["output"] = {"v": "$.state.v", "merged": "$.state.merged"} if merges else {"v": "$.state.v"}
    return {**fields, **flow(s.plan, s.name, calls_itself=s.name in s.callees)}

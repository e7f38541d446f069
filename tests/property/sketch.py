"""What random workflows are drawn with: a sketch pad, and the kinds of nodes, fan-outs and joins there are.

Owns the vocabulary; `graphs` puts it together. Numbers are small on purpose: branches shall often agree, conditions
often hold, timers often fall on the same instant.
"""

from __future__ import annotations

from random import Random
from typing import Any

Json = Any

PICKY = {"output_schema": {"properties": {"v": {"maximum": 1}}}, "steps": [{"ref": "only", "action": {"kind": "mock"}}]}
"""A task whose output is not always good enough."""
CHILD = "child"
"""The workflow that `workflow_call` nodes name; tests pretend it exists."""


class Sketch:
    """A document being drawn."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.nodes: dict[str, dict[str, Json]] = {}
        self.transitions: list[dict[str, Json]] = []

    def node(self, **fields: Json) -> str:
        ref = f"n{len(self.nodes)}"
        self.nodes[ref] = fields
        return ref

    def edge(self, source: str, target: str, **fields: Json) -> str:
        name = f"t{len(self.transitions)}"
        self.transitions.append({"id": name, "from": source, "to": target, **fields})
        return name

    def chance(self, percent: int) -> bool:
        """False when shrunk: a smaller example has fewer of everything."""
        return self.random.randrange(100) >= 100 - percent

    def pick(self, *choices: Json) -> Json:
        return choices[self.random.randrange(len(choices))]


def passing(s: Sketch) -> dict[str, Json]:
    """No task; now and then it ends the whole run."""
    return {"terminates": s.pick(True, "cancelled", "failed")} if s.chance(2) else {}


def task(s: Sketch) -> dict[str, Json]:
    """Work that is handed out."""
    fields: dict[str, Json] = {"task": "picky"} if s.chance(6) else {"action": {"kind": "mock"}}
    if s.chance(3):
        fields["input_mapping"] = {"x": {"cel": "input.missing + 1"}}
    if s.chance(8):
        fields["entity"] = {
            s.pick("on_success", "on_failure"): s.pick(
                {"section": "done"}, {"complete_as": "success"}, {"set_type": "odd"}
            )
        }
    if s.chance(60):
        fields["output_mapping"] = {s.pick("state.v", "state.w", "output.o"): "$.v"}
    if s.chance(15):
        fields["retry"] = {"max_attempts": s.pick(2, 3), "backoff": "linear", "initial_delay_ms": s.pick(0, 10)}
    if s.chance(10):
        fields["timeout_ms"] = s.pick(20, 50)
    if s.chance(10):
        fields["queue"] = "q"
    if s.chance(20):
        fields["compensate"] = {"action": {"kind": "mock"}, **({"retry": {"max_attempts": 2}} if s.chance(20) else {})}
        fields["compensate_on_failure"] = s.chance(20)
    return fields


def suspending(s: Sketch) -> dict[str, Json]:
    """A node that waits for something outside."""
    config: dict[str, Json] = s.pick(
        {"kind": "wait", "ms": 15},
        {"kind": "human"},
        {"kind": "human", "due_ms": 25, "remind_ms": 5, "on_expiry": {"default": {"v": 1}}},
        {"kind": "human", "due_ms": 25},
        {
            "kind": "human",
            "assign": {"quorum": {"of": 2, "accept": s.pick(1, 2)}},
            "on_quorum_failed": s.pick("fail", "first"),
        },
        {"kind": "human", "remind_ms": [5, 12], "escalate": {"after_ms": 10, "to": "eve"}},
        {"kind": "signal", "name": "s"},
        {"kind": "signal", "name": "s", "key": "k", "buffer": s.pick(10, "none")},
        {"kind": "webhook", "url": "https://worker.test/run"},
        {"kind": "workflow_call", "workflow": CHILD, "on_failure": s.pick("propagate", "catch")},
    )
    fields: dict[str, Json] = {"action": config}
    if s.chance(15):
        fields["retry"] = {"max_attempts": 2, "initial_delay_ms": 10}
    if s.chance(15):
        fields["timeout_ms"] = 60
    return fields


def native(s: Sketch) -> dict[str, Json]:
    """A node whose action the kernel carries out itself."""
    groups = [t["id"] for t in s.transitions if "spawn_count" in t or "foreach" in t]
    said = ({"kind": "emit", "type": "note"}, {"kind": "send", "signal": "s", "key": "k", "data": 7})
    if not groups:
        return {"action": s.pick(*said)}
    action: dict[str, Json] = s.pick(
        *said,
        {"kind": "cancel_group", "group": s.pick(*groups), "join": s.pick("fire", "drop")},
        {"kind": "add_siblings", "group": s.pick(*groups)},
        {"kind": "close_group", "group": s.pick(*groups)},
    )
    mapping = {"input_mapping": {"items": {"literal": [1, 2]}}} if action["kind"] == "add_siblings" else {}
    return {"action": action, **mapping}


def writer(_s: Sketch) -> dict[str, Json]:
    """A task that says what is to be spawned."""
    return {"action": {"kind": "mock"}, "output_mapping": {"state.items": "$.items"}}


def condition(s: Sketch, ref: str) -> Json:
    """Something about what a node put out."""
    left = {"field": f"nodes.{ref}.output.v"}
    return {"type": "comparison", "left": left, "operator": s.pick("==", "<", "!="), "right": {"literal": 1}}


def spawning(s: Sketch, origin: str) -> dict[str, Json]:
    """How a transition out of `origin` replicates."""
    fields: dict[str, Json] = s.pick(
        {"spawn_count": s.pick(2, 3, 4)},
        {"spawn_count": {"from_context": f"nodes.{origin}.output.v"}},
        {"foreach": {"collection": "state.items", "item_var": "it"}},
        {"foreach": {"collection": "state.items", "max_in_flight": s.pick(1, 2)}},
        {"foreach": {"collection": f"nodes.{origin}.output.items", "on_missing": "empty"}, "open": True},
    )
    if s.chance(12):
        fields[s.pick("on_first_completion", "on_first_start")] = "cancel_remaining"
    return fields


def synchronization(s: Sketch, group: str) -> dict[str, Json]:
    """A join's configuration."""
    fields: dict[str, Json] = {
        "sibling_group": group,
        "strategy": s.pick("all", "all", "any", {"m_of_n": 2}, {"percent": 50}, {"cel": "arrived + failed >= 2"}),
        "on_branch_failure": s.pick("include_errors", "exclude", "fail"),
        "on_early_complete": s.pick("abandon", "cancel", "pass_through", "block"),
    }
    if s.chance(20):
        fields |= {"timeout_ms": s.pick(5, 30), "on_timeout": s.pick("fail", "proceed_with_available")}
    if s.chance(10):
        fields["min_success_count"] = s.pick(1, 2)
    if s.chance(60):
        strategy = s.pick("append", "concat", "merge_object", "keyed_by_branch", "last_wins", "vote")
        fields["merge"] = {"source": "_branch.output.v", "target": "state.merged", "strategy": strategy}
        fields["merge"]["streaming"] = s.chance(20)
    return fields

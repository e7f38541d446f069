"""Random workflows that deploy: blocks with one entry and one exit, nested, with everything the language has.

Owns the shapes. A generator draws from a `random.Random`: hypothesis passes one whose every call it can shrink, a long
search passes a plain one. Documents are written as an author would write them and go through the real loader, so
`workflow_from` yields nothing that could not be deployed.
"""

from __future__ import annotations

from random import Random
from typing import Any

from treadle.language import load_value
from treadle.model.definition import Workflow

Json = Any
Ends = tuple[str, str]
"""Entry and exit of a block."""

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


def document(s: Sketch) -> dict[str, Json]:
    """A whole workflow."""
    first, _ = block(s, s.pick(1, 2, 2, 3))
    whole: dict[str, Json] = {
        "workflow": "random",
        "start": s.pick(first, first, first, [first, s.pick(*s.nodes)]),
        "nodes": s.nodes,
        "transitions": s.transitions,
        "limits": {"max_tokens_per_run": s.pick(60, 60, 25)},
    }
    if s.chance(15):
        whole |= {"timeout_ms": s.pick(30, 200), "on_timeout": s.pick("human_gate", "fail", "cancel")}
    if s.chance(30):
        whole["on_unhandled_failure"] = "let_others_finish"
    if s.chance(20):
        whole["compensation"] = s.pick("on_failure_and_cancel", "off")
    if s.chance(20):
        whole["on_compensation_failure"] = "continue"
    return whole


def workflow_from(random: Random) -> Workflow:
    """A workflow that deploys: of the wild edges only those that the loader accepts."""
    sketch = Sketch(random)
    whole = document(sketch)
    workflow = load_value(whole).require()
    for _ in range(sketch.pick(0, 0, 1, 2)):
        wild(sketch)
        wilder = load_value(whole).workflow
        if wilder is None:
            sketch.transitions.pop()
        else:
            workflow = wilder
    return workflow


def block(s: Sketch, depth: int) -> Ends:
    """Any block; deeper ones hold others."""
    if depth <= 0:
        return leaf(s)
    return s.pick(
        leaf,
        sequence,
        replicated,
        replicated,
        forked,
        named,
        choice,
        loop,
        unjoined,
        met,
        met,
        triggered,
        escaping,
        cancelling,
    )(s, depth)


def leaf(s: Sketch, _depth: int = 0) -> Ends:
    fields = s.pick(_task, _task, _task, _pass, _suspending, _native)(s)
    if s.chance(8):
        fields["mutex"] = s.pick("m", {"name": "m", "keep": True})
    ref = s.node(**fields)
    if "action" in fields and s.chance(15):
        handler = s.node(**_pass(s))
        s.edge(ref, handler, on=s.pick("failure", "failure", "always"))
    return ref, ref


def _pass(s: Sketch) -> dict[str, Json]:
    return {"terminates": s.pick(True, "cancelled", "failed")} if s.chance(2) else {}


def _task(s: Sketch) -> dict[str, Json]:
    fields: dict[str, Json] = {"action": {"kind": "mock"}}
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


def _suspending(s: Sketch) -> dict[str, Json]:
    config: dict[str, Json] = s.pick(
        {"kind": "wait", "ms": 15},
        {"kind": "human"},
        {"kind": "human", "due_ms": 25, "remind_ms": 5, "on_expiry": {"default": {"v": 1}}},
        {"kind": "human", "due_ms": 25},
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


def _native(s: Sketch) -> dict[str, Json]:
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


def sequence(s: Sketch, depth: int) -> Ends:
    first, middle = block(s, depth - 1)
    inner, last = block(s, depth - 1)
    s.edge(middle, inner)
    return first, last


def replicated(s: Sketch, depth: int) -> Ends:
    """A fan-out of copies or items, and the join they meet at."""
    origin = s.node(**_writer(s))
    first, last = block(s, depth - 1)
    group = s.edge(origin, first, **_spawning(s, origin))
    target = s.node(**s.pick(_pass, _task)(s))
    s.edge(last, target, synchronization=synchronization(s, group))
    return origin, target


def _writer(s: Sketch) -> dict[str, Json]:
    return {"action": {"kind": "mock"}, "output_mapping": {"state.items": "$.items"}}


def _spawning(s: Sketch, origin: str) -> dict[str, Json]:
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


def forked(s: Sketch, depth: int) -> Ends:
    """Different branches, joined by the ref of the node they stem from; a condition may leave some out."""
    origin, target = s.node(**_task(s)), s.node()
    sync = synchronization(s, origin)
    for _ in range(s.pick(2, 3)):
        first, last = block(s, depth - 1)
        s.edge(origin, first, **({"condition": _condition(s, origin)} if s.chance(25) else {}))
        s.edge(last, target, synchronization=sync)
    s.nodes[origin]["on_no_match"] = "end"
    return origin, target


def named(s: Sketch, depth: int) -> Ends:
    """Transitions of one tier that form one named group."""
    origin, target, name = s.node(**_task(s)), s.node(), f"g{len(s.nodes)}"
    sync = synchronization(s, name)
    for _ in range(2):
        first, last = block(s, depth - 1)
        s.edge(origin, first, sibling_group=name, spawn_count=s.pick(1, 2))
        s.edge(last, target, synchronization=sync)
    return origin, target


def _condition(s: Sketch, ref: str) -> Json:
    left = {"field": f"nodes.{ref}.output.v"}
    return {"type": "comparison", "left": left, "operator": s.pick("==", "<", "!="), "right": {"literal": 1}}


def choice(s: Sketch, depth: int) -> Ends:
    """One way or another, meeting without synchronization."""
    origin, target = s.node(**_task(s)), s.node()
    for priority in (1, 2):
        first, last = block(s, depth - 1)
        conditional = {"condition": _condition(s, origin)} if priority == 1 else {}
        s.edge(origin, first, priority=priority, **conditional)
        s.edge(last, target)
    return origin, target


def loop(s: Sketch, depth: int) -> Ends:
    """A block that may be repeated."""
    first, last = block(s, depth - 1)
    gate, end = s.node(**_task(s)), s.node()
    s.edge(last, gate)
    s.edge(gate, first, priority=1, condition=_condition(s, gate), loop={"max_iterations": s.pick(1, 2)})
    s.edge(gate, end, priority=2)
    return first, end


def unjoined(s: Sketch, depth: int) -> Ends:
    """Copies nobody joins."""
    origin = s.node(**_writer(s))
    first, last = block(s, depth - 1)
    s.edge(origin, first, spawn_count=2)
    return origin, last


def met(s: Sketch, depth: int) -> Ends:
    """Branches that meet at a node's own join."""
    kind = s.pick(
        "all_inbound",
        "all_reachable",
        "inbound_fifo",
        {"inbound": 1},
        {"inbound": 1, "rest": "block"},
        {"inbound": 1, "rest": "cancel"},
        {"tokens": 2},
        {"inbound": 2},
    )
    origin, target = s.node(**_task(s)), s.node(join=kind)
    for _ in range(s.pick(2, 3)):
        first, last = block(s, depth - 1)
        s.edge(origin, first, **({"spawn_count": 2} if s.chance(15) else {}))
        s.edge(last, target)
    return origin, target


def triggered(s: Sketch, depth: int) -> Ends:
    """A node that is left by a signal, a clock or a change of the marking."""
    waits = s.pick({}, {"action": {"kind": "mock"}}, {"action": {"kind": "human"}})
    here, target = s.node(**waits, on_no_match=s.pick("end", "error")), s.node()
    first, last = block(s, depth - 1)
    trigger = s.pick(
        {"signal": "s"}, {"after_ms": 12}, {"when": f'tokens_at("{target}") > 0'}, {"signal": "s", "buffer": "none"}
    )
    s.edge(here, first, trigger=trigger, interrupting=s.chance(70))
    s.edge(last, target)
    if waits or s.chance(30):
        s.edge(here, target, **({} if waits else {"trigger": {"after_ms": 20}}))
    return here, target


def escaping(s: Sketch, depth: int) -> Ends:
    """A block that may be left for good, so that a join around it waits in vain for this branch."""
    first, last = block(s, depth - 1)
    here, away, target = s.node(**_task(s)), s.node(), s.node()
    s.edge(last, here)
    s.edge(here, away, priority=1, condition=_condition(s, here))
    s.edge(here, target, priority=2)
    return first, target


def wild(s: Sketch) -> None:
    """An edge from anywhere to anywhere: out of groups, into branches, to another's join, back again."""
    source, target = s.pick(*s.nodes), s.pick(*s.nodes)
    fields: dict[str, Json] = {"priority": s.pick(1, 2), "loop": {"max_iterations": 1}}
    if s.chance(30):
        fields["on"] = s.pick("failure", "always")
    if "action" in s.nodes[source] and s.chance(40):
        fields["condition"] = _condition(s, source)
    joins = [t for t in s.transitions if "synchronization" in t]
    if joins and s.chance(50):
        join = s.pick(*joins)
        same = [t for t in joins if t["synchronization"]["sibling_group"] == join["synchronization"]["sibling_group"]]
        fields["synchronization"] = next((t for t in same if t["to"] == target), join)["synchronization"]
    if s.chance(15):
        fields["spawn_count"] = 2
    s.edge(source, target, **fields)


def cancelling(s: Sketch, depth: int) -> Ends:
    """Two ways, one of which withdraws the other when it is through."""
    origin, target = s.node(**_task(s)), s.node()
    (first, last), (other, end) = block(s, depth - 1), block(s, depth - 1)
    s.edge(origin, first)
    s.edge(origin, other)
    s.edge(end, target)
    s.edge(last, target, cancels={"nodes": [other, end]})
    return origin, target

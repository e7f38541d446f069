"""Random workflows that deploy: blocks with one entry and one exit, nested, with everything the language has.

Owns the shapes. A generator draws from a `random.Random`: hypothesis passes one whose every call it can shrink, a long
search passes a plain one. Documents are written as an author would write them and go through the real loader, so
`workflow_from` yields nothing that could not be deployed.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.property.sketch import (
    PICKY,
    Sketch,
    condition,
    native,
    passing,
    spawning,
    suspending,
    synchronization,
    task,
    writer,
)
from treadle.language import load_value
from treadle.model.definition import Workflow

Json = Any
Ends = tuple[str, str]
"""Entry and exit of a block."""


def document(s: Sketch) -> dict[str, Json]:
    """A whole workflow."""
    first, _ = block(s, s.pick(1, 2, 2, 3))
    whole: dict[str, Json] = {
        "workflow": "random",
        "start": s.pick(first, first, first, [first, s.pick(*s.nodes)]),
        "nodes": s.nodes,
        "transitions": s.transitions,
        "limits": {"max_tokens_per_run": s.pick(60, 60, 25)},
        "tasks": {"picky": PICKY},
    }
    if s.chance(8):
        whole["state_schema"] = {"properties": {"v": {"maximum": 1}, "merged": {"maxItems": 1}}}
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
    return s.pick(  # type: ignore[no-any-return]
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
    fields = s.pick(task, task, task, passing, suspending, native)(s)
    if s.chance(8):
        fields["mutex"] = s.pick("m", {"name": "m", "keep": True})
    ref = s.node(**fields)
    if "action" in fields and s.chance(15):
        handler = s.node(**passing(s))
        s.edge(ref, handler, on=s.pick("failure", "failure", "always"))
    return ref, ref


def sequence(s: Sketch, depth: int) -> Ends:
    first, middle = block(s, depth - 1)
    inner, last = block(s, depth - 1)
    s.edge(middle, inner)
    return first, last


def replicated(s: Sketch, depth: int) -> Ends:
    """A fan-out of copies or items, and the join they meet at."""
    origin = s.node(**writer(s))
    first, last = block(s, depth - 1)
    group = s.edge(origin, first, **spawning(s, origin))
    target = s.node(**s.pick(passing, task)(s))
    s.edge(last, target, synchronization=synchronization(s, group))
    return origin, target


def forked(s: Sketch, depth: int) -> Ends:
    """Different branches, joined by the ref of the node they stem from; a condition may leave some out."""
    origin, target = s.node(**task(s)), s.node()
    sync = synchronization(s, origin)
    for _ in range(s.pick(2, 3)):
        first, last = block(s, depth - 1)
        s.edge(origin, first, **({"condition": condition(s, origin)} if s.chance(25) else {}))
        s.edge(last, target, synchronization=sync)
    s.nodes[origin]["on_no_match"] = "end"
    return origin, target


def named(s: Sketch, depth: int) -> Ends:
    """Transitions of one tier that form one named group."""
    origin, target, name = s.node(**task(s)), s.node(), f"g{len(s.nodes)}"
    sync = synchronization(s, name)
    for _ in range(2):
        first, last = block(s, depth - 1)
        s.edge(origin, first, sibling_group=name, spawn_count=s.pick(1, 2))
        s.edge(last, target, synchronization=sync)
    return origin, target


def choice(s: Sketch, depth: int) -> Ends:
    """One way or another, meeting without synchronization."""
    origin, target = s.node(**task(s)), s.node()
    for priority in (1, 2):
        first, last = block(s, depth - 1)
        conditional = {"condition": condition(s, origin)} if priority == 1 else {}
        s.edge(origin, first, priority=priority, **conditional)
        s.edge(last, target)
    return origin, target


def loop(s: Sketch, depth: int) -> Ends:
    """A block that may be repeated."""
    first, last = block(s, depth - 1)
    gate, end = s.node(**task(s)), s.node()
    s.edge(last, gate)
    s.edge(gate, first, priority=1, condition=condition(s, gate), loop={"max_iterations": s.pick(1, 2)})
    s.edge(gate, end, priority=2)
    return first, end


def unjoined(s: Sketch, depth: int) -> Ends:
    """Copies nobody joins."""
    origin = s.node(**writer(s))
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
    origin, target = s.node(**task(s)), s.node(join=kind)
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
    here, away, target = s.node(**task(s)), s.node(), s.node()
    s.edge(last, here)
    s.edge(here, away, priority=1, condition=condition(s, here))
    s.edge(here, target, priority=2)
    return first, target


def wild(s: Sketch) -> None:
    """An edge from anywhere to anywhere: out of groups, into branches, to another's join, back again."""
    source, target = s.pick(*s.nodes), s.pick(*s.nodes)
    fields: dict[str, Json] = {"priority": s.pick(1, 2), "loop": {"max_iterations": 1}}
    if s.chance(30):
        fields["on"] = s.pick("failure", "always")
    if "action" in s.nodes[source] and s.chance(40):
        fields["condition"] = condition(s, source)
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
    origin, target = s.node(**task(s)), s.node()
    (first, last), (other, end) = block(s, depth - 1), block(s, depth - 1)
    s.edge(origin, first)
    s.edge(origin, other)
    s.edge(end, target)
    s.edge(last, target, cancels={"nodes": [other, end]})
    return origin, target

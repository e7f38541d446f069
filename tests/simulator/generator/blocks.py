"""Control flow without groups: chains, choices, loops, triggers. A block has one way in and one way out.

Every cycle carries a `loop` limit, so that every run ends by itself once people and workers answer; tokens may
still multiply, and `limits` bounds that.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simulator.generator import fan_outs
from tests.simulator.generator.conditions import condition, marking
from tests.simulator.generator.contents import SIGNALS, awaits, work
from tests.simulator.generator.sketch import Sketch, Span
from treadle.model.definition import NodeJoin, Trigger

Block = Callable[[Sketch, int], Span]


def block(s: Sketch, depth: int) -> Span:
    """Any block the plan allows."""
    if depth <= 0 or s.room <= 3:
        return single(s, depth)
    options: list[tuple[Block, float]] = [(single, 2.0), (chain, 2.0)]
    options += [(maker, 2.0) for name, maker in _BY_FEATURE if s.plan.has(name)]
    return s.draw.weighted(options)(s, depth - 1)


def single(s: Sketch, _depth: int) -> Span:
    """One node."""
    ref = work(s)
    return Span(ref, ref)


def chain(s: Sketch, depth: int) -> Span:
    """Blocks one after another."""
    first = block(s, depth)
    last = first
    for _ in range(s.draw.between(1, 2)):
        following = block(s, depth)
        s.edge(last.exit, following.entry)
        last = following
    return Span(first.entry, last.exit)


def choice(s: Sketch, depth: int) -> Span:
    """One or several of some branches, by conditions, priorities or the order of definition; a plain merge."""
    head = work(s)
    merge = s.node()
    if s.has("no_match", 0.5):
        s.nodes[head]["on_no_match"] = "end"
    else:
        s.edge(head, merge, priority=9)
    if s.draw.chance(0.3):
        s.nodes[head]["fan_out"] = "first_match"
    for _ in range(s.draw.between(1, 2)):
        branch = block(s, depth)
        s.edge(head, branch.entry, condition=condition(s), priority=s.draw.pick((1, 1, 2)))
        s.edge(branch.exit, merge)
    if s.has("node_join", 0.3):
        s.nodes[merge]["join"] = NodeJoin(kind="all_reachable")
    return Span(head, merge)


def loop(s: Sketch, depth: int) -> Span:
    """A body repeated at most so often, under a condition or not."""
    body = block(s, depth)
    tail = work(s)
    after = s.node()
    s.edge(body.exit, tail)
    fields = {"condition": condition(s)} if s.draw.chance(0.4) else {}
    s.edge(tail, body.entry, loop_max_iterations=s.draw.between(1, 3), **fields)
    s.edge(tail, after, priority=2)
    return Span(body.entry, after)


def deferred_choice(s: Sketch, depth: int) -> Span:
    """A node without a task that waits for the first of several triggers."""
    head = s.node()
    merge = s.node()
    s.spared.add(head)
    triggers = [Trigger(signal=s.draw.pick(SIGNALS)), Trigger(after_ms=s.draw.pick((10, 100, 400)))]
    if s.has("when", 0.5):
        triggers = [Trigger(when=marking(s))] + ([triggers[0]] if s.draw.chance(0.5) else [])
        s.nodes[head]["on_no_match"] = s.draw.pick(("end", "error"))
    for trigger in triggers:
        branch = block(s, depth - 1)
        s.edge(head, branch.entry, trigger=trigger)
        s.edge(branch.exit, merge)
    return Span(head, merge)


def guarded(s: Sketch, depth: int) -> Span:
    """Work that a trigger interrupts, or beside which it starts something."""
    if s.draw.chance(0.4):
        return deferred_choice(s, depth)
    head = work(s)
    after = s.node()
    s.edge(head, after)
    trigger = s.draw.pick(
        (
            Trigger(after_ms=s.draw.pick((5, 60))),
            Trigger(signal=s.draw.pick(SIGNALS), buffer=s.draw.pick((None, "none"))),
        )
    )
    if s.has("when", 0.4):
        trigger = Trigger(when=marking(s))
    elif trigger.signal is not None and awaits(s, head, trigger.signal):
        trigger = Trigger(after_ms=60)  # armed before the visit waits, it would take every signal itself
    other = block(s, depth - 1)
    fields = {"condition": condition(s)} if s.draw.chance(0.2) else {}
    s.edge(head, other.entry, trigger=trigger, interrupting=s.draw.chance(0.5), **fields)
    if s.draw.chance(0.7):
        s.edge(other.exit, after)
    return Span(head, after)


_BY_FEATURE: tuple[tuple[str, Block], ...] = (
    ("choice", choice),
    ("loop", loop),
    ("trigger", guarded),
    ("fork", fan_outs.fork),
    ("named_group", fan_outs.named_group),
    ("replicate", fan_outs.replicated),
    ("dynamic", fan_outs.dynamic),
    ("foreach", fan_outs.foreach),
)

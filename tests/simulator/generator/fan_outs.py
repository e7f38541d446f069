"""Fan-outs and what joins them: forks by node ref, named groups, replication by count and by items.

head ──┬─ branch ─┬─► target        the join is a `synchronization` on the group, a join of the target node,
       ├─ branch ─┤                 or nothing at all: then the target is visited once per arrival
       └─ branch ─┘
"""

from __future__ import annotations

from typing import Any

from tests.simulator.generator.conditions import cel, condition
from tests.simulator.generator.contents import work
from tests.simulator.generator.policies import node_join, synchronization
from tests.simulator.generator.sketch import Sketch, Span
from treadle.model.definition import Foreach, Synchronization


def fork(s: Sketch, depth: int) -> Span:
    """Different branches of one node, joined by its ref, by the target's own join, or not at all."""
    head, target = work(s), s.node()
    count = s.draw.between(1, 3)
    sync = _join(s, target, head, count, count)
    for number in range(count):
        branch = _branch(s, depth, head)
        fields = {"condition": condition(s)} if number and s.draw.chance(0.4) else {}
        s.edge(head, branch.entry, **fields)
        _leave(s, branch.exit, target, sync)
    return Span(head, target)


def named_group(s: Sketch, depth: int) -> Span:
    """Transitions of one tier that share a declared group, some of them replicating."""
    head, target = work(s), s.node()
    name = f"g{len(s.groups)}"
    s.groups.append(name)
    count = s.draw.between(1, 2)
    copies = [s.draw.pick((1, 1, 2)) for _ in range(count)]
    sync = _join(s, target, name, sum(copies), count)
    for number in copies:
        branch = _branch(s, depth, name)
        fields: dict[str, Any] = {"spawn_count": number} if number > 1 else {}
        s.edge(head, branch.entry, sibling_group=name, **fields)
        _leave(s, branch.exit, target, sync)
    return Span(head, target)


def replicated(s: Sketch, depth: int) -> Span:
    """A fixed number of like branches."""
    count = s.draw.between(2, 4)
    return _replicate(s, depth, count, {"spawn_count": count})


def dynamic(s: Sketch, depth: int) -> Span:
    """As many like branches as the data says."""
    source = s.draw.pick(({"from_context": "$.state.n"}, {"from_context": "$.input.n"}, {"cel": "size(input.items)"}))
    return _replicate(s, depth, None, {"spawn_from": source})


def foreach(s: Sketch, depth: int) -> Span:
    """One branch per item."""
    items = Foreach(
        collection=s.draw.pick(("$.input.items", "$.state.items", "$.input.items", "$.input.nothing")),
        item_var=s.draw.pick((None, "item")),
        on_missing=s.draw.pick(("fail", "empty", "single")),
        max_in_flight=s.draw.between(1, 2) if s.has("lazy", 0.6) else None,
    )
    return _replicate(s, depth, None, {"foreach": items})


def _replicate(s: Sketch, depth: int, count: int | None, fields: dict[str, Any]) -> Span:
    head, target = work(s), s.node()
    identity = s.identity()
    name = identity
    if s.draw.chance(0.3):
        name = f"g{len(s.groups)}"
        fields = {**fields, "sibling_group": name}
    s.groups.append(name)
    if s.has("open_group", 0.6):
        fields = {**fields, "open": True}
        s.open_groups.append(name)
        count = None
    if s.has("first_wins", 0.4):
        fields = {**fields, s.draw.pick(("on_first_completion", "on_first_start")): "cancel_remaining"}
    sync = _join(s, target, name, count, None)
    branch = _branch(s, depth, name)
    s.edge(head, branch.entry, id=identity, **fields)
    if sync is not None and s.has("two_joins", 0.5) and "foreach" in fields:
        _second_join(s, branch, target, sync, identity)
    _leave(s, branch.exit, target, sync)
    return Span(head, target)


def _second_join(s: Sketch, branch: Span, target: str, sync: Synchronization, identity: str) -> None:
    """Some branches meet elsewhere; an empty group must then know which join it satisfies."""
    other = s.node()
    s.edge(branch.exit, other, synchronization=sync, condition=cel("_branch.index % 2 == 0"))
    s.nodes[branch.exit]["fan_out"] = "first_match"
    s.edge(other, s.node())
    for edge in s.edges:
        if edge["id"] == identity:
            items: Foreach = edge["foreach"]
            edge["foreach"] = Foreach(
                collection=items.collection,
                item_var=items.item_var,
                on_empty=target,
                on_missing=items.on_missing,
                max_in_flight=items.max_in_flight,
            )


def _branch(s: Sketch, depth: int, group: str) -> Span:
    from tests.simulator.generator.blocks import block, single

    before = len(s.nodes)
    deep = depth if s.plan.has("nested") else min(depth, 1)
    span = block(s, deep) if s.draw.chance(0.7) else single(s, depth)
    s.inside.setdefault(group, []).extend(list(s.nodes)[before:])
    return span


def _join(s: Sketch, target: str, group: str, branches: int | None, inbound: int | None) -> Synchronization | None:
    """How the branches meet at `target`. None: by the target's own join, by a join further out, or not at all."""
    if s.has("node_join", 0.4 if inbound is not None else 0.15):
        s.nodes[target]["join"] = node_join(s, inbound or 2)
        return None
    if s.has("unjoined", 0.25) or s.has("skip_join", 0.25):
        return None
    return synchronization(s, group, branches)


def _leave(s: Sketch, source: str, target: str, sync: Synchronization | None) -> None:
    """A branch goes to the join; now and then it routes away instead."""
    if s.has("no_match", 0.3):
        s.nodes[source]["on_no_match"] = "end"
        s.join(source, target, sync, condition=condition(s))
        return
    s.join(source, target, sync)
    if s.draw.chance(0.15):
        s.edge(source, s.node(), condition=condition(s), priority=0.5)

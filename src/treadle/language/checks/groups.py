"""Checks of sibling groups: their names exist, joins fit them, and the numbers can work out (1.7, 2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.language.checks.flow import Edge, Flow
from treadle.language.problem import Path
from treadle.language.reading import Reading
from treadle.model.definition import Synchronization, Transition


def check(flow: Flow, reading: Reading) -> None:
    """UNKNOWN_SIBLING_GROUP, SPAWN_COUNT, JOIN_CONFLICT, QUORUM_TOO_LARGE, ON_EMPTY_REQUIRED, JOIN_WITHOUT_FAN_OUT."""
    names = known_groups(flow)
    for at, name in _named(flow):
        if name not in names:
            reading.unknown("UNKNOWN_SIBLING_GROUP", reading.written(at), "sibling group", name, names)
    for at, ref in _cancelled_nodes(flow):
        if ref not in flow.workflow.nodes:
            reading.unknown("UNKNOWN_NODE", reading.written(at), "node", ref, flow.workflow.nodes)
    for edge in flow.edges:
        _spawn_count(edge, flow, reading)
        _on_empty(edge, flow, reading)
        if edge[1].synchronization is not None:
            _fan_out(edge, edge[1].synchronization, flow, reading)
            _quorum(edge, edge[1].synchronization, flow, reading)
    _conflicts(flow, reading)


def known_groups(flow: Flow) -> dict[str, None]:
    """Every name a join may use: declared names, transition ids, node refs."""
    declared = [t.sibling_group for t in flow.workflow.transitions if t.sibling_group is not None]
    return dict.fromkeys([*declared, *(t.id for t in flow.workflow.transitions), *flow.workflow.nodes])


def replicates(transition: Transition) -> bool:
    """Whether a transition starts several like branches (A0)."""
    return (
        transition.foreach is not None
        or transition.spawn_from is not None
        or (transition.spawn_count is not None and transition.spawn_count > 1)
    )


def makes_group(transition: Transition) -> bool:
    """Whether firing a transition makes a group of its own (2.3)."""
    return replicates(transition) or transition.sibling_group is not None


def started_by(flow: Flow, name: str) -> list[Edge]:
    """The transitions whose firing makes the group called `name`: declared name, then transition id, then node ref."""
    declared = [edge for edge in flow.edges if edge[1].sibling_group == name]
    if declared:
        return declared
    by_id = [edge for edge in flow.edges if edge[1].id == name]
    return by_id or flow.out.get(name, [])


def is_node_group(flow: Flow, name: str) -> bool:
    """Whether a group's name is a node ref: everything that one visit of the node started."""
    return name in flow.workflow.nodes and not any(name in (edge[1].sibling_group, edge[1].id) for edge in flow.edges)


def _named(flow: Flow) -> Iterator[tuple[Path, str]]:
    """Every place that names a group."""
    for index, transition in flow.edges:
        if transition.synchronization is not None:
            yield (
                ("transitions", index, "synchronization", "sibling_group"),
                transition.synchronization.sibling_group,
            )
        if transition.cancels is not None:
            for number, name in enumerate(transition.cancels.groups):
                yield ("transitions", index, "cancels", "groups", number), name
    for ref, node in flow.workflow.nodes.items():
        for number, step in enumerate(node.task.steps if node.task is not None else ()):
            group = step.action.config.get("group") if step.action.kind in _GROUP_KINDS else None
            if isinstance(group, str) and not group.startswith("$"):
                yield ("nodes", ref, "task", "steps", number, "action", "group"), group


_GROUP_KINDS = frozenset({"cancel_group", "add_siblings", "close_group"})


def _cancelled_nodes(flow: Flow) -> Iterator[tuple[Path, str]]:
    for index, transition in flow.edges:
        if transition.cancels is not None:
            for number, ref in enumerate(transition.cancels.nodes):
                yield ("transitions", index, "cancels", "nodes", number), ref


def _spawn_count(edge: Edge, flow: Flow, reading: Reading) -> None:
    index, transition = edge
    limit = flow.workflow.limits.max_spawn_count
    if transition.spawn_count is not None and transition.spawn_count > limit:
        message = f"{transition.spawn_count} tokens are more than `limits.max_spawn_count`, which is {limit}"
        reading.problem_in(
            "SPAWN_COUNT", ("transitions", index, "spawn_count"), message, "raise the limit, or spawn less"
        )


def _on_empty(edge: Edge, flow: Flow, reading: Reading) -> None:
    """Report a `foreach` without a clear join for an empty collection: an empty group satisfies its join at once."""
    index, transition = edge
    if transition.foreach is None and transition.spawn_from is None:
        return
    if transition.foreach is not None and transition.foreach.by_item:
        return  # On a canvas every collector below a splitter collects an empty list.
    names = {transition.id, transition.sibling_group}
    targets = dict.fromkeys(
        other.to
        for _, other in flow.edges
        if other.synchronization is not None and other.synchronization.sibling_group in names
    )
    listed = ", ".join(f"`{target}`" for target in targets)
    given = transition.foreach.on_empty if transition.foreach is not None else None
    if given is not None:
        _on_empty_target(given, index, targets, flow, reading)
    elif len(targets) > 1:
        message = f"if there are no items, several joins could fire: {listed}"
        at: Path = ("transitions", index, "foreach" if transition.foreach is not None else "spawn_count")
        hint = f"say which: `on_empty: {next(iter(targets))}`"
        if transition.foreach is None:
            hint = "use `foreach` with `on_empty`, or let one join be enough"
        reading.problem_in("ON_EMPTY_REQUIRED", at, message, hint)


def _on_empty_target(given: str, index: int, targets: dict[str, None], flow: Flow, reading: Reading) -> None:
    at: Path = ("transitions", index, "foreach", "on_empty")
    if given not in flow.workflow.nodes:
        reading.unknown("UNKNOWN_NODE", reading.written(at), "node", given, targets or flow.workflow.nodes)
    elif given not in targets:
        reading.problem_in("BAD_VALUE", at, f"no join of this group leads to `{given}`")


def _fan_out(edge: Edge, sync: Synchronization, flow: Flow, reading: Reading) -> None:
    """Report a join on a plain transition, which makes no group: the join waits for nothing."""
    name = sync.sibling_group
    makers = started_by(flow, name)
    if is_node_group(flow, name) or not makers or any(makes_group(transition) for _, transition in makers):
        return
    message = f"the transition `{name}` starts one token and makes no group, so this join waits for nobody"
    source = makers[0][1].from_
    hint = f"give `{name}` a `spawn_count`, `foreach` or `sibling_group`, or join on the node `{source}`"
    at = ("transitions", edge[0], "synchronization", "sibling_group")
    reading.problem_in("JOIN_WITHOUT_FAN_OUT", at, message, hint)


def _quorum(edge: Edge, sync: Synchronization, flow: Flow, reading: Reading) -> None:
    branches = _branches(flow, sync.sibling_group)
    if branches is None:
        return
    wanted: list[tuple[str, int]] = [("strategy", sync.strategy.count)] if sync.strategy.kind == "m_of_n" else []
    wanted += [("min_success_count", sync.min_success_count or 0)]
    for name, count in wanted:
        if count > branches:
            message = f"{count} branches can never arrive: the group `{sync.sibling_group}` has at most {branches}"
            reading.problem_in("QUORUM_TOO_LARGE", ("transitions", edge[0], "synchronization", name), message)


def _branches(flow: Flow, name: str) -> int | None:
    """The most branches an instance of a group can have, where the definition alone says so."""
    makers = started_by(flow, name)
    if not makers or any(t.open or t.foreach is not None or t.spawn_from is not None for _, t in makers):
        return None
    if is_node_group(flow, name):
        return len(makers)
    if not all(makes_group(transition) for _, transition in makers):
        return None
    per_visit: dict[str, int] = {}
    for _, transition in makers:
        per_visit[transition.from_] = per_visit.get(transition.from_, 0) + (transition.spawn_count or 1)
    return max(per_visit.values())


def _conflicts(flow: Flow, reading: Reading) -> None:
    """Report joins of one group at one target that are configured differently: they are one join."""
    first: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    for index, transition in flow.edges:
        sync = transition.synchronization
        if sync is None:
            continue
        config = {name: getattr(sync, name) for name in sync.__struct_fields__ if name != "sibling_group"}
        key = (sync.sibling_group, transition.to)
        other, expected = first.setdefault(key, (index, config))
        if config != expected:
            different = ", ".join(f"`{name}`" for name in config if config[name] != expected[name])
            message = (
                f"the join of `{sync.sibling_group}` at `{transition.to}` is configured differently"
                f" in `transitions[{other}]`: {different}"
            )
            hint = "make both alike: they are one join"
            reading.problem_in("JOIN_CONFLICT", ("transitions", index, "synchronization"), message, hint)

"""The groups a token can be inside of, at each node.

A forward may-analysis. A fact is (group, level), level 1 = inside once, 2 = inside more than once (a loop
entered the fan-out again before its join). Starting a branch adds the group, a join takes one level away.
Sets only grow, so this ends. Over-approximate on purpose: a join also drops what was nested inside its
group, and we do not use that, so what is reported as "never" is never.
"""

from __future__ import annotations

from treadle.language.checks.flow import Flow
from treadle.language.checks.groups import is_node_group, replicates, started_by
from treadle.language.reading import Reading
from treadle.model.definition import Transition

Fact = tuple[str, int]


def check(flow: Flow, reading: Reading) -> None:
    """GROUP_NEVER_ON_STACK, GROUP_WITHOUT_JOIN."""
    inside = stacks(flow)
    joined = _joined_names(flow)
    for index, transition in flow.edges:
        sync = transition.synchronization
        if sync is not None and started_by(flow, sync.sibling_group) and transition.from_ in flow.live:
            _never(index, transition, sync.sibling_group, inside, flow, reading)
        if replicates(transition) and transition.from_ in flow.live:
            _without_join(index, transition, joined, inside, flow, reading)


def _joined_names(flow: Flow) -> dict[str, set[str]]:
    """Group name → the nodes from which some join of it is entered."""
    names: dict[str, set[str]] = {}
    for _, transition in flow.edges:
        if transition.synchronization is not None:
            names.setdefault(transition.synchronization.sibling_group, set()).add(transition.from_)
    return names


def stacks(flow: Flow) -> dict[str, set[Fact]]:
    """For each node the groups its tokens may be inside of."""
    names = [name for name in _joined_names(flow) if started_by(flow, name)]
    pushed: dict[int, list[str]] = {index: [] for index, _ in flow.edges}
    for name in names:
        for index, transition in started_by(flow, name):
            if is_node_group(flow, name) or _groups(transition):
                pushed[index].append(name)
    inside: dict[str, set[Fact]] = {ref: set() for ref in flow.workflow.nodes}
    todo = list(flow.live)
    while todo:
        ref = todo.pop()
        for index, transition in flow.out[ref]:
            facts = _across(inside[ref], pushed[index], transition)
            if not facts <= inside[transition.to]:
                inside[transition.to] |= facts
                todo.append(transition.to)
    return inside


def _groups(transition: Transition) -> bool:
    return replicates(transition) or transition.sibling_group is not None


def _across(facts: set[Fact], pushed: list[str], transition: Transition) -> set[Fact]:
    """The facts behind a transition: first the groups it starts, then the join it leads into."""
    result = set(facts)
    for name in pushed:
        if (name, 1) in facts:
            result.add((name, 2))
        result.add((name, 1))
    sync = transition.synchronization
    if sync is not None and sync.on_early_complete != "pass_through":
        name = sync.sibling_group
        if (name, 2) not in result:
            result.discard((name, 1))
    return result


def _never(
    index: int, transition: Transition, name: str, inside: dict[str, set[Fact]], flow: Flow, reading: Reading
) -> None:
    makers = started_by(flow, name)
    starts_here = any(position == index for position, _ in makers)
    no_group = not is_node_group(flow, name) and not any(_groups(maker) for _, maker in makers)
    if starts_here or no_group or (name, 1) in inside[transition.from_]:
        return
    message = f"no token at `{transition.from_}` can be in the group `{name}`, so this join never waits"
    hint = f"the group begins at `{makers[0][1].to}`; does a path lead from there to `{transition.from_}`?"
    at = ("transitions", index, "synchronization", "sibling_group")
    reading.problem_in("GROUP_NEVER_ON_STACK", at, message, hint)


def _without_join(
    index: int,
    transition: Transition,
    joined: dict[str, set[str]],
    inside: dict[str, set[Fact]],
    flow: Flow,
    reading: Reading,
) -> None:
    """Joined by its own names, by the node that started it, by a group around it, or by a node that counts tokens."""
    below = flow.reach([transition.to])
    if any(flow.workflow.nodes[ref].join is not None for ref in below):
        return
    around = {name for name, _ in inside[transition.from_]}
    for name in (transition.sibling_group, transition.id, transition.from_, *around):
        if name is not None and joined.get(name, set()) & below:
            return
    name = transition.sibling_group or transition.id
    message = f"nothing joins the branches of `{name}`: all that follows runs once per branch"
    hint = f"if that is not meant, add `synchronization: {{sibling_group: {name}}}`"
    at = ("transitions", index, "foreach" if transition.foreach is not None else "spawn_count")
    reading.problem_in("GROUP_WITHOUT_JOIN", at, message, hint)

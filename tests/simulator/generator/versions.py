"""Further versions of a workflow: the same again, a node with another name, a node more, or something that is in the
way of most runs (6.5). Transitions keep their ids, so that a reader can tell what became of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec.structs import replace

from tests.simulator.draw import Draw
from tests.simulator.generator.contents import task
from tests.simulator.plan import Plan
from treadle.model.definition import Node, Strategy, Transition, Workflow


class Upgrade(NamedTuple):
    """A further version, and how its author would migrate to it."""

    workflow: Workflow
    nodes: dict[str, str]
    """Nodes of the version before that have another name now."""
    is_same: bool
    """Nothing but a limit has changed, for the better: nothing can be in the way of a migration."""


def upgrades(plan: Plan, workflows: list[Workflow]) -> list[Upgrade]:
    """The versions that are deployed while the world lives, in order."""
    draw = Draw(plan.seed, "versions")
    found: list[Upgrade] = []
    if not plan.has("versions"):
        return found
    for first in workflows:
        newest = first
        for number in range(2, 2 + draw.pick((0, 1, 1, 2))):
            made = draw.pick(_CHANGES)(newest, draw)
            keep = "migrate_if_safe" if plan.has("on_deploy") and draw.chance(0.6) else "keep"
            newest = replace(made.workflow, description=f"version {number}", on_deploy=keep)
            found.append(Upgrade(newest, made.nodes, made.is_same))
    return found


def _same(workflow: Workflow, _draw: Draw) -> Upgrade:
    """As good as the same: a description alone would be no new version."""
    limits = replace(workflow.limits, max_tokens_per_run=workflow.limits.max_tokens_per_run + 1)
    return Upgrade(replace(workflow, limits=limits), {}, is_same=True)


def _renamed(workflow: Workflow, draw: Draw) -> Upgrade:
    """One node has another name, wherever it is mentioned."""
    before = draw.pick([ref for ref in workflow.nodes if ref != "n0"] or ["n0"])
    after = f"{before}x"
    if before == "n0" or _mentioned(workflow, before):
        return _same(workflow, draw)

    def name(ref: str | None) -> Any:
        return after if ref == before else ref

    def moved(t: Transition) -> Transition:
        t = replace(t, from_=name(t.from_), to=name(t.to))
        if t.foreach is not None:
            t = replace(t, foreach=replace(t.foreach, on_empty=name(t.foreach.on_empty)))
        if t.cancels is not None:
            groups = [name(group) if _is_node(workflow, group) else group for group in t.cancels.groups]
            t = replace(t, cancels=replace(t.cancels, nodes=[name(ref) for ref in t.cancels.nodes], groups=groups))
        if t.synchronization is not None and _is_node(workflow, t.synchronization.sibling_group):
            sync = t.synchronization
            t = replace(t, synchronization=replace(sync, sibling_group=name(sync.sibling_group)))
        return t

    nodes = {name(ref): node for ref, node in workflow.nodes.items()}
    changed = replace(
        workflow,
        nodes=nodes,
        transitions=[moved(t) for t in workflow.transitions],
        start=[name(ref) for ref in workflow.start],
    )
    return Upgrade(changed, {before: after}, is_same=False)


def _is_node(workflow: Workflow, group: str) -> bool:
    """Whether a group is called by the name of a node (2.16)."""
    declared = {t.sibling_group for t in workflow.transitions}
    return group not in declared and group not in {t.id for t in workflow.transitions}


def _mentioned(workflow: Workflow, ref: str) -> bool:
    """Whether an expression or a task names the node: those are left alone. Its own group, too, may be meant by a
    task's configuration."""
    quoted = f'"{ref}"'
    texts = [str(t.condition) + str(t.trigger) for t in workflow.transitions]
    texts += [str(node.task) for node in workflow.nodes.values() if node.task is not None]
    texts += [str(node.input_mapping) for node in workflow.nodes.values()]
    return any(quoted in text or f"'{ref}'" in text or f"nodes.{ref}." in text for text in texts)


def _grown(workflow: Workflow, draw: Draw) -> Upgrade:
    """One node more, behind an end of the graph."""
    leaving = {t.from_ for t in workflow.transitions}
    ends = [ref for ref, node in workflow.nodes.items() if ref not in leaving and node.terminates is None]
    if not ends:
        return _same(workflow, draw)
    end = draw.pick(ends)
    nodes = {**workflow.nodes, f"{end}y": Node(task=task("mock"))}
    more = Transition(id=f"to-{end}y", from_=end, to=f"{end}y")
    return Upgrade(replace(workflow, nodes=nodes, transitions=[*workflow.transitions, more]), {}, is_same=False)


def _other_work(workflow: Workflow, draw: Draw) -> Upgrade:
    """A node does something else: in the way of visits that wait there."""
    able = [ref for ref, node in workflow.nodes.items() if node.task is not None and ref != "n0"]
    if not able:
        return _same(workflow, draw)
    ref = draw.pick(able)
    node = workflow.nodes[ref]
    kind = task("mock") if node.task is None or node.task.steps[0].action.kind != "mock" else task("wait", ms=20)
    other = replace(node, task=kind, queue=None, concurrency=None, retry=None)
    return Upgrade(replace(workflow, nodes={**workflow.nodes, ref: other}), {}, is_same=False)


def _other_join(workflow: Workflow, draw: Draw) -> Upgrade:
    """A join has another strategy: in the way of arrivals that wait there."""
    joins = [t for t in workflow.transitions if t.synchronization is not None]
    if not joins:
        return _other_work(workflow, draw)
    target = draw.pick(joins)
    assert target.synchronization is not None
    group = target.synchronization.sibling_group

    def moved(t: Transition) -> Transition:
        sync = t.synchronization
        if sync is None or t.to != target.to or sync.sibling_group != group:
            return t
        kind = "all" if sync.strategy.kind == "any" else "any"
        rest = "abandon" if kind == "any" else sync.on_early_complete
        strategy = Strategy(kind=kind)  # type: ignore[arg-type]
        return replace(
            t, synchronization=replace(sync, strategy=strategy, on_early_complete=rest, min_success_count=None)
        )

    return Upgrade(replace(workflow, transitions=[moved(t) for t in workflow.transitions]), {}, is_same=False)


def _shrunk(workflow: Workflow, draw: Draw) -> Upgrade:
    """A node at the end of the graph is gone, with everything that leads there: in the way of visits that are there."""
    leaving = {t.from_ for t in workflow.transitions}
    ends = [ref for ref in workflow.nodes if ref not in leaving and ref not in workflow.start]
    kept = {t.to for t in workflow.transitions if t.synchronization is not None}
    named = {ref for t in workflow.transitions if t.cancels is not None for ref in t.cancels.nodes}
    named |= {t.foreach.on_empty for t in workflow.transitions if t.foreach is not None and t.foreach.on_empty}
    ends = [ref for ref in ends if ref not in kept | named and not _mentioned(workflow, ref)]
    if not ends:
        return _other_join(workflow, draw)
    end = draw.pick(ends)
    nodes = {ref: node for ref, node in workflow.nodes.items() if ref != end}
    return Upgrade(
        replace(workflow, nodes=nodes, transitions=[t for t in workflow.transitions if t.to != end]), {}, is_same=False
    )


_CHANGES: tuple[Callable[[Workflow, Draw], Upgrade], ...] = (
    _same,
    _renamed,
    _renamed,
    _grown,
    _other_work,
    _other_join,
    _shrunk,
)

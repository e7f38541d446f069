"""The workflow as a graph for the checks: adjacency, reachability, and order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from treadle.model.definition import Transition, Workflow

Edge = tuple[int, Transition]
"""A transition and its position, which is also its place in the document."""


class Flow:
    """Adjacency and reachability of one workflow, computed when asked for."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.edges: list[Edge] = list(enumerate(workflow.transitions))
        self.out: dict[str, list[Edge]] = {ref: [] for ref in workflow.nodes}
        self.into: dict[str, list[Edge]] = {ref: [] for ref in workflow.nodes}
        for edge in self.edges:
            self.out[edge[1].from_].append(edge)
            self.into[edge[1].to].append(edge)

    @cached_property
    def item_variables(self) -> tuple[str, ...]:
        """Every name that some `foreach` binds."""
        found = {t.foreach.item_var for t in self.workflow.transitions if t.foreach and t.foreach.item_var}
        return tuple(sorted(found))

    @cached_property
    def live(self) -> frozenset[str]:
        """The nodes a run can reach."""
        return self.reach(self.workflow.start)

    def reach(self, refs: Iterable[str], follow: Callable[[Transition], bool] = lambda _: True) -> frozenset[str]:
        """The nodes reachable from some, themselves included, over the transitions that `follow` allows."""
        seen = set(refs)
        todo = list(seen)
        while todo:
            for _, transition in self.out[todo.pop()]:
                if transition.to not in seen and follow(transition):
                    seen.add(transition.to)
                    todo.append(transition.to)
        return frozenset(seen)

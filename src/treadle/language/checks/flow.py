"""The workflow as a graph, the way the checks look at it: who leads where, who can reach whom, who comes
first.
"""

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
        self._after: dict[str, frozenset[str]] = {}
        self._owned: dict[str, frozenset[str]] = {}

    @cached_property
    def item_variables(self) -> tuple[str, ...]:
        """Every name that some `foreach` binds."""
        found = {t.foreach.item_var for t in self.workflow.transitions if t.foreach and t.foreach.item_var}
        return tuple(sorted(found))

    @cached_property
    def live(self) -> frozenset[str]:
        """The nodes a run can get to."""
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

    def after(self, ref: str) -> frozenset[str]:
        """The nodes that can be visited after a visit of `ref`; `ref` itself only if it lies on a cycle."""
        if ref not in self._after:
            self._after[ref] = self.reach(transition.to for _, transition in self.out[ref])
        return self._after[ref]

    def owned(self, ref: str) -> frozenset[str]:
        """The nodes that no run can visit before its first visit of `ref`, which is one of them."""
        if ref not in self._owned:
            others = [start for start in self.workflow.start if start != ref]
            self._owned[ref] = self.live - self.reach(others, lambda transition: transition.to != ref)
        return self._owned[ref]

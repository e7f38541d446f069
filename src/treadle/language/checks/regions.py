"""Regions of branches: the nodes that branches of a group visit, and the nodes that may be at work at the same time."""

from __future__ import annotations

from functools import cache

from treadle.language.checks.flow import Flow
from treadle.language.checks.groups import replicates, started_by
from treadle.model.definition import Transition


class Regions:
    """Answers about branches of one workflow; each is computed once."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.reach_from = cache(lambda ref: flow.reach([ref]))
        self.inside = cache(self._inside)
        self.strictly_inside = cache(self._strictly_inside)
        self.isolating = tuple(
            dict.fromkeys(
                t.synchronization.sibling_group
                for _, t in flow.edges
                if t.synchronization is not None and started_by(flow, t.synchronization.sibling_group)
            )
        )
        """Names of the groups that some join refers to: their branches write into an overlay (2.4)."""
        self._forks = self._fork_pairs()

    def _inside(self, name: str) -> frozenset[str]:
        """The nodes a branch of the group can visit before a join of the group."""
        starts = [transition.to for _, transition in started_by(self.flow, name) if not _joins(transition, name)]
        return self.flow.reach(starts, lambda transition: not _joins(transition, name))

    def _strictly_inside(self, name: str) -> frozenset[str]:
        """The nodes that only branches of the group visit."""
        makers = {index for index, _ in started_by(self.flow, name)}
        ids = {self.flow.workflow.transitions[index].id for index in makers}
        outside = self.flow.reach(self.flow.workflow.start, lambda transition: transition.id not in ids)
        return self.inside(name) - outside

    def may_overlap(self, one: str, other: str) -> bool:
        """Whether a visit of one node may happen before or during a visit of the other although no path leads
        there.
        """
        return any((one in left and other in right) or (other in left and one in right) for left, right in self._forks)

    def _fork_pairs(self) -> list[tuple[frozenset[str], frozenset[str]]]:
        """The nodes that the two sides of every possible split can reach."""
        pairs: dict[tuple[str, str], None] = {}
        starts = self.flow.workflow.start
        pairs.update(dict.fromkeys((a, b) for i, a in enumerate(starts) for b in starts[:i]))
        for ref, edges in self.flow.out.items():
            transitions = [transition for _, transition in edges]
            for position, transition in enumerate(transitions):
                if replicates(transition):
                    pairs[transition.to, transition.to] = None
                if transition.trigger is not None and not transition.interrupting:
                    pairs[transition.to, ref] = None
                for other in transitions[:position]:
                    if self._both(ref, transition, other):
                        pairs[transition.to, other.to] = None
        return [(self.reach_from(a), self.reach_from(b)) for a, b in pairs]

    def _both(self, ref: str, one: Transition, other: Transition) -> bool:
        """Whether one visit can follow both transitions: same tier, same outcome, no trigger, not `first_match`."""
        return (
            one.trigger is None
            and other.trigger is None
            and one.priority == other.priority
            and (one.on == other.on or "always" in (one.on, other.on))
            and self.flow.workflow.nodes[ref].fan_out == "all"
        )


def _joins(transition: Transition, name: str) -> bool:
    return transition.synchronization is not None and transition.synchronization.sibling_group == name

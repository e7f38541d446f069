"""Lineage on a canvas: the splitters around every node, innermost last.

A splitter opens a level for the nodes after it; a collector closes the innermost open one. Where edges meet that are
inside different levels, the levels they share go on (A0). Another check reports cycles; nodes on one have no lineage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

Lineage = tuple[str, ...]
Wire = tuple[str, str]
"""Source and target of an edge."""


class Lineages:
    """The splitters around each node, and the splitter each collector collects."""

    def __init__(
        self, ids: Sequence[str], wires: Sequence[Wire], splitters: Collection[str], collectors: Collection[str]
    ) -> None:
        self.around: dict[str, Lineage] = {}
        self.collects: dict[str, str] = {}
        self.mixed: list[str] = []
        """Nodes, collectors aside, at which edges from inside and outside a splitter meet: they could never fire."""
        self._splitters, self._collectors = splitters, collectors
        inbound: dict[str, list[str]] = {node: [] for node in ids}
        for source, target in wires:
            inbound[target].append(source)
        for node in _in_order(ids, wires):
            self._place(node, [self._below(source) for source in inbound[node]])

    def is_collected(self, source: str, collector: str) -> bool:
        """Whether an edge into a collector comes from inside the splitter it collects."""
        return self.collects.get(collector) in self._below(source)

    def _below(self, source: str) -> Lineage:
        """The lineage of the edges that leave a node."""
        around = self.around.get(source, ())
        return (*around, source) if source in self._splitters else around

    def _place(self, node: str, arriving: list[Lineage]) -> None:
        deepest = max(arriving, key=len, default=())
        if node in self._collectors and deepest:
            splitter = deepest[-1]
            self.collects[node] = splitter
            outside = [lineage for lineage in arriving if splitter not in lineage]
            self.around[node] = _shared([deepest[: deepest.index(splitter)], *outside])
        else:
            self.around[node] = _shared(arriving)
            if len(set(arriving)) > 1:
                self.mixed.append(node)


def _shared(lineages: list[Lineage]) -> Lineage:
    """The longest common beginning."""
    if not lineages:
        return ()
    shortest = min(lineages, key=len)
    for length in range(len(shortest), 0, -1):
        if all(lineage[:length] == shortest[:length] for lineage in lineages):
            return shortest[:length]
    return ()


def _in_order(ids: Sequence[str], wires: Sequence[Wire]) -> list[str]:
    """The nodes in an order in which every edge leads forward; nodes on a cycle, and behind one, are left out."""
    waiting = dict.fromkeys(ids, 0)
    after: dict[str, list[str]] = {node: [] for node in ids}
    for source, target in wires:
        waiting[target] += 1
        after[source].append(target)
    order = [node for node in ids if not waiting[node]]
    for node in order:
        for target in after[node]:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    return order

"""Progress of the joins of a watched run: branches that have arrived, and branches that are needed.

Owns the reading of a join's strategy for people. Must not decide: the kernel counts for itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from treadle.cli.watch.tallies import FanTally
from treadle.model.definition import Synchronization, Workflow


def joins_of(workflow: Workflow | None, fans: Iterable[FanTally]) -> list[tuple[str, int, int]]:
    """Joins at which branches wait: (target, branches arrived, branches needed)."""
    return [
        (target, len(branches), _needed(workflow, fan, target))
        for fan in fans
        for target, branches in fan.arrived.items()
        if branches
    ]


def _needed(workflow: Workflow | None, fan: FanTally, target: str) -> int:
    sync = _synchronization(workflow, fan, target)
    kind, count = (sync.strategy.kind, sync.strategy.count) if sync is not None else ("all", 0)
    if kind == "any":
        return 1
    if kind == "m_of_n":
        return count
    return math.ceil(count * fan.total / 100) if kind == "percent" else fan.total


def _synchronization(workflow: Workflow | None, fan: FanTally, target: str) -> Synchronization | None:
    if workflow is None:
        return None
    names = {name.partition(":")[2] for name in fan.names}
    for transition in workflow.transitions:
        sync = transition.synchronization
        if transition.to == target and sync is not None and sync.sibling_group in names:
            return sync
    return None

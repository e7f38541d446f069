"""What a batch of seeds has tried: states × commands × node kinds, events, joins, faults.

Owns the counting. A generator that never produces a situation proves nothing about it, so the cells are reported and a
test fails when an important one stays empty.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from treadle.kernel.state import RunState
from treadle.model.commands import Command
from treadle.model.decision import Decision
from treadle.model.events import JoinFailed, JoinFired
from treadle.store.port import Commit


class Coverage:
    """Counters, to be added up over seeds."""

    def __init__(self) -> None:
        self.commands: Counter[tuple[str, str]] = Counter()
        """(command, run status before it was decided … what came of it)"""
        self.visits: Counter[tuple[str, str, str]] = Counter()
        """(command, node kind, state of the visit it was about)"""
        self.events: Counter[str] = Counter()
        self.joins: Counter[tuple[str, ...]] = Counter()
        self.errors: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()

    def decided(self, state: RunState, command: Command, decision: Decision) -> None:
        """A command was decided; `state` is as it was left."""

    def committed(self, commit: Commit) -> None:
        """Events are facts now."""
        for event in commit.events:
            self.events[event.type] += 1

    def add(self, other: Coverage) -> None:
        for name in vars(self):
            getattr(self, name).update(getattr(other, name))

    def as_json(self) -> dict[str, Any]:
        return {}


_ = (JoinFailed, JoinFired)

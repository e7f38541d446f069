"""What a judge finds, and the figures beside it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from tests.torture.journal import Line
from treadle.model.events import Event
from treadle.store.port import RunRow


class Evidence(Struct):
    """All a judge looks at."""

    client: list[Line]
    """What the client intended and was told."""
    work: list[Line]
    """Every execution of a task function."""
    deaths: dict[int, list[int]]
    """When engines were killed, by process number; numbers are used again."""
    runs: dict[str, RunRow]
    histories: dict[str, list[Event]]
    left: dict[str, int]
    """Rows that should be gone: outbox, dead letters, inbox, timers, gates."""
    damage: list[str]
    """What `integrity_check` and `fsck` say."""


class Verdict(Struct):
    """0 findings: nothing was lost and nothing happened twice."""

    findings: list[str] = []
    runs: int = 0
    acknowledged: int = 0
    executions: int = 0
    repeated: int = 0
    """Executions beyond the first of a dispatch key, each with a kill in between."""
    poisoned: int = 0
    """Runs whose worker was lost so often that it was given up: kills, not losses."""
    kinds: dict[str, int] = {}

    def find(self, what: str) -> None:
        self.findings.append(what)

    def figures(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "acknowledged": self.acknowledged,
            "executions": self.executions,
            "repeated": self.repeated,
            "poisoned": self.poisoned,
            "findings": len(self.findings),
        }

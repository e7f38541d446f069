"""Scripted results of work in a world, and the points of a commit at which its engine can be crashed."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from treadle.model.errors import Error

Json = Any
CrashPoint = Literal["before_commit", "after_commit", "after_dispatch"]


class Outcome(Struct, frozen=True):
    """The result of a mocked execution."""

    output: Json = {}
    error: Error | None = None
    after_ms: int = 0
    hold: bool = False
    """Has no result until a `release` step gives one."""
    spent: Json = None
    """What it has used up, {cost, usage}."""

    def config(self) -> dict[str, Json]:
        """The outcome as the config of a `mock` action."""
        if self.error is None:
            return {"output": self.output, "after_ms": self.after_ms, "spent": self.spent}
        error = {"kind": self.error.kind, "message": self.error.message, "retryable": self.error.retryable}
        return {"error": error, "after_ms": self.after_ms, "spent": self.spent}

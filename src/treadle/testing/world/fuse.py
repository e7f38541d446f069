"""Crash points: an engine passes them, and an armed fuse crashes it at one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treadle.model.errors import Rejection
from treadle.testing.world.outcomes import CrashPoint


class Crashed(Exception):
    """The engine has crashed at this point. The caller makes a new one."""

    def __init__(self, point: CrashPoint, down_ms: int) -> None:
        super().__init__(point)
        self.down_ms = down_ms
        self.committed = point != "before_commit"
        """Whether the decision under way is durable."""
        self.rejection: Rejection | None = None
        """The decision's answer; the client learns it by asking again."""
        self.result: Any = None


@dataclass(slots=True)
class Fuse:
    """At most one crash is armed: at the n-th passing of its point, counted from the arming."""

    point: CrashPoint | None = None
    left: int = 0
    down_ms: int = 0

    def arm(self, point: CrashPoint, count: int, down_ms: int = 0) -> None:
        self.point, self.left, self.down_ms = point, count, down_ms

    @property
    def armed(self) -> bool:
        return self.point is not None

    def passing(self, point: CrashPoint) -> None:
        """An engine passes a crash point. Raises `Crashed` if it is the armed one."""
        if point != self.point:
            return
        self.left -= 1
        if self.left == 0:
            self.point = None
            raise Crashed(point, self.down_ms)

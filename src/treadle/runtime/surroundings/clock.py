"""The system's clock: wall time for durable instants, the event loop's own time for waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from treadle.runtime.surroundings.ports import Alarm

LOOK_AGAIN_S = 3_600.0
"""A timer looks at the wall clock again after this time at the latest. If the clock was set or the laptop slept, a due
timer is late by at most this much. Once an hour is not polling."""


class SystemClock:
    """See the module's docstring. `call_at` must be called on the event loop."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def call_at(self, due: int, action: Callable[[], None]) -> Alarm:
        return _Alarm(self, due, action)

    def elapsed(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def call_after(self, ms: int, action: Callable[[], None]) -> Alarm:
        return asyncio.get_running_loop().call_later(ms / 1_000, action)


class SharedClock(SystemClock):
    """The store's time, as far as this node knows it. Nodes that share a store use it for the length of claims and for
    due timers. Every heartbeat corrects it; in between it follows the monotonic clock, so changes to the machine's own
    clock do not affect it."""

    def __init__(self) -> None:
        self._ahead = super().now() - self.elapsed()

    def now(self) -> int:
        return self.elapsed() + self._ahead

    def hear(self, now: int, took_ms: int = 0) -> None:
        """The store's time, and the round trip that fetched it."""
        earliest, latest = now, now + took_ms
        self._ahead += min(max(self.now(), earliest), latest) - self.now()


class _Alarm:
    def __init__(self, clock: SystemClock, due: int, action: Callable[[], None]) -> None:
        self._clock = clock
        self._due = due
        self._action = action
        self._loop = asyncio.get_running_loop()
        self._arm()

    def cancel(self) -> None:
        self._handle.cancel()
        self._action = _nothing  # the alarm and its handle refer to each other: drop the action at least

    def _arm(self) -> None:
        left_s = max(self._due - self._clock.now(), 0) / 1_000
        self._handle = self._loop.call_later(min(left_s, LOOK_AGAIN_S), self._ring)

    def _ring(self) -> None:
        if self._clock.now() < self._due:
            self._arm()  # the wall clock is behind the loop's, or the timer is more than LOOK_AGAIN_S away
        else:
            action, self._action = self._action, _nothing
            action()


def _nothing() -> None:
    """The action of an alarm that has rung or was cancelled."""

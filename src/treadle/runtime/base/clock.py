"""The system's clock: wall time for what is durable, the event loop's own time for waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from treadle.runtime.base.ports import Alarm

LOOK_AGAIN_S = 3_600.0
"""The longest a timer sleeps before it looks at the wall clock again: a clock that was set, or a laptop that slept,
delays a due timer by this much at worst. Once an hour is no polling."""


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
    """The store's time, as far as is known: what nodes that share a store go by when they say how long a claim lasts
    or that a timer is due. It is told what time it is with every heartbeat, and goes on from there by a clock that
    nobody can set: what people do to the machine's own does not show."""

    def __init__(self) -> None:
        self._ahead = super().now() - self.elapsed()

    def now(self) -> int:
        return self.elapsed() + self._ahead

    def hear(self, now: int, took_ms: int = 0) -> None:
        """By the store's clock it was so late while it was asked, which took so long."""
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
        self._action = _nothing  # an alarm refers to itself through its handle: let go of what is behind it

    def _arm(self) -> None:
        left_s = max(self._due - self._clock.now(), 0) / 1_000
        self._handle = self._loop.call_later(min(left_s, LOOK_AGAIN_S), self._ring)

    def _ring(self) -> None:
        if self._clock.now() < self._due:
            self._arm()  # the wall clock is behind the loop's, or the day is long
        else:
            action, self._action = self._action, _nothing
            action()


def _nothing() -> None:
    """What an alarm that is over does."""

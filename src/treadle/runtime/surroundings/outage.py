"""Logs an outage of the store: once when it begins, again every half minute while it lasts, and once when it is over.

Owns the counting. All parts of a process that use the store fail at the same time, many times a second. The log should
say that the store does not answer, since when, why, and that it answers again. A new reason is logged at once: it may
concern another store, or a second problem behind the first. Must not decide how to handle the outage.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from treadle.errors import StoreUnavailable
from treadle.runtime.surroundings.logs import logger

AGAIN_S = 30.0
"""Seconds between two lines while the outage lasts."""
OVER_S = 5.0
"""The outage is over when nothing has failed for this many seconds. A server that refuses some requests and takes
others is not reported as back after every success."""
REASONS_MAX = 8
"""New reasons logged at once during one outage. A reason may contain a number that differs each time."""

log = logger("treadle.store")


class Outage:
    """See the module's docstring. A process has one, because it has one log."""

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        self._since: float | None = None
        self._last = 0.0
        self._said = 0.0
        self._failures = 0
        self._reasons: set[str] = set()

    def failed(self, what: str, problem: StoreUnavailable) -> None:
        """A request failed and will be tried again."""
        now = self._elapsed()
        self._failures, self._last = self._failures + 1, now
        if self._since is None:
            self._since = self._said = now
        reason = str(problem)
        if reason not in self._reasons and len(self._reasons) < REASONS_MAX:
            self._reasons.add(reason)
            log.warning("the store does not answer: trying again", what=what, error=reason)
        elif now - self._said >= AGAIN_S:
            self._said = now
            for_s = round(now - self._since)
            log.warning("the store still does not answer", for_s=for_s, failures=self._failures, error=reason)

    def answered(self) -> None:
        """A request succeeded. Costs nothing while there is no outage."""
        if self._since is None or self._elapsed() - self._last < OVER_S:
            return
        log.warning("the store answers again", after_s=round(self._last - self._since), failures=self._failures)
        self.forget()

    def forget(self) -> None:
        """Resets everything, as if nothing had ever failed."""
        self._since, self._failures = None, 0
        self._reasons.clear()


OUTAGE = Outage()

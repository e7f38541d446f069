"""A store that does not answer, in a log: said once, said again now and then while it lasts, and when it is over.

Owns the counting. Everything in a process that waits for its store fails at the same time, many times a second: whoever
reads the log wants to know that, for how long already, why, and that it is over. A reason not heard before is said at
once: it may be another store's, or what hid behind the first. Must not decide what is done about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from treadle.errors import StoreUnavailable
from treadle.runtime.base.logs import logger

AGAIN_S = 30.0
"""Between two lines while it lasts."""
OVER_S = 5.0
"""So long nothing has failed: a server that refuses some and takes others does not come back with every success."""
REASONS_MAX = 8
"""Said at once, per outage: a reason may have a number in it that is never the same twice."""

log = logger("treadle.store")


class Outage:
    """See the module's docstring. One for a process: its log is one."""

    def __init__(self, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._elapsed = elapsed
        self._since: float | None = None
        self._last = 0.0
        self._said = 0.0
        self._failures = 0
        self._reasons: set[str] = set()

    def failed(self, what: str, problem: StoreUnavailable) -> None:
        """Something could not be done, and will be tried again."""
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
        """Something could be done. Costs nothing while all is well."""
        if self._since is None or self._elapsed() - self._last < OVER_S:
            return
        log.warning("the store answers again", after_s=round(self._last - self._since), failures=self._failures)
        self.forget()

    def forget(self) -> None:
        """As if nothing had ever failed."""
        self._since, self._failures = None, 0
        self._reasons.clear()


OUTAGE = Outage()

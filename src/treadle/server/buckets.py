"""Token buckets: how often something may happen, by name. In memory: each node counts for itself.

A bucket holds `burst` tokens and gets `per_s` new ones a second. Promises a bounded memory: full buckets are forgotten
first, then those that were not used for the longest time.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

NAMES_MAX = 50_000
"""Buckets that are kept: an attacker with more addresses than this is not stopped by counting addresses."""


class TokenBuckets:
    """See the module's docstring."""

    def __init__(
        self, per_s: float, burst: float, *, clock: Callable[[], float] = time.monotonic, names_max: int = NAMES_MAX
    ) -> None:
        self._per_s = per_s
        self._burst = burst
        self._clock = clock
        self._names_max = names_max
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Name → tokens left, and when that was counted."""

    def wait_s(self, name: str) -> float:
        """How long until a token is there; 0: there is one now. Takes none."""
        return max(0.0, (1 - self._tokens(name)) / self._per_s)

    def take(self, name: str) -> float:
        """Takes a token and returns 0; or takes none and returns the seconds until there is one."""
        tokens = self._tokens(name)
        if tokens < 1:
            return (1 - tokens) / self._per_s
        self._kept[name] = (tokens - 1, self._clock())
        self._kept.move_to_end(name)
        if len(self._kept) > self._names_max:
            self._forget()
        return 0.0

    def _tokens(self, name: str) -> float:
        kept = self._kept.get(name)
        if kept is None:
            return self._burst
        tokens, at = kept
        return min(self._burst, tokens + (self._clock() - at) * self._per_s)

    def _forget(self) -> None:
        for name in [name for name in self._kept if self._tokens(name) >= self._burst]:
            del self._kept[name]
        while len(self._kept) > self._names_max * 3 // 4:
            self._kept.popitem(last=False)

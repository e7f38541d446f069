"""Retry delays: how long to wait before the next try (1.10). Pure arithmetic: the caller brings the randomness."""

from __future__ import annotations

from treadle.model.definition import Retry

_DELAY_MS_MAX = 100 * 365 * 24 * 3_600_000
"""A century: doubling never outgrows a calendar date or a 64-bit column, however many tries are allowed."""
_DOUBLINGS_MAX = 62
"""2^62 ms is already far beyond the century; a larger power would only build a larger integer."""
_EXPONENTIAL_JITTER = 0.1
"""The default of 1.10, so that many tokens failing together do not come back together."""


def delay_ms(retry: Retry, tries: int, unit: float | None) -> int:
    """Milliseconds before the try after `tries`; `unit` in [-1, 1) scales the jitter, None turns it off."""
    limit = _DELAY_MS_MAX if retry.max_delay_ms is None else min(retry.max_delay_ms, _DELAY_MS_MAX)
    delay = min(retry.initial_delay_ms * _factor(retry, tries), limit)
    if unit is not None:
        delay = min(round(delay * (1 + _jitter(retry) * unit)), limit)
    return max(delay, 0)


def _factor(retry: Retry, tries: int) -> int:
    if retry.backoff == "linear":
        return tries
    if retry.backoff == "exponential":
        return 1 << min(max(tries - 1, 0), _DOUBLINGS_MAX)
    return 1


def _jitter(retry: Retry) -> float:
    if retry.jitter is not None:
        return retry.jitter
    return _EXPONENTIAL_JITTER if retry.backoff == "exponential" else 0.0

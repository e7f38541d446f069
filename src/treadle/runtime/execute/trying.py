"""When an action or a task is tried again, and after how long (2.6)."""

from __future__ import annotations

from treadle.actions.protocol import AttemptFacts
from treadle.expression.backoff import delay_ms
from treadle.model.definition import Retry
from treadle.model.errors import Error


def may_retry(policy: Retry, tries: int, error: Error) -> bool:
    """Whether an action is tried again after so many tries. A list of `retryable_errors` replaces the usual classes; it
    may name kinds or HTTP statuses."""
    if tries >= policy.max_attempts:
        return False
    if policy.retryable_errors is None:
        return error.retryable
    status = error.details.get("status") if isinstance(error.details, dict) else None
    return error.kind in policy.retryable_errors or str(status) in policy.retryable_errors


def wait_before_try_ms(policy: Retry, tries: int, facts: AttemptFacts) -> int:
    """The time until the next try."""
    return delay_ms(policy, tries, facts.jitter() if facts.jitter is not None else None)

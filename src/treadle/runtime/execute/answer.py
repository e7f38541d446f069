"""Outcome of an attempt → the command that reports it. Real and virtual executors share it, so that they report
alike."""

from __future__ import annotations

from treadle.model.commands import FailAttempt, FinishAttempt
from treadle.model.ids import TokenId
from treadle.runtime.execute.task import TaskOutcome


def result_command(
    token: TokenId, attempt: int, outcome: TaskOutcome, worker: str | None = None
) -> FinishAttempt | FailAttempt:
    """The report of an ended attempt; `worker` is the worker that claimed it from a queue."""
    if outcome.error is None:
        return FinishAttempt(
            token, attempt, outcome.output, outcome.requests, outcome.tries, worker, spent=outcome.spent
        )
    return FailAttempt(token, attempt, outcome.error, outcome.tries, worker, outcome.spent)

"""The attempts of one visit out of its own events: when each was queued, waited and worked, and how it ended.

Pure. A visit that an operator retries, or whose worker is lost, goes on in the same list.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.states import TokenState, Waiting
from treadle.runtime.view.shapes import AttemptView
from treadle.runtime.view.visit_log import Spent, spend

Outcome = Literal["completed", "failed", "timed_out", "cancelled"]


class _Attempt(Struct):
    attempt: int
    queued: int | None = None
    started: int | None = None
    ended: int | None = None
    outcome: Outcome | None = None
    error: Error | None = None
    worker: str | None = None
    lost: int = 0
    next: int | None = None
    status: TokenState = TokenState.DISPATCHED
    waiting: Waiting | None = None
    since: int = 0

    def move(self, spent: Spent, at: int, status: TokenState, waiting: Waiting | None = None) -> None:
        if self.ended is None:
            spend(spent, self.status, self.waiting, at - self.since)
            self.status, self.waiting, self.since = status, waiting, at

    def end(self, spent: Spent, at: int, outcome: Outcome, error: Error | None = None) -> None:
        if self.ended is None:
            self.move(spent, at, TokenState.COMPLETED)
            self.ended, self.outcome, self.error = at, outcome, error


_OUTCOMES: dict[type[e.Event], Outcome] = {
    e.TokenCompleted: "completed",
    e.TokenFailed: "failed",
    e.TokenTimedOut: "timed_out",
    e.TokenCancelled: "cancelled",
}


class AttemptLog:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._all: list[tuple[_Attempt, Spent]] = []

    def apply(self, event: e.Event) -> None:
        """Reads the next event of the visit."""
        if isinstance(event, e.TokenDispatched):
            self._dispatched(event)
        elif isinstance(event, e.TokenStarted):
            self._started(event)
        elif self._all:
            self._goes_on(event, *self._all[-1])

    def views(self, now: int) -> list[AttemptView]:
        """The attempts, oldest first; the time of one under way counts until `now`."""
        return [_view(attempt, spent, now) for attempt, spent in self._all]

    def _dispatched(self, event: e.TokenDispatched) -> None:
        if self._all and self._all[-1][0].attempt == event.attempt and not event.recovery:
            self._all.pop()  # of the run that this one was forked from
        if event.recovery and self._all:
            attempt, spent = self._all[-1]
            attempt.move(spent, event.at, TokenState.DISPATCHED)
            attempt.lost, attempt.worker = event.recovery, None
        else:
            self._all.append((_Attempt(event.attempt, queued=event.at, since=event.at), Spent()))

    def _started(self, event: e.TokenStarted) -> None:
        if not self._all or self._all[-1][0].attempt != event.attempt or self._all[-1][0].ended is not None:
            self._all.append((_Attempt(event.attempt, since=event.at), Spent()))
        attempt, spent = self._all[-1]
        attempt.move(spent, event.at, TokenState.EXECUTING)
        attempt.worker = event.worker
        attempt.started = event.at if attempt.started is None else attempt.started

    def _goes_on(self, event: Any, attempt: _Attempt, spent: Spent) -> None:
        if isinstance(event, e.TokenWaiting):
            if event.reason is Waiting.SIBLINGS:  # its work is done; the join is no part of an attempt
                attempt.end(spent, event.at, "completed")
            else:
                attempt.move(spent, event.at, TokenState.WAITING, event.reason)
        elif isinstance(event, e.TokenResumed):
            attempt.move(spent, event.at, TokenState.EXECUTING)
        elif isinstance(event, e.TokenRetryScheduled):
            attempt.end(spent, event.at, "failed", event.error)
            attempt.next = event.due
        elif (outcome := _OUTCOMES.get(type(event))) is not None:
            attempt.end(spent, event.at, outcome, getattr(event, "error", None))


def _view(attempt: _Attempt, spent: Spent, now: int) -> AttemptView:
    shown = Spent(spent.queue_ms, spent.wait_ms, spent.run_ms)
    if attempt.ended is None:
        spend(shown, attempt.status, attempt.waiting, max(now - attempt.since, 0))
    return AttemptView(
        attempt.attempt,
        attempt.queued,
        attempt.started,
        attempt.ended,
        queue_ms=shown.queue_ms,
        wait_ms=shown.wait_ms,
        run_ms=shown.run_ms,
        outcome=attempt.outcome,
        error=attempt.error,
        worker=attempt.worker,
        lost=attempt.lost,
        next=attempt.next,
    )

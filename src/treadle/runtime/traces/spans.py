"""The spans of one run, folded out of its events: one for the run, one for each visit, one for each attempt.

    run ─┬─ visit ─┬─ attempt 1         A visit links to the visits it came from: the one before it, the origin of its
         │         └─ attempt 2         fan-out, or every arrival of the join it stands behind.
         └─ visit ─── attempt 1 ─── run of a child workflow

Owns the names, times and attributes of spans. Promises that the same events give the same spans, whichever process
folds them, and that no input, output or state of a run is in them. A span is given out when it has ended. Must not know
OpenTelemetry, a store or a clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import ArrivalId, GroupId, TokenId
from treadle.model.states import Mode, Waiting
from treadle.runtime.traces.context import RunTrace, attempt_span, run_span, visit_span
from treadle.runtime.traces.span_records import (
    Attributes,
    EndedSpan,
    OpenAttempt,
    OpenVisit,
    attributes_of_error,
    attributes_of_run,
    error_words,
)

LINKS_MAX = 128
"""Links of a span: the default limit of OpenTelemetry. The span behind a larger join says how many arrived."""
ENDINGS: dict[type[e.Event], str] = {
    e.RunCompleted: "completed",
    e.RunFailed: "failed",
    e.RunCancelled: "cancelled",
    e.RunTimedOut: "timed_out",
    e.RunCompensated: "compensated",
    e.RunCompensationFailed: "compensation_failed",
}


class RunSpans:
    """See the module's docstring. Events are given to `take` in order; `ended` gathers spans until `drain`."""

    def __init__(self, trace: RunTrace, started: e.Beginning) -> None:
        self.trace = trace
        self.run = trace.run
        self.workflow = started.workflow
        self.seq = 0
        self.is_over = False
        self._ended: list[EndedSpan] = []
        self._life = 0
        self._start = started.at
        self._attributes = attributes_of_run(started)
        self._visits: dict[TokenId, OpenVisit] = {}
        self._nodes: dict[TokenId, str] = {}
        """The node of every visit, also of those that have ended: a person may retry them."""
        self._lives: dict[TokenId, int] = {}
        """How often a visit went on after its end; visits that never did are not listed."""
        self._inherited: set[TokenId] = set()
        """Visits of a fork that had ended before it: their spans belong to the other run."""
        self._arrivals: dict[ArrivalId, tuple[TokenId, ...]] = {}
        self._at_join: dict[tuple[str, GroupId], list[TokenId]] = {}
        self._fired: dict[str, tuple[TokenId, ...]] = {}
        """Visits that a join has brought together, by its node, until the visit behind it is created."""

    def take(self, event: e.Event) -> None:
        """Folds one event; one that is known already changes nothing."""
        if event.seq <= self.seq:
            return
        self.seq = event.seq
        step = STEPS.get(type(event))
        if step is not None:
            step(self, event)

    def drain(self) -> list[EndedSpan]:
        """The spans that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    # The run

    def _over(self, event: Any) -> None:
        for token in list(self._visits):
            self._end_visit(token, event.at, "left")
        parent = self.trace.parent if self._life == 0 else run_span(self.run, 0)
        status = ENDINGS[type(event)]
        error = getattr(event, "error", None)
        attributes = {**self._attributes, "treadle.status": status, **attributes_of_error(error)}
        span = run_span(self.run, self._life)
        self._ended.append(
            EndedSpan(span, parent, self.workflow, self._start, event.at, attributes, error=error_words(error))
        )
        self.is_over = True

    def _again(self, event: e.RunResumed | e.RunCompensating) -> None:
        """A run that had ended goes on."""
        if self.is_over:
            self.is_over = False
            self._life += 1
            self._start = event.at

    def _forked(self, event: e.RunForked) -> None:
        """Spans of the past belong to the other run. What goes on here begins now; a run that had ended has ended here,
        too."""
        known, own = run_span(self.run, self._life), run_span(self.run, 0)
        over = [span for span in self._ended if self.is_over and span.id == known]
        begun = {"id": own, "parent": self.trace.parent, "start": event.at, "end": event.at}
        self._ended = [replace(span, **begun) for span in over]
        self._start, self._life = event.at, 0
        self._lives.clear()
        self._inherited = self._nodes.keys() - self._visits.keys()
        for visit in self._visits.values():
            visit.start, visit.life, visit.links = event.at, 0, ()

    # Visits

    def _created(self, event: e.TokenCreated) -> None:
        before = self._fired.pop(event.node, None) or ((event.origin,) if event.origin else ())
        attributes: Attributes = {"treadle.path": event.path}
        if event.via is not None:
            attributes["treadle.via"] = event.via
        if event.frames:
            attributes["treadle.group"], attributes["treadle.branch"] = event.frames[-1]
        if event.mode is not Mode.FORWARD:
            attributes["treadle.mode"] = str(event.mode)
        if len(before) > 1:
            attributes["treadle.arrivals"] = len(before)
        links = tuple(self._span_of(token) for token in before[:LINKS_MAX] if token not in self._inherited)
        self._nodes[event.token] = event.node
        self._visits[event.token] = OpenVisit(event.node, 0, event.at, attributes, links)

    def _span_of(self, token: TokenId) -> str:
        return visit_span(self.run, token, self._lives.get(token, 0))

    def _visit(self, token: TokenId, at: int) -> OpenVisit | None:
        """The visit of an event. One that had ended goes on; None: an arrival that stands alone."""
        visit = self._visits.get(token)
        if visit is None and token in self._inherited:
            self._inherited.discard(token)
            visit = self._visits[token] = OpenVisit(self._nodes[token], 0, at, {}, ())
        elif visit is None and token in self._nodes:
            earlier = self._span_of(token)
            life = self._lives[token] = self._lives.get(token, 0) + 1
            visit = self._visits[token] = OpenVisit(self._nodes[token], life, at, {}, (earlier,))
        return visit

    def _end_visit(self, token: TokenId, at: int, status: str, error: Error | None = None) -> None:
        visit = self._visits.get(token)
        if visit is None:
            return
        self._end_attempt(token, visit, at, status, error)
        del self._visits[token]
        attributes = {
            "treadle.run": self.run,
            "treadle.visit": token,
            "treadle.node": visit.node,
            **visit.attributes,
            "treadle.status": status,
            **attributes_of_error(error),
        }
        self._ended.append(
            EndedSpan(
                visit_span(self.run, token, visit.life),
                run_span(self.run, self._life),
                visit.node,
                visit.start,
                at,
                attributes,
                links=visit.links,
                notes=tuple(visit.notes),
                error=error_words(error),
            )
        )

    def _completed(self, event: e.TokenCompleted) -> None:
        self._end_visit(event.token, event.at, "completed")

    def _failed(self, event: e.TokenFailed) -> None:
        self._end_visit(event.token, event.at, "failed", event.error)

    def _timed_out(self, event: e.TokenTimedOut) -> None:
        self._end_visit(event.token, event.at, "timed_out", event.error)

    def _cancelled(self, event: e.TokenCancelled) -> None:
        self._end_visit(event.token, event.at, "cancelled")

    # Attempts

    def _dispatched(self, event: e.TokenDispatched) -> None:
        visit = self._visit(event.token, event.at)
        if visit is None:
            return
        attempt = visit.attempt
        if attempt is not None and attempt.number == event.attempt:
            attempt.notes.append(("worker lost", event.at, {"treadle.recovery": event.recovery}))
            return
        queue = {} if event.queue is None else {"treadle.queue": event.queue}
        visit.attempt = OpenAttempt(event.attempt, event.at, queue, is_work=True)
        if event.queue is not None:
            visit.notes.append(("offered", event.at, queue))

    def _started(self, event: e.TokenStarted) -> None:
        visit = self._visit(event.token, event.at)
        if visit is None:
            return
        attempt = visit.attempt
        if attempt is None or attempt.number != event.attempt:
            attempt = visit.attempt = OpenAttempt(event.attempt, event.at, {})
        elif not attempt.notes:
            attempt.start = event.at  # not when it was offered
        if event.worker is not None:
            attempt.attributes = {**attempt.attributes, "treadle.worker": event.worker}

    def _waits(self, event: e.TokenWaiting) -> None:
        visit = self._visit(event.token, event.at)
        if visit is None:
            return
        visit.notes.append(("waiting", event.at, {"treadle.for": str(event.reason)}))
        if event.reason is Waiting.SIBLINGS:
            self._end_attempt(event.token, visit, event.at, "completed")
        elif visit.attempt is not None:
            visit.attempt.is_work = True

    def _retried(self, event: e.TokenRetryScheduled) -> None:
        visit = self._visit(event.token, event.at)
        if visit is None:
            return
        self._end_attempt(event.token, visit, event.at, "failed", event.error)
        by = {"treadle.by": event.by} if event.by is not None else {}
        visit.notes.append(("retry", event.at, {"treadle.attempt": event.attempt, **by}))

    def _end_attempt(self, token: TokenId, visit: OpenVisit, at: int, status: str, error: Error | None = None) -> None:
        attempt, visit.attempt = visit.attempt, None
        if attempt is None or not attempt.is_work:
            return
        attributes = {
            "treadle.run": self.run,
            "treadle.visit": token,
            "treadle.node": visit.node,
            "treadle.attempt": attempt.number,
            **attempt.attributes,
            "treadle.status": status,
            **attributes_of_error(error),
        }
        self._ended.append(
            EndedSpan(
                attempt_span(self.run, token, attempt.number),
                visit_span(self.run, token, visit.life),
                f"{visit.node} attempt {attempt.number}",
                attempt.start,
                at,
                attributes,
                notes=tuple(attempt.notes),
                error=error_words(error),
            )
        )

    # Joins

    def _arrived(self, event: e.JoinArrived) -> None:
        if event.absorbed:
            return
        alone = (event.token,) if event.token else ()  # 0: what is left of a visit that failed
        tokens = self._fired.pop(event.target, None) or alone  # a join may lead into a node's own join
        if event.group is None:
            self._arrivals[event.arrival] = tokens
        else:
            self._at_join.setdefault((event.target, event.group), []).extend(tokens)

    def _join_fired(self, event: e.JoinFired) -> None:
        if event.group is not None:
            tokens = self._at_join.pop((event.target, event.group), [])
        else:
            tokens = [token for arrival in event.arrivals for token in self._arrivals.pop(arrival, ())]
        self._fired[event.target] = tuple(tokens)


STEPS: dict[type[e.Event], Callable[[RunSpans, Any], None]] = {
    e.TokenCreated: RunSpans._created,
    e.TokenDispatched: RunSpans._dispatched,
    e.TokenStarted: RunSpans._started,
    e.TokenWaiting: RunSpans._waits,
    e.TokenRetryScheduled: RunSpans._retried,
    e.TokenCompleted: RunSpans._completed,
    e.TokenFailed: RunSpans._failed,
    e.TokenTimedOut: RunSpans._timed_out,
    e.TokenCancelled: RunSpans._cancelled,
    e.JoinArrived: RunSpans._arrived,
    e.JoinFired: RunSpans._join_fired,
    e.RunResumed: RunSpans._again,
    e.RunForked: RunSpans._forked,
    e.RunCompensating: RunSpans._again,
    **dict.fromkeys(ENDINGS, RunSpans._over),
}
"""Events that have to do with spans. All others are passed over."""

"""A run line by line, for logs and pipes: starts, waits, failures, and the progress of fan-outs.

Owns the choice of events that get a line. A fan-out gets at most `STEPS` lines, however many branches it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.cli.screen.output import duration
from treadle.cli.watch import picture
from treadle.cli.watch.overview import Overview
from treadle.cli.watch.tallies import LiveVisit
from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.model.states import Waiting

STEPS = 20
FAILURES_MAX = 10
"""Failures of one node that get a line: a fan-out whose ten thousand branches all fail says so ten times."""


class Narrator:
    """Folds events into its overview and returns the lines for them."""

    def __init__(self, view: Overview) -> None:
        self._view = view
        self._told: dict[str, int] = {}
        """Node → branches of its fan-out that were done at the last line about it."""

    def tell(self, event: e.Event) -> Iterator[str]:
        """The lines of one event."""
        token = TokenId(getattr(event, "token", None) or 0)
        before = self._view.visits.get(token)
        stood = before is not None and before.waiting is Waiting.QUEUE
        self._view.apply([event])
        visit = self._view.visits.get(token) or before
        if visit is not None and not isinstance(event, e.JoinArrived | e.ContextUpdated | e.TimerSet):
            words = self._of_visit(event, visit, stood)
            if words:
                yield self._line(event, visit.node, words)
        elif isinstance(event, e.JoinFailed):
            yield self._line(event, event.target, f"fails: {event.error.kind}: {event.error.message}")
        elif isinstance(event, e.CompensationSkipped):
            node, by = self._view.skipped[event.record]
            yield self._line(event, node, f"stays as it is: its compensation was skipped by {by}")
        elif isinstance(event, e.JoinReopened):
            yield self._line(event, event.target, "waits for its branches again")
        elif isinstance(event, e.RunMigrated):
            yield self._line(event, "", f"goes on under version {event.to}, migrated by {event.by}")
        elif isinstance(event, e.RunPaused | e.RunCompensating):
            yield self._line(event, "", self._view.status.value + (f" {self._view.note}" if self._view.note else ""))

    def _line(self, event: e.Event, node: str, words: str) -> str:
        began = self._view.started.at if self._view.started is not None else event.at
        return f"{duration(event.at - began):>11}  {node:<16} {words}"

    def _of_visit(self, event: e.Event, visit: LiveVisit, stood: bool) -> str:
        """The words for an event of one visit. `stood`: the visit was dispatched and had not started before."""
        fan = self._view.expected(self._view.node(visit.node))
        if isinstance(event, e.TokenFailed | e.TokenTimedOut):
            few = self._view.node(visit.node).failed <= FAILURES_MAX
            return f"failed: {event.error.kind}: {event.error.message}" if few else self._progress(visit, fan or 0)
        if isinstance(event, e.TokenRetryScheduled):
            return _retry(event)
        if fan is not None:
            return self._progress(visit, fan) or self._waits(event, visit, few=fan <= STEPS)
        again = f" again: the node that executed it before {visit.lost}" if visit.lost else ""
        if isinstance(event, e.TokenDispatched):
            return picture.reason(visit, event.at) + again if event.queue else ""
        if isinstance(event, e.TokenStarted):
            tries = f" (attempt {event.attempt})" if event.attempt > 1 else ""
            return f"running{tries}{again}" if stood else ""
        if isinstance(event, e.TokenCompleted):
            return "done"
        if isinstance(event, e.TokenCancelled):
            return "cancelled" + (f": {event.reason}" if event.reason else "")
        return self._waits(event, visit, few=True)

    def _waits(self, event: e.Event, visit: LiveVisit, *, few: bool) -> str:
        told = isinstance(event, e.TokenWaiting) and event.reason is not Waiting.SIBLINGS
        told |= isinstance(event, e.GateClaimed | e.GateReleased | e.GateDelegated)
        return picture.reason(visit, event.at) if few and told else ""

    def _progress(self, visit: LiveVisit, total: int) -> str:
        node = self._view.node(visit.node)
        done = node.done + sum(1 for one in node.live.values() if one.waiting is Waiting.SIBLINGS) + node.failed
        last = self._told.get(node.ref, 0)
        step = max(total // STEPS, 1)
        if done == last or (done < total and done // step == last // step):
            return ""
        self._told[node.ref] = done
        return f"{done}/{total}" + (f", {node.failed} failed" if node.failed else "")


def _retry(event: Any) -> str:
    if event.by is not None:
        return f"tried again by {event.by}"
    because = f" failed ({event.error.kind}: {event.error.message})" if event.error is not None else ""
    return f"attempt {event.attempt - 1}{because}, tries again in {duration(event.due - event.at)}"

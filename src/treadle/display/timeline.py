"""A run's history as bars over time: when each visit was pending, executing or waiting. Reads events only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from treadle.model import events as e
from treadle.model.states import Mode


@dataclass(slots=True)
class Span:
    """A stretch of a visit: `pending`, `executing` or `waiting` for a reason."""

    state: str
    start: int
    end: int
    reason: str | None = None


@dataclass(slots=True)
class Bar:
    """One visit."""

    node: str
    branch: tuple[int, ...]
    compensation: bool
    start: int
    state: str = "live"
    """live, completed, failed, timed_out or cancelled."""
    error: str | None = None
    attempt: int = 0
    spans: list[Span] = field(default_factory=list)

    @property
    def label(self) -> str:
        where = "".join(f"[{index}]" for index in self.branch)
        return f"↩ {self.node}{where}" if self.compensation else f"{self.node}{where}"


@dataclass(slots=True)
class Timeline:
    """All visits of a run, grouped by node in the order in which nodes were first visited."""

    workflow: str
    start: int
    end: int
    status: str
    bars: list[Bar]


_STATUS = {
    e.RunCompleted: "completed",
    e.RunFailed: "failed",
    e.RunCancelled: "cancelled",
    e.RunTimedOut: "timed_out",
    e.RunPaused: "paused",
    e.RunResumed: "running",
    e.RunCompensating: "compensating",
    e.RunCompensated: "compensated",
    e.RunCompensationFailed: "compensation_failed",
}
_ENDS = {
    e.TokenCompleted: "completed",
    e.TokenFailed: "failed",
    e.TokenTimedOut: "timed_out",
    e.TokenCancelled: "cancelled",
}


def timeline_of(events: Iterable[e.Event], now: int | None = None) -> Timeline:
    """The timeline of a history. Live visits last until `now`, or until the last event."""
    run = Timeline("", 0, 0, "created", [])
    bars: dict[int, Bar] = {}
    for event in events:
        if isinstance(event, e.Beginning):
            if not bars:  # a fork that has waited for its start has a past before it
                run.workflow, run.start = event.workflow, event.at
            run.status = "running" if isinstance(event, e.RunStarted) else "queued"
        run.status = _STATUS.get(type(event), run.status)
        run.end = max(run.end, event.at)
        _read(event, bars)
    if run.status in ("running", "paused", "compensating") and now is not None:
        run.end = max(run.end, now)
    for bar in bars.values():
        if bar.state == "live" and bar.spans:
            bar.spans[-1].end = run.end
    first: dict[str, int] = {}
    for index, bar in enumerate(bars.values()):
        first.setdefault(bar.node, index)
    run.bars = sorted(bars.values(), key=lambda bar: (first[bar.node], bar.compensation, bar.branch, bar.start))
    return run


def _read(event: e.Event, bars: dict[int, Bar]) -> None:
    if isinstance(event, e.TokenCreated):
        branch = tuple(index for _group, index in event.frames)
        bars[event.token] = Bar(event.node, branch, event.mode is Mode.COMPENSATION, event.at)
        _enter(bars[event.token], event.at, "pending")
        return
    bar = bars.get(getattr(event, "token", 0) or 0)
    if bar is None:
        return
    if isinstance(event, e.TokenDispatched):
        _enter(bar, event.at, "waiting" if event.queue else "pending", "queue" if event.queue else None)
    elif isinstance(event, e.TokenStarted):
        bar.attempt = event.attempt
        _enter(bar, event.at, "executing")
    elif isinstance(event, e.TokenWaiting):
        bar.state = "live"  # also a visit that had ended: an operator's retry brings it back
        _enter(bar, event.at, "waiting", str(event.reason.value))
    elif isinstance(event, e.TokenRetryScheduled):
        bar.state = "live"
        _enter(bar, event.at, "waiting", "retry")
    elif isinstance(event, e.TokenResumed):
        _enter(bar, event.at, "pending" if event.by in ("mutex", "retry") else "executing")
    elif (ended := _ENDS.get(type(event))) is not None:
        bar.spans[-1].end = event.at
        bar.state = ended
        error = getattr(event, "error", None)
        bar.error = f"{error.kind}: {error.message}" if error is not None else None


def _enter(bar: Bar, at: int, state: str, reason: str | None = None) -> None:
    if bar.spans:
        bar.spans[-1].end = at
        if bar.spans[-1].start == at:
            bar.spans.pop()
    bar.spans.append(Span(state, at, at, reason))

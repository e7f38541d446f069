"""A history as a compact, aligned table for people who have to find out what happened: one line per event.

Owns the columns (number, virtual time, type, visit, path, what matters) and the legend. Promises plain text;
colour is added by `coloured`, which a terminal asks for. Must not interpret: what it shows is what was
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.testing.world.projection import Projection

DETAIL_MAX = 100
"""Columns of the last field: with the others a line fits a wide terminal."""

LEGEND = "#  ms  event  visit node[branch]  path  detail   (ms: virtual, since the first run began)"

_SHORT = {
    "token.": "",
    "compensation.": "undo.",
    "context.updated": "ctx",
    "condition.unevaluable": "cond.unevaluable",
    "result.ignored": "ignored",
    "retry_scheduled": "retry",
}


def render(projection: Projection, began: int, detail_max: int | None = DETAIL_MAX) -> list[str]:
    """The lines of one run's history; `began` is the instant called 0 ms. Details are cut to `detail_max` characters,
    but for errors: they are what a reader looks for."""
    reading = Projection()
    rows: list[tuple[str, ...]] = [("#", "ms", "event", "visit", "path", "detail")]
    for event in projection.events:
        reading.apply([event])
        rows.append(_row(event, reading, began, detail_max))
    return _aligned(rows)


def _row(event: e.Event, reading: Projection, began: int, detail_max: int | None) -> tuple[str, ...]:
    text = detail(event)
    if detail_max is not None and len(text) > detail_max and not hasattr(event, "error"):
        text = f"{text[: detail_max - 1]}…"
    visit = reading.visits.get(getattr(event, "token", None) or TokenId(0))
    return (
        str(event.seq),
        str(event.at - began),
        short_type(event.type),
        f"{visit.token} {visit}" if visit else "",
        visit.path if visit else "",
        text,
    )


def short_type(kind: str) -> str:
    """`token.dispatched` → `dispatched`."""
    for long, short in _SHORT.items():
        kind = kind.replace(long, short)
    return kind


def _aligned(rows: Iterable[tuple[str, ...]]) -> list[str]:
    table = list(rows)
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = []
    for row in table:
        numbers = [row[column].rjust(widths[column]) for column in (0, 1)]
        words = [row[column].ljust(widths[column]) for column in range(2, len(row))]
        lines.append("  ".join([*numbers, *words]).rstrip())
    return lines


def detail(event: e.Event) -> str:
    """What matters about an event beyond its type and visit."""
    teller = _DETAILS.get(type(event))
    return teller(event) if teller else ""


def shown(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _joined(*parts: str | None) -> str:
    return "  ".join(part for part in parts if part)


def _created(event: e.TokenCreated) -> str:
    via = f"via {event.via}" if event.via else "start"
    return _joined(via, f"because {event.why}" if event.why else None)


def _dispatched(event: e.TokenDispatched) -> str:
    return _joined(
        f"attempt {event.attempt}",
        f"queue {event.queue}" if event.queue else None,
        f"recovery {event.recovery}{', forgiven' if event.forgiven else ''}" if event.recovery else None,
        f"input {shown(event.input)}" if event.input else None,
    )


def _waiting(event: e.TokenWaiting) -> str:
    return _joined(
        f"for {event.reason.value}",
        f"awaiting {event.awaiting}" if event.awaiting is not None else None,
        shown(event.detail) if event.detail else None,
    )


def _error(event: Any) -> str:
    return f"{event.error.kind}: {event.error.message}"


def _retry(event: e.TokenRetryScheduled) -> str:
    reason = f"by {event.by}" if event.by else f"at +{event.due - event.at} ms"
    return _joined(f"attempt {event.attempt}", reason, f"after {event.error.kind}" if event.error else None)


def _writes(event: Any) -> str:
    return "  ".join(f"{'.'.join(map(str, path))}={shown(value)}" for path, value in event.writes)


def _context(event: e.ContextUpdated) -> str:
    return _joined(f"branch {event.scope[0]}.{event.scope[1]}" if event.scope else None, _writes(event))


def _group(event: e.GroupOpened) -> str:
    return _joined(
        f"group {event.group}", ",".join(event.names), f"total {event.total}", "open" if event.open else None
    )


def _fired(event: e.JoinFired) -> str:
    return _joined(
        f"→ {event.target}",
        f"group {event.group}" if event.group else None,
        f"{event.arrived} arrived, {event.failed} failed of {event.total}",
        event.why,
        _writes(event),
    )


def _timer(event: e.TimerSet) -> str:
    return f"{event.timer} {event.purpose} at +{event.due - event.at} ms"


def _forced(event: e.GateReleased | e.GateDelegated | e.GateCompleted) -> str | None:
    return f"instead of {event.instead_of}" if event.instead_of is not None else None


def _of_budget(event: e.BudgetWarned | e.BudgetExceeded) -> str:
    return f"{event.part} {event.spent:g} of {event.limit:g}"


_DETAILS: dict[type[e.Event], Callable[[Any], str]] = {
    e.RunQueued: lambda event: f"{event.workflow} v{event.version}  {event.why}  input {shown(event.input)}",
    e.RunStarted: lambda event: f"{event.workflow} v{event.version}  input {shown(event.input)}",
    e.RunCompleted: lambda event: f"output {shown(event.output)}",
    e.RunFailed: _error,
    e.RunTimedOut: _error,
    e.RunCancelled: lambda event: _joined(f"by {event.by}", event.reason),
    e.RunPaused: lambda event: _joined(f"by {event.by}", event.reason),
    e.RunResumed: lambda event: _joined(f"by {event.by}", "reopened" if event.reopened else None),
    e.RunMigrated: lambda event: _joined(
        f"v{event.from_} → v{event.to}", *(f"{old} → {new}" for old, new in event.nodes.items()), f"by {event.by}"
    ),
    e.RunCompensating: lambda event: f"because {event.cause}",
    e.RunCompensationFailed: _error,
    e.TokenCreated: _created,
    e.TokenDispatched: _dispatched,
    e.TokenStarted: lambda event: _joined(f"attempt {event.attempt}", event.worker),
    e.TokenWaiting: _waiting,
    e.TokenResumed: lambda event: f"by {event.by}" if event.by else "",
    e.TokenCompleted: lambda event: f"output {shown(event.output)}" if event.output else "",
    e.TokenFailed: _error,
    e.TokenTimedOut: _error,
    e.TokenCancelled: lambda event: _joined(f"by {event.by}", event.reason),
    e.TokenRetryScheduled: _retry,
    e.GroupOpened: _group,
    e.GroupGrew: lambda event: f"group {event.group}  total {event.total}",
    e.GroupClosed: lambda event: _joined(f"group {event.group}", f"by {event.by}" if event.by else None),
    e.FanOutEmpty: lambda event: f"{event.transition} at {event.node}",
    e.JoinArrived: lambda event: _joined(f"→ {event.target}", "absorbed" if event.absorbed else None),
    e.JoinFired: _fired,
    e.JoinFailed: lambda event: f"→ {event.target}  {_error(event)}",
    e.JoinDead: lambda event: f"→ {event.target}",
    e.JoinReopened: lambda event: _joined(f"→ {event.target}", f"group {event.group}" if event.group else None),
    e.JoinMismatch: lambda event: f"{event.transition} wanted {event.wanted}",
    e.ContextUpdated: _context,
    e.ContextConflict: lambda event: f"{'.'.join(map(str, event.path))} by {event.by}",
    e.ConditionUnevaluable: lambda event: f"{event.transition}: {event.reason}".removeprefix(": "),
    e.ResultIgnored: lambda event: f"attempt {event.attempt}: {event.reason}",
    e.GateClaimed: lambda event: f"by {event.by}",
    e.GateReleased: lambda event: _joined(f"by {event.by}", _forced(event)),
    e.GateDelegated: lambda event: _joined(f"to {event.to} by {event.by}", _forced(event)),
    e.GateCompleted: lambda event: _joined(shown(event.data), f"by {event.by}" if event.by else None, _forced(event)),
    e.GateAnswered: lambda event: _joined(shown(event.data), f"by {event.by}"),
    e.GateCommented: lambda event: _joined(shown(event.text), f"by {event.by}" if event.by else None),
    e.GateReminded: lambda event: str(event.number),
    e.GateEscalated: lambda event: f"to {shown(event.to)}",
    e.TimerSet: _timer,
    e.TimerFired: lambda event: f"{event.timer} {event.purpose}",
    e.SignalReceived: lambda event: _joined(f"{event.signal} {event.name}", shown(event.key) if event.key else None),
    e.SignalTaken: lambda event: str(event.signal),
    e.ChildStarted: lambda event: f"{event.run} {event.workflow}",
    e.ChildEnded: lambda event: f"{event.run} {event.status}",
    e.CallbackReceived: lambda event: f"attempt {event.attempt}",
    e.CallbackRefused: lambda event: f"attempt {event.attempt} {event.kind}",
    e.CompensationRecorded: lambda event: f"record {event.record}",
    e.CompensationStarted: lambda event: f"record {event.record} {event.node}",
    e.CompensationCompleted: lambda event: f"record {event.record}",
    e.CompensationFailed: lambda event: f"record {event.record}  {_error(event)}",
    e.CompensationSkipped: lambda event: f"record {event.record} by {event.by}",
    e.EntityMoved: lambda event: _joined(
        event.event, event.node, event.edge, event.section, event.completed_as, event.entity_type
    ),
    e.ArtifactWritten: lambda event: event.name,
    e.BudgetWarned: _of_budget,
    e.BudgetExceeded: _of_budget,
    e.BudgetRaised: lambda event: f"by {event.by}",
    e.TokenProgress: lambda event: f"{event.name} {shown(event.data)}",
    e.Custom: lambda event: shown(event.data),
}

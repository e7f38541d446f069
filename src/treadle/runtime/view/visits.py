"""Visits as rows, and one visit with everything that is known of it. Pure: events and states come as arguments.

Owns the reading of one visit's own events into attempts, input, output and streamed text. Must not read a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from treadle.expression.paths import MISSING, Path
from treadle.kernel.state import RunState
from treadle.kernel.view import TokenView
from treadle.model import events as e
from treadle.model.ids import TokenId
from treadle.runtime.view.attempts import AttemptLog
from treadle.runtime.view.readings import RunReading
from treadle.runtime.view.shapes import VisitDetail, VisitReason, VisitRow
from treadle.runtime.view.visit_log import VisitLog, VisitRecord
from treadle.runtime.view.waits import wait_of

Json = Any

PROGRESS_MAX = 50
"""Reports of an action that a visit's detail repeats; the history has all of them."""
PARTIAL = "llm.partial"
"""Reports whose text is joined: `{step, at, text}`."""


def row_of(record: VisitRecord) -> VisitRow:
    """A visit as a row."""
    return VisitRow(
        visit=record.visit,
        node=record.node,
        path=record.path,
        status=record.status.value,
        waiting_for=record.waiting.value if record.waiting is not None else None,
        since=record.since,
        attempts=record.attempts,
        retries=record.retries,
        created=record.created,
        started=record.started,
        ended=record.ended,
        queue_ms=record.spent.queue_ms,
        wait_ms=record.spent.wait_ms,
        run_ms=record.spent.run_ms,
        branches=[(group, branch) for group, branch in record.frames],
        via=record.via,
        origin=record.origin,
        compensation=record.compensation,
        error=record.error,
        queue=record.queue,
        worker=record.worker,
        child=record.child,
        cost=record.cost,
    )


class VisitFilter(Struct, frozen=True):
    """Which visits are asked for."""

    statuses: frozenset[str] = frozenset()
    node: str | None = None
    group: int | None = None

    def fits(self, record: VisitRecord) -> bool:
        if self.statuses and record.status.value not in self.statuses:
            return False
        if self.node is not None and record.node != self.node:
            return False
        return self.group is None or any(frame[0] == self.group for frame in record.frames)


def chosen_visits(
    log: VisitLog, choice: VisitFilter, after: int | None, limit: int, *, newest_first: bool = False
) -> list[VisitRecord]:
    """The visits that fit, behind visit `after`; at most `limit`. Visits are numbered from 1 without a gap."""
    last = len(log.visits)
    if newest_first:
        numbers = range(min(after - 1, last) if after is not None else last, 0, -1)
    else:
        numbers = range((after or 0) + 1, last + 1)
    fitting = (record for number in numbers if choice.fits(record := log.visits[TokenId(number)]))
    return list(islice(fitting, limit))


def detail_of_visit(
    reading: RunReading, record: VisitRecord, events: Sequence[e.Event], scope: Json, reason: VisitReason
) -> VisitDetail:
    """A visit with what its own events tell."""
    told = _Told()
    told.apply(events)
    token = reading.state.tokens.get(record.visit)
    wait = wait_of(reading.state, token, record) if token is not None and record.live else None
    return VisitDetail(
        **msgspec.structs.asdict(row_of(record)),
        input=told.input,
        output=told.output,
        scope=scope,
        attempted=told.attempts.views(reading.log.changed),
        text=told.text if told.has_text else None,
        progress=told.progress[-PROGRESS_MAX:],
        why=reason,
        waiting=wait,
        artifacts=told.artifacts,
    )


class _Told:
    """What one visit's events tell, in order."""

    def __init__(self) -> None:
        self.attempts = AttemptLog()
        self.input: Json = None
        self.output: Json = None
        self.text = ""
        self.has_text = False
        self.step: Json = None
        self.progress: list[Json] = []
        self.artifacts: list[str] = []

    def apply(self, events: Iterable[e.Event]) -> None:
        for event in events:
            self.attempts.apply(event)
            if isinstance(event, e.TokenDispatched):
                self.input, self.text = event.input, ""
            elif isinstance(event, e.TokenStarted) and event.input is not None:
                self.input = event.input
            elif isinstance(event, e.TokenWaiting | e.TokenCompleted) and event.output is not None:
                self.output = event.output
            elif isinstance(event, e.Custom | e.TokenProgress):
                self._custom(event)
            elif isinstance(event, e.ArtifactWritten):
                self.artifacts.append(event.name)

    def _custom(self, event: e.Custom | e.TokenProgress) -> None:
        if event.name != PARTIAL or not isinstance(event.data, dict) or not isinstance(event.data.get("text"), str):
            self.progress.append({"name": event.name, "data": event.data, "at": event.at})
            return
        if event.data.get("step") != self.step:
            self.step, self.text = event.data.get("step"), ""
        at = event.data.get("at")
        self.text = self.text[: at if isinstance(at, int) else None] + event.data["text"]
        self.has_text = True


def scope_of(state: RunState, record: VisitRecord) -> Json:
    """The data that a visit sees in a state: `input`, `state`, `output`, its branch and the variables of items."""
    if any(group not in state.groups for group, _ in record.frames):
        return None
    view = TokenView(state, record.frames, None, None, state.tokens.get(record.visit))
    found: dict[str, Json] = {name: view.root(name, None) for name in ("input", "state", "output", "nodes")}
    branch = view.root("_branch", None)
    if branch is not MISSING:
        found["_branch"] = branch
    for group, _ in record.frames:
        for name in _item_variables(state, group):
            found[name] = view.root(name, None)
    return {name: value for name, value in found.items() if value is not MISSING}


def _item_variables(state: RunState, group: Any) -> list[str]:
    names = [state.groups[group].item_var]
    for transition in state.groups[group].transitions:
        foreach = state.graph.transitions[transition].definition.foreach
        names.append(foreach.item_var if foreach is not None else None)
    return [name for name in dict.fromkeys(names) if name]


def reason_of_visit(reading: RunReading, record: VisitRecord, before: RunState | None) -> VisitReason:
    """Why a visit was made. `before`: the state when its transition was chosen; None: the values are not known."""
    graph = reading.state.graph
    t = graph.transitions.get(record.via) if record.via is not None else None
    values = None
    origin = reading.log.visits.get(record.origin) if record.origin else None
    if before is not None and t is not None and t.condition is not None and origin is not None:
        values = _values(before, origin, t.condition.reads)
    return VisitReason(_words(record, origin), record.via, record.origin, record.why, values)


def _values(state: RunState, origin: VisitRecord, reads: Iterable[Path]) -> dict[str, Json] | None:
    if any(group not in state.groups for group, _ in origin.frames):
        return None
    view = TokenView(state, origin.frames, None, None, state.tokens.get(origin.visit))
    found = {}
    for path in sorted(reads, key=str):
        value = view.get(path)
        found[".".join(str(step) for step in path)] = None if value is MISSING else value
    return found


def _words(record: VisitRecord, origin: VisitRecord | None) -> str:
    if record.compensation:
        return f"undoes compensation record {record.record}"
    if record.via is None:
        return "the run begins here"
    where = f" from visit {origin.visit} of {origin.node!r}" if origin is not None else ""
    because = f", because {record.why}" if record.why else ""
    return f"transition {record.via!r}{where}{because}"

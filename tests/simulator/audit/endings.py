"""How runs end, what compensation does, where the entity is, who is in a critical section (2.9, 2.10, 2.12, A4)."""

from __future__ import annotations

from tests.simulator.audit.lifecycle import OVER
from tests.simulator.audit.record import Record, Visit
from treadle.model import commands as c
from treadle.model import events as e


def on_undo_started(record: Record, event: e.CompensationStarted) -> None:
    """One at a time, in reverse order of completion; a failed one again only because an operator said so."""
    running = [r for r, status in record.undo.items() if status == "running"]
    record.expect(not running, "saga", f"record {event.record} starts while {running} is running")
    record.expect(record.status == "compensating", "saga", f"compensation starts while the run is {record.status}")
    status = record.undo.get(event.record)
    if status == "failed":
        asked = isinstance(record.doing.cause, c.RetryCompensation | c.ResumeRun)
        record.expect(asked, "saga", f"record {event.record} is tried again without an operator")
        return
    waiting = [r for r, s in record.undo.items() if s == "recorded"]
    record.expect(
        bool(waiting) and event.record == waiting[-1],
        "saga",
        f"record {event.record} ({status}) starts, waiting {waiting}",
    )


def on_undo_ended(record: Record, event: e.CompensationCompleted | e.CompensationFailed) -> None:
    """Only what runs ends."""
    status = record.undo.get(event.record)
    record.expect(status == "running", "saga", f"{event.type} of record {event.record}, which is {status}")


def on_skipped(record: Record, event: e.CompensationSkipped) -> None:
    status = record.undo.get(event.record)
    record.expect(status == "failed", "saga", f"record {event.record} is skipped and is {status}")


def on_compensated(record: Record, _event: e.RunCompensated) -> None:
    """Everything is undone or was given up by a person."""
    left = {r: s for r, s in record.undo.items() if s not in ("completed", "skipped", "inherited")}
    record.expect(not left, "saga", f"the run is compensated and {left} are not")


def on_entity(record: Record, event: e.EntityMoved) -> None:
    """The journey is contiguous: it departs from where it is, and is in one place at a time."""
    places = [p for p in (event.node, event.edge, event.section) if p is not None]
    record.expect(len(places) <= 1, "entity", f"the entity is in {places} at once")
    if event.by is not None:
        cause = record.doing.cause
        wanted = (event.node, event.section, event.by, event.reason)
        told = isinstance(cause, c.MoveEntity) and (cause.node, cause.section, cause.by, cause.reason) == wanted
        fits = told and record.status not in OVER
        record.expect(fits, "entity", f"{event.by} moves the entity of a run that is {record.status} by {cause}")
    before = record.entity
    if event.event == "departed":
        edge = record.chart.transitions.get(event.edge or "")
        here = before.node if before is not None else None
        record.expect(edge is not None and edge.from_ == here, "entity", f"departs over {event.edge} from {here}")
    if event.event == "entered":
        record.expect(before is None, "entity", "the entity enters twice")
    elif event.event in ("arrived", "departed"):
        gone = before is None or before.completed_as is not None or before.section is not None
        record.expect(not gone, "entity", f"the entity travels on after {before}")


def settled(record: Record) -> None:
    """After a commit: a run that is over holds nothing, a run that is not has something that can move."""
    if record.status in OVER:
        _check_over(record)
    elif record.status == "running":
        _check_moving(record)
        _check_mutex(record)


def _check_over(record: Record) -> None:
    live = [visit.id for visit in record.live_visits()]
    record.expect(not live, "over", f"the run is {record.status} and visits {live} are live")
    record.expect(not record.arrivals, "over", f"the run is {record.status} and holds arrivals {list(record.arrivals)}")
    gates = [visit.id for visit in record.visits.values() if visit.gate == "open"]
    record.expect(not gates, "over", f"the run is {record.status} and gates of {gates} are open")
    record.expect(not record.store_timers, "over", f"the run is {record.status} and keeps timers {record.store_timers}")


def _check_moving(record: Record) -> None:
    live = record.live_visits()
    if any(not visit.held and visit.reason != "mutex" for visit in live):
        return
    if any(timer.purpose == "sync" for timer in record.timers.values()):
        return
    waits = [f"{visit.id} {visit.node} {visit.reason}" for visit in live]
    record.complain("deadlock", f"nothing can ever move this run: {waits}, arrivals {list(record.arrivals)}")


def _check_mutex(record: Record) -> None:
    inside: dict[str, list[Visit]] = {}
    for visit in record.live_visits():
        mutex = record.node(visit.node).mutex
        if mutex is not None and visit.begun and not visit.held and not visit.compensation:
            inside.setdefault(mutex.name, []).append(visit)
    for name, visits in inside.items():
        keeps = any(m is not None and m.keep for m in (record.node(visit.node).mutex for visit in visits))
        text = f"visits {[visit.id for visit in visits]} are in the critical section {name} at once"
        record.expect(keeps or len(visits) == 1, "mutex", text)

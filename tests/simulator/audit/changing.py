"""An operator's changes to a run that stands still, checked (6.4): edit, skip, jump, another input.

Each is asked for by its command, is told by an event, and does what it says and nothing else: an edit writes the scope
that was meant, a skipped visit completes with the operator's output, a jump makes one visit with the same frames, and
a further attempt is given the input that was set.
"""

from __future__ import annotations

from tests.simulator.audit import reopening
from tests.simulator.audit.lifecycle import move
from tests.simulator.audit.record import Record, Visit
from treadle.model import commands as c
from treadle.model import events as e

STILL = ("paused", "failed")


def on_edited(record: Record, event: e.ContextUpdated) -> None:
    """Somebody writes into the run's data."""
    if event.by is None:
        return
    cause = record.doing.cause
    if isinstance(cause, c.ForkRun):
        asked = dict(cause.changes.state)
        frames = None
    else:
        asked = dict(cause.writes) if isinstance(cause, c.EditRun) else {}
        visit = record.visits.get(cause.branch or 0) if isinstance(cause, c.EditRun) else None
        frames = record.isolating_frame(visit.frames) if visit is not None else None
        record.expect(record.status in STILL, "edited", f"data is written while the run is {record.status}")
    told = {".".join(map(str, path)): value for path, value in event.writes}
    record.expect(told == asked, "edited", f"{told} is written by {cause}")
    record.expect(event.scope == frames, "edited", f"{event.scope} is written, meant is {frames}")


def on_skipped(record: Record, event: e.TokenSkipped) -> None:
    """A visit that has not completed is completed with what the operator says."""
    cause = record.doing.cause
    told = isinstance(cause, c.SkipToken) and (cause.token, cause.output) == (event.token, event.output)
    record.expect(told, "skipped", f"visit {event.token} is skipped by {cause}")
    able = record.status in (*STILL, "running")
    record.expect(able, "skipped", f"visit {event.token} is skipped while the run is {record.status}")
    visit = record.visits[event.token]
    record.expect(not visit.held, "skipped", f"visit {visit.id} has brought its result, and is skipped")


def skip(record: Record, event: e.TokenSkipped) -> None:
    visit = record.visits[event.token]
    _live_again(record, visit, event)
    visit.skipped = (event.output,)
    visit.reason = visit.detail = visit.deferred = None
    visit.begun = True
    if visit.child is not None:
        record.doing.orphans.append(visit.child)
        visit.child = None
    if visit.gate == "open":
        visit.gate = "closed"


def on_jumped(record: Record, event: e.TokenJumped) -> None:
    """A visit of a run that stands still ends, and another one begins elsewhere."""
    cause = record.doing.cause
    told = isinstance(cause, c.JumpToken) and (cause.token, cause.to) == (event.token, event.to)
    record.expect(told, "jumped", f"visit {event.token} jumps to {event.to} by {cause}")


def jump(record: Record, event: e.TokenJumped) -> None:
    visit = record.visits[event.token]
    if not visit.live:
        _live_again(record, visit, event)
        visit.reason = visit.detail = None
    record.doing.jumps.append((event.to, visit.frames))
    record.doing.jumped = visit.id


def _live_again(record: Record, visit: Visit, event: e.Event) -> None:
    """A failed visit takes its failure back, as a retry does."""
    failed = visit.state in ("failed", "timed_out")
    move(record, event)
    if failed:
        visit.held = visit.routed = False
        reopening.come_back(record, visit, held=False)


def on_input(record: Record, event: e.TokenInputSet) -> None:
    cause = record.doing.cause
    told = isinstance(cause, c.SetInput) and (cause.token, cause.input) == (event.token, event.input)
    record.expect(told, "input", f"visit {event.token} is given {event.input} by {cause}")
    record.expect(record.status in STILL, "input", f"an input is set while the run is {record.status}")


def set_input(record: Record, event: e.TokenInputSet) -> None:
    record.visits[event.token].given = (event.input,)


def on_dispatched(record: Record, event: e.TokenDispatched) -> None:
    """What an operator has set is what the next attempts are given."""
    visit = record.visits.get(event.token)
    if visit is not None and visit.given is not None and not visit.compensation and not event.recovery:
        right = event.input == visit.given[0]
        record.expect(right, "input", f"visit {visit.id} is given {event.input}, set was {visit.given[0]}")


def settled(record: Record) -> None:
    """After a commit: whoever jumped has ended, and is at the other node in the same branch."""
    doing = record.doing
    if doing.jumped:
        visit = record.visits[doing.jumped]
        record.expect(visit.state == "cancelled", "jumped", f"visit {visit.id} has jumped and is {visit.state}")
        record.expect(not doing.jumps, "jumped", f"visit {visit.id} has jumped and is not at {doing.jumps}")

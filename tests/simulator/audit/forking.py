"""A fork, checked (6.3): it has exactly its origin's past up to the end of a decision, and touches nothing of it.

The record of a fork is made by looking at the origin's commits again. From its point on it is a run like any other:
what had returned stays returned (`lifecycle`), what was under way is handed out again with the same number
(`attempts`), and clocks have the time left that they had (`timers`).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import asdict

from tests.simulator.audit.record import Record, Visit
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model import events as e

OWN = frozenset({"run", "entity", "parent", "depth", "depth_max", "idempotency_key", "tags", "trace", "at"})
"""What the start of a fork has of its own."""
LIVE = ("running", "paused", "compensating")
ELSEWHERE = (None, "queue", "external", "subworkflow")
"""What a visit waits for whose work is done somewhere else."""


def place(events: Sequence[e.Event]) -> int | None:
    """Where in the first commit of a run its own events begin; None: it inherits nothing."""
    found = [number for number, event in enumerate(events) if isinstance(event, e.RunForked)]
    return found[-1] if found else None


def check_past(
    record: Record, past: Sequence[e.Event], forked: e.RunForked, origin: Sequence[e.Event], ends: Sequence[int]
) -> None:
    """The copied past is that of the other run, to the end of one of its decisions."""
    point = forked.point
    record.expect(point == 0 or point in ends, "fork", f"{point} is not the end of a decision of {forked.from_}")
    record.expect(len(past) == max(point, 1), "fork", f"{len(past)} events are inherited up to {point}")
    for mine, other in zip(past, origin, strict=False):
        if type(mine) is type(other) and isinstance(mine, e.Beginning):
            ours, theirs = asdict(mine), asdict(other)
            different = [name for name in ours if name not in OWN and ours[name] != theirs[name]]
            record.expect(not different, "fork", f"{different} of its start are not those of {forked.from_}")
        else:
            record.expect(mine == other, "fork", f"inherits {mine}, {forked.from_} has {other}")


def on_forked(record: Record, event: e.RunForked) -> None:
    cause = record.doing.cause
    told = isinstance(cause, c.ForkRun) and (cause.run, cause.origin) == (record.run, event.from_)
    record.expect(told, "fork", f"a fork of {event.from_} is made by {cause}")


def fork(record: Record, event: e.RunForked) -> None:
    """From here on the run is its own."""
    record.began = event.seq
    record.children = {}
    record.own_children = set()
    record.entity = None
    record.budget.begin(event.at)
    if record.status != "running":
        record.budget.stand(event.at)
    for timer in record.timers.values():
        timer.due += event.shift_ms
    for visit in record.visits.values():
        if _is_under_way(record, visit):
            _take_up(record, visit)
        elif visit.live:
            visit.holder = None
    for identity, status in record.undo.items():
        is_open = status in ("recorded", "running", "failed")
        if is_open and (identity in record.undo_calls or not event.inherit_compensation):
            record.undo[identity] = "inherited"
    for arrival, value in event.arrivals:
        record.arrivals[arrival].value = value


def waits_or_goes_on(record: Record, event: e.Beginning) -> bool:
    """A limit lets a fork wait for its start (6.7): it stands still with its past, and goes on as it stood. False: the
    event is no such one."""
    if isinstance(event, e.RunQueued) and record.status in LIVE and isinstance(record.doing.cause, c.ForkRun):
        record.stands, record.status, record.queued_at = record.status, "queued", event.at
        record.budget.stand(event.at)
        return True
    if record.stands is None:
        return False
    record.status, record.stands = record.stands, None
    record.began = event.seq  # one whose point is before the first visits makes them now
    record.budget.begin(event.at)
    if record.status != "running":
        record.budget.stand(event.at)
    if record.status != "paused":
        for timer in record.timers.values():
            timer.due += event.at - record.queued_at
    return True


def _is_under_way(record: Record, visit: Visit) -> bool:
    answered = record.status == "paused" and visit.deferred is not None and visit.deferred_attempt == visit.attempt
    ended = visit.reason == "subworkflow" and visit.child is None
    if visit.held or answered or ended or visit.state not in ("dispatched", "executing", "waiting"):
        return False
    return visit.reason in ELSEWHERE


def _take_up(record: Record, visit: Visit) -> None:
    for lease in [t for t in visit.timers if record.timers[t].purpose == "lease"]:
        visit.timers.discard(lease)
        del record.timers[lease]
    visit.state, visit.attempt, visit.recovery = "pending", visit.attempt - 1, 0
    visit.worker = visit.reason = visit.detail = visit.child = visit.deferred = None
    visit.begun = False


def settled(record: Record, effects: Sequence[x.Effect]) -> None:
    """After a commit: a run that was forked asks nothing of the children and the parent of the other one."""
    if not record.is_fork:
        return
    for effect in effects:
        if isinstance(effect, x.CancelChild | x.RetryChild | x.CompensateChild | x.PermitChild):
            mine = effect.child in record.own_children or effect.child == "nobody"
            record.expect(mine, "fork", f"{type(effect).__name__} of {effect.child}, which the fork has not started")
        elif isinstance(effect, x.NotifyParent | x.TellSpending | x.ChildReopened | x.ChildRefused):
            record.complain("fork", f"{type(effect).__name__} to {effect.parent}: a fork has no parent")

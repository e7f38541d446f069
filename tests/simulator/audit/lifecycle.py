"""The auditor's own table of a visit's and a run's states, written from 2.9 and checked at every event.

created → pending → dispatched → executing → completed | failed | timed_out
executing → waiting{reason};  waiting{siblings} → completed | timed_out;  waiting{retry, mutex} → pending
other waits resume through executing;  any non-terminal → cancelled;  failed → pending by an operator only
failed | timed_out | cancelled → pending | waiting where an operator's retry brings it back (6.2): see `reopening`
any non-terminal, failed, timed_out → executing where an operator skips it, then completed (6.4): see `changing`
"""

from __future__ import annotations

from tests.simulator.audit.record import LIVE, Record, Visit
from treadle.model import commands as c
from treadle.model import events as e

_VISIT: dict[str, dict[str, frozenset[str]]] = {
    "token.dispatched": {"dispatched": frozenset({"pending", "dispatched", "executing"})},
    "token.started": {"executing": frozenset({"pending", "dispatched", "executing"})},
    "token.waiting": {"waiting": frozenset({"pending", "executing", "waiting", "failed", "timed_out", "cancelled"})},
    "token.resumed": {"executing": frozenset({"waiting"})},
    "token.completed": {"completed": frozenset({"executing", "waiting"})},
    "token.failed": {"failed": LIVE},
    "token.timed_out": {"timed_out": LIVE},
    "token.cancelled": {"cancelled": LIVE},
    "token.retry_scheduled": {
        "waiting": frozenset({"dispatched", "executing", "waiting", "failed", "timed_out", "cancelled"})
    },
    "token.skipped": {"executing": LIVE | {"failed", "timed_out"}},
    "token.jumped": {"pending": frozenset({"failed", "timed_out"})},
}

RUN: dict[str, tuple[str, frozenset[str]]] = {
    "run.queued": ("queued", frozenset({"created", "queued"})),
    "run.started": ("running", frozenset({"created", "queued"})),
    "run.paused": ("paused", frozenset({"running"})),
    "run.resumed": ("running", frozenset({"paused", "failed"})),
    "run.completed": ("completed", frozenset({"running"})),
    "run.failed": ("failed", frozenset({"running", "paused"})),
    "run.cancelled": ("cancelled", frozenset({"queued", "running", "paused"})),
    "run.timed_out": ("timed_out", frozenset({"running"})),
    "run.compensating": (
        "compensating",
        frozenset({"failed", "cancelled", "timed_out", "completed", "compensation_failed", "compensated"}),
    ),
    "run.compensated": ("compensated", frozenset({"compensating"})),
    "run.compensation_failed": ("compensation_failed", frozenset({"compensating"})),
}

NOT_WHILE_PAUSED = frozenset(
    {"token.created", "token.dispatched", "token.started", "timer.fired", "join.fired", "join.failed", "signal.taken"}
)
"""2.7: no new dispatch, results are recorded and not routed, timers freeze."""

OVER = frozenset({"completed", "failed", "cancelled", "timed_out", "compensated", "compensation_failed"})


def move(record: Record, event: e.Event) -> Visit | None:
    """A visit changes its state; None for an event that is about none (an arrival that stands alone)."""
    identity = getattr(event, "token", None)
    visit = record.visits.get(identity) if identity else None
    if visit is None:
        record.expect(identity == 0, "lifecycle", f"{event.type} of visit {identity}, which was never created")
        return None
    after, before = next(iter(_VISIT[event.type].items()))
    record.expect(
        visit.state in before,
        "lifecycle",
        f"visit {visit.id} ({visit.node}) is {visit.state}: {event.type} must not happen to it",
    )
    if event.type == "token.completed" and visit.state == "waiting":
        record.expect(
            visit.reason == "siblings", "lifecycle", f"visit {visit.id} completed while waiting for {visit.reason}"
        )
    if visit.state == "waiting" and visit.reason == "siblings" and event.type in ("token.failed", "token.resumed"):
        record.complain("lifecycle", f"visit {visit.id} waits for siblings and gets {event.type}")
    visit.state = after
    return visit


def move_run(record: Record, event: e.Event) -> None:
    """The run changes its state."""
    after, before = RUN[event.type]
    record.expect(record.status in before, "lifecycle", f"the run is {record.status}: {event.type} must not happen")
    record.status = after


def check_paused(record: Record, event: e.Event) -> None:
    """Nothing moves while the run is paused, nor while a fork waits for its start."""
    stands = record.status == "paused" or record.stands is not None
    if stands and event.type in NOT_WHILE_PAUSED and not _is_excused(record, event):
        record.complain("paused", f"{event.type} while the run is {record.status}")


def _is_excused(record: Record, event: e.Event) -> bool:
    """An attempt handed out again because its worker is gone is nothing new, nor is one that goes on under a claim; a
    group that an operator completes during the pause is complete, but what follows has not begun."""
    if isinstance(event, e.TokenStarted):
        visit = record.visits[event.token]
        return visit.recovery > 0 or visit.state == "executing"
    if isinstance(event, e.TokenDispatched):
        return event.recovery > 0
    if isinstance(record.doing.cause, c.SkipToken | c.JumpToken):
        return isinstance(event, e.JoinFired | e.JoinFailed | e.TokenCreated)
    ordered = isinstance(record.doing.cause, c.CancelGroup)
    return ordered and isinstance(event, e.JoinFired | e.JoinFailed | e.TokenCreated)

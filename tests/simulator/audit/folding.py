"""How the record takes in what happens to visits and groups. Only what events say, nothing that would have to be
decided; joins fold themselves, in `joins` and `node_joins`, because what they do is what is being checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulator.audit import budgets, changing, reopening
from tests.simulator.audit.folding_runs import RUNS
from tests.simulator.audit.lifecycle import move
from tests.simulator.audit.record import Arrival, Group, JoinRecord, Record, Visit
from treadle.model import events as e


def _created(record: Record, event: e.TokenCreated) -> None:
    visit = record.new_visit(event)
    record.expect(event.token == len(record.visits), "ids", f"visit {event.token} is not the next one")
    if not visit.compensation:
        record.forward_visits += 1
        _see(record, event.frames)


def _see(record: Record, frames: Any) -> None:
    for group, index in frames:
        record.groups[group].seen.add(index)


def _dispatched(record: Record, event: e.TokenDispatched) -> None:
    _count(record, event)
    visit = move(record, event)
    if visit is None:
        return
    if event.recovery:
        same = event.attempt == visit.attempt and event.recovery == visit.recovery + 1
        record.expect(same, "attempts", f"visit {visit.id}: recovery {event.recovery} of attempt {event.attempt}")
    else:
        record.expect(event.attempt == visit.attempt + 1, "attempts", f"visit {visit.id} skips to {event.attempt}")
    visit.attempt, visit.recovery, visit.worker = event.attempt, event.recovery, None
    visit.begun = True
    visit.reason = "queue" if event.queue is not None else None
    for lease in [t for t in visit.timers if record.timers[t].purpose == "lease"]:
        visit.timers.discard(lease)
        del record.timers[lease]


def _count(record: Record, event: e.TokenDispatched | e.TokenStarted) -> None:
    visit = record.visits.get(event.token)
    if visit is not None:
        budgets.count(record, visit, event)


def _started(record: Record, event: e.TokenStarted) -> None:
    before = visit.state if (visit := record.visits.get(event.token)) is not None else None
    first = before == "pending"
    _count(record, event)
    visit = move(record, event)
    if visit is None:
        return
    if before == "executing":
        claimed = event.worker is not None and event.lease_until is not None and visit.worker is None
        record.expect(claimed, "attempts", f"visit {visit.id} starts again, and it is no claim of work at hand")
    expected = visit.attempt + 1 if first else visit.attempt
    record.expect(event.attempt == expected, "attempts", f"visit {visit.id} starts attempt {event.attempt}")
    visit.attempt, visit.worker, visit.begun, visit.reason = event.attempt, event.worker, True, None


def _waiting(record: Record, event: e.TokenWaiting) -> None:
    if event.arrival is not None:
        reopening.hold_alone(record, event.arrival)
        return
    before = record.visits[event.token].state
    if before in ENDED:
        _wait_again(record, event)
    elif event.reason == "subworkflow" and "life" in event.detail:
        _withdraw_end(record, event)
    visit = move(record, event)
    if visit is None:
        return
    if before == "pending":
        record.expect(
            event.reason == "mutex", "lifecycle", f"visit {visit.id} waits for {event.reason} before it began"
        )
    if before != "waiting":
        visit.waiting_since = event.seq
    visit.reason, visit.detail = event.reason.value, event.detail
    if event.reason == "siblings":
        record.doing.ended.append(visit.id)
        _drop_timers(record, visit)


def _wait_again(record: Record, event: e.TokenWaiting) -> None:
    visit = record.visits[event.token]
    called = event.reason == "subworkflow" and visit.failure
    record.expect(
        event.reason == "siblings" or bool(called),
        "lifecycle",
        f"visit {visit.id} is {visit.state} and waits for {event.reason}",
    )
    reopening.come_back(record, visit, held=event.reason == "siblings")
    if called:
        visit.child = event.detail["child"]
        record.children[event.detail["child"]] = None


def _withdraw_end(record: Record, event: e.TokenWaiting) -> None:
    """The child of a paused run has failed and was reopened before its end was applied."""
    child = event.detail["child"]
    ended = record.children.get(child)
    known = ended is not None and ended.status == "failed" and ended.life < event.detail["life"]
    paused = record.status == "paused"
    record.expect(known and paused, "children", f"visit {event.token} waits again for {child}: {ended}")
    record.visits[event.token].child = child
    record.children[child] = None


def _resumed(record: Record, event: e.TokenResumed) -> None:
    visit = move(record, event)
    if visit is not None:
        if event.by in ("mutex", "retry"):
            visit.state = "pending"
        visit.reason = visit.detail = None


def _ended(record: Record, event: e.Event) -> None:
    visit = move(record, event)
    if visit is None:
        arrival = getattr(event, "arrival", None)
        record.expect(arrival in record.arrivals, "arrivals", f"arrival {arrival} is withdrawn and is not there")
        if arrival in record.arrivals:
            record.doing.withdrawn.append(record.arrivals[arrival].frames)
            reopening.note_withdrawn(record, record.arrivals[arrival], getattr(event, "because", 0))
        withdraw(record, arrival)
        return
    record.doing.ended.append(visit.id)
    if isinstance(event, e.TokenCancelled):
        record.doing.withdrawn.append(visit.frames)
    if visit.child is not None and visit.state != "completed":
        record.doing.orphans.append(visit.child)
        visit.child = None
    visit.reason = visit.detail = None
    reopening.note_fall(record, visit, getattr(event, "because", 0))
    visit.held = False
    if visit.gate == "open":
        visit.gate = "closed"
    _drop_timers(record, visit)
    for arrival in [a.id for a in record.arrivals.values() if a.token == visit.id]:
        withdraw(record, arrival)
    if isinstance(event, e.TokenFailed | e.TokenTimedOut):
        reopening.note_failure(record, event)


def _drop_timers(record: Record, visit: Visit, keep: str = "") -> None:
    """A visit's clocks stop; triggers stay armed while it only tries again."""
    for timer in [t for t in visit.timers if record.timers[t].purpose != keep]:
        visit.timers.discard(timer)
        del record.timers[timer]


def withdraw(record: Record, identity: Any) -> None:
    """An arrival is used or withdrawn."""
    arrival = record.arrivals.pop(identity, None)
    if arrival is not None and arrival.group is None:
        record.node_joins[arrival.target, arrival.item].remove(identity)


def _retry_scheduled(record: Record, event: e.TokenRetryScheduled) -> None:
    before = record.visits[event.token].state
    record.expect(
        event.by is not None or before not in ENDED,
        "lifecycle",
        f"visit {event.token} is {before} and tries again by itself",
    )
    visit = move(record, event)
    if visit is None:
        return
    _drop_timers(record, visit, keep="" if event.by is not None else "trigger")
    visit.reason = "timer"
    if visit.child is not None:
        record.doing.orphans.append(visit.child)
        visit.child = None
    if event.by is not None:
        visit.state, visit.reason, visit.held, visit.routed, visit.begun = "pending", None, False, False, False
        if not visit.compensation:
            reopening.come_back(record, visit, held=False)
    record.expect(event.attempt == visit.attempt + 1, "attempts", f"visit {visit.id} will try {event.attempt}")


def _group_opened(record: Record, event: e.GroupOpened) -> None:
    chart = record.chart
    around = any(record.groups[group].isolating for group, _ in event.frames)
    sites = chart.sites_of(event.names)
    record.groups[event.group] = Group(
        event.group,
        list(event.names),
        event.origin,
        event.node,
        event.path,
        event.frames,
        event.total,
        list(event.transitions),
        event.replicated,
        bool(sites) or (event.replicated and around),
        event.open,
        event.max_in_flight,
        [JoinRecord(site) for site in sites],
    )
    if not event.total and not sites and event.frames:
        record.groups[event.frames[-1][0]].empties += 1


def _grew(record: Record, event: e.GroupGrew) -> None:
    group = record.groups[event.group]
    record.expect(group.open, "groups", f"group {group.id} grows and is not open")
    record.expect(event.total >= group.total, "groups", f"group {group.id} shrinks to {event.total}")
    group.total = event.total


def _closed(record: Record, event: e.GroupClosed) -> None:
    group = record.groups[event.group]
    reopening.note_closed(record, group, event.because)
    group.open = False
    group.withdrawn |= event.withdrawn


def _arrived(record: Record, event: e.JoinArrived) -> None:
    _see(record, event.frames)
    visit = record.visits.get(event.token)
    if visit is not None:
        visit.held = True
    if event.absorbed:
        return
    record.arrivals[event.arrival] = Arrival(
        event.arrival,
        event.token,
        event.target,
        event.via,
        event.path,
        event.frames,
        event.group,
        event.item,
        event.value,
        event.loops or {},
    )
    if event.group is None:
        record.node_joins.setdefault((event.target, event.item), []).append(event.arrival)


ENDED = ("failed", "timed_out", "cancelled")

FOLD: dict[type[e.Event], Callable[[Record, Any], None]] = {
    **RUNS,
    e.TokenCreated: _created,
    e.TokenDispatched: _dispatched,
    e.TokenStarted: _started,
    e.TokenWaiting: _waiting,
    e.TokenResumed: _resumed,
    e.TokenCompleted: _ended,
    e.TokenFailed: _ended,
    e.TokenTimedOut: _ended,
    e.TokenCancelled: _ended,
    e.TokenRetryScheduled: _retry_scheduled,
    e.TokenSkipped: changing.skip,
    e.TokenJumped: changing.jump,
    e.TokenInputSet: changing.set_input,
    e.TokenProgress: budgets.progress,
    e.ResultIgnored: budgets.progress,
    e.GroupOpened: _group_opened,
    e.GroupGrew: _grew,
    e.GroupClosed: _closed,
    e.JoinArrived: _arrived,
}

"""An operator's retry, checked (6.2): what a failure took down comes back with it, all of it and nothing else.

Every cancellation names the failure it is due to, or none. The record keeps that, and what was held at joins then. A
commit that takes failures back is held against it: what went down with them is live again, what went down for another
reason is not, and what had brought something to a join waits there with it instead of being executed again.
"""

from __future__ import annotations

from tests.simulator.audit.record import Arrival, Group, Record, Visit
from treadle.model import events as e

RUN = -1
"""The failure of the run itself."""


def note_failure(record: Record, event: e.TokenFailed | e.TokenTimedOut | e.JoinFailed) -> None:
    """A failure nothing has handled can be taken back."""
    if event.fails is None and not event.unhandled:
        return
    record.failures[event.seq] = event.fails
    if event.fails is not None:
        record.groups[event.fails[0]].failed.add(event.fails[1])
    if not isinstance(event, e.JoinFailed):
        record.visits[event.token].failure = event.seq


def note_fall(record: Record, visit: Visit, because: int) -> None:
    """A visit is about to end; what it holds at joins is still there."""
    visit.because = because
    record.doing.fell.add(visit.id)
    visit.brought = [a for a in record.arrivals.values() if a.token == visit.id]


def note_withdrawn(record: Record, arrival: Arrival, because: int) -> None:
    """An arrival is about to be withdrawn without its visit."""
    if because:
        record.fallen[arrival.id] = (because, arrival)


def note_closed(record: Record, group: Group, because: int) -> None:
    """A group is about to be closed."""
    if because:
        record.closed.append((because, group.id, group.open, group.withdrawn))


def take_back(record: Record, seq: int) -> None:
    """A failure has never happened: its branch goes on, and groups it had closed do."""
    record.doing.taken.add(seq)
    fails = record.failures.pop(seq, None)
    if fails is not None:
        group = record.groups[fails[0]]
        group.failed.discard(fails[1])
        group.revived.add(fails[1])
    for because, identity, was_open, was_withdrawn in reversed(record.closed):
        if because == seq:
            record.groups[identity].open, record.groups[identity].withdrawn = was_open, was_withdrawn
    record.closed = [entry for entry in record.closed if entry[0] != seq]


def come_back(record: Record, visit: Visit, *, held: bool) -> None:
    """A visit that had ended is live again, at its node or held at joins."""
    for group, branch in visit.frames:
        record.groups[group].revived.add(branch)
    if visit.failure:
        take_back(record, visit.failure)
        visit.failure = 0
        return
    record.doing.back.append((visit.id, visit.because))
    record.expect(
        held == bool(visit.brought),
        "reopened",
        f"visit {visit.id} had brought {[a.id for a in visit.brought]} and comes back held={held}",
    )
    if held:
        visit.held = visit.routed = True
        for arrival in visit.brought:
            hold(record, arrival)
    visit.because, visit.brought = 0, []


def hold(record: Record, arrival: Arrival) -> None:
    """An arrival waits at its join again."""
    record.arrivals[arrival.id] = arrival
    if arrival.group is None:
        arrival.item = record.join_item(arrival.frames)
        held = record.node_joins.setdefault((arrival.target, arrival.item), [])
        held.append(arrival.id)
        held.sort()


def hold_alone(record: Record, identity: int) -> None:
    """An arrival without a visit comes back."""
    known = record.fallen.pop(identity, None)
    if known is None:
        record.complain("reopened", f"arrival {identity} comes back and no failure had taken it down")
        return
    because, arrival = known
    record.doing.back.append((0, because))
    visit = record.visits.get(arrival.token)
    if visit is None or not visit.live:
        arrival.token = 0
    hold(record, arrival)


def on_join_reopened(record: Record, event: e.JoinReopened) -> None:
    """Only a fan-in that has failed, or died with its branch, is reopened."""
    if event.failure:
        record.expect(event.failure in record.failures, "reopened", f"no failure {event.failure} to be taken back")
        take_back(record, event.failure)
    if event.group is None:
        return
    join = record.groups[event.group].join_at(event.target)
    wanted = "failed" if event.failure else "dead"
    status = join.status if join is not None else None
    record.expect(status == wanted, "reopened", f"the join at {event.target} is {status}, and is reopened as {wanted}")
    if join is not None:
        if not event.failure:
            record.doing.back.append((0, join.because))
        join.status, join.because = "open", 0


def settled(record: Record) -> None:
    """After a commit: exactly what the failures that were taken back had taken down is there again."""
    taken = record.doing.taken
    for identity, because in record.doing.back:
        what = f"visit {identity}" if identity else "an arrival or a join"
        text = f"{what} comes back, went down with {because or 'no failure'}, taken back are {sorted(taken)}"
        record.expect(because in taken, "reopened", text)
    if not taken:
        return
    for visit in record.visits.values():
        if visit.id in record.doing.fell:
            continue  # it went down just now, perhaps again: what is left of the failures fails the run anew
        if visit.because in taken and not visit.live:
            waits = [record.groups[a.group].join_at(a.target) for a in visit.brought if a.group is not None]
            gone = any(join is None or join.status != "open" for join in waits)
            record.expect(gone, "reopened", f"visit {visit.id} went down with {visit.because} and is left behind")
    for group in record.groups.values():
        for join in group.joins:
            left = join.status == "dead" and join.because in taken and join.because != RUN
            record.expect(not left, "reopened", f"the join of group {group.id} at {join.site.target} is left behind")

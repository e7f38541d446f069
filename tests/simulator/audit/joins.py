"""Joins on groups, recounted from the events: whatever a join does must follow from arithmetic (2.5, 2.16, A7).

Theory of operation. When a join of group G at target J says something, the auditor goes through everything that
stands anywhere in the run, asks of each in which branch of G it is and whether it can still get to J, and so finds
for every branch whether it is live, arrived, failed or ended. From these four sets and the definition follows what
the join has to do, and that is compared. After every commit the same question is asked of every join that has said
nothing: it must have had to wait. Two things may overrule arithmetic, and each leaves its trace in the commit: the
join's clock, and a cancellation of the group.
"""

from __future__ import annotations

from tests.simulator.audit import reopening
from tests.simulator.audit.folding import withdraw
from tests.simulator.audit.folding_runs import write
from tests.simulator.audit.merges import check_merge
from tests.simulator.audit.record import Group, JoinRecord, Record
from tests.simulator.audit.tally import Tally, is_decided, tally, verdict
from treadle.model import commands as c
from treadle.model import events as e

LATE_KINDS = frozenset({"MIN_SUCCESS_NOT_MET", "MERGE_TYPE", "SCHEMA"})
"""A join that was to fire, and could not."""


def is_overruled(record: Record, group: Group, join: JoinRecord) -> bool:
    """Whether the join's clock has run out, or the group was cancelled, in this very commit."""
    clock = any(
        timer.purpose == "sync" and (timer.group, timer.target) == (group.id, join.site.target)
        for timer in record.doing.timers_fired
    )
    return clock or is_cancelled(record, group)


def is_cancelled(record: Record, group: Group) -> bool:
    """Whether this commit cancels the group: an operator, a transition's `cancels`, or a `cancel_group` action."""
    called = {name.split(":", 1)[1] for name in group.names}
    cause = record.doing.cause
    if isinstance(cause, c.CancelGroup) and cause.group in called:
        return True
    acting = [record.visits[token].node for token in _touched(record)]
    acting += [event.target for event in record.doing.events if isinstance(event, e.JoinFailed)]
    return any(_cancels(record, ref, called) for ref in acting)


def _touched(record: Record) -> list[int]:
    """Visits that something has happened to in this commit, whatever came of it."""
    named = (getattr(event, "token", None) for event in record.doing.events)
    origins = (event.origin for event in record.doing.events if isinstance(event, e.TokenCreated | e.GroupOpened))
    return [token for token in dict.fromkeys((*named, *origins)) if token in record.visits]


def _cancels(record: Record, ref: str, called: set[str]) -> bool:
    """Whether a visit of this node could cancel the group: by its action, or by a transition out of it. A node that
    another version has left out cannot."""
    if ref not in record.chart.workflow.nodes:
        return False
    task = record.node(ref).task
    action = task.steps[0].action if task is not None else None
    if action is not None and action.kind == "cancel_group" and action.config.get("group") in called:
        return True
    return any(t.cancels is not None and called & set(t.cancels.groups) for t in record.chart.out[ref])


def on_arrival(record: Record, event: e.JoinArrived) -> None:
    """An arrival is held at the innermost group that answers, as long as its join is open; later it is absorbed."""
    site = record.chart.site_of(event.via)
    if event.group is None or site is None:
        return
    answering = [g for g, _ in reversed(event.frames) if site.key in record.groups[g].names]
    record.expect(
        answering[:1] == [event.group], "arrivals", f"held at group {event.group}, innermost is {answering[:1]}"
    )
    join = record.groups[event.group].join_at(event.target)
    if join is None:
        record.complain("arrivals", f"group {event.group} has no join at {event.target}")
        return
    fits = (join.status == "open") != event.absorbed
    record.expect(
        fits, "arrivals", f"arrival at a {join.status} join of group {event.group}: absorbed={event.absorbed}"
    )
    if event.absorbed and join.status == "fired" and join.site.sync.on_early_complete == "pass_through":
        record.doing.owed.append((event.target, record.groups[event.group].frames))


def on_fired(record: Record, event: e.JoinFired) -> None:
    """A join of a group has fired: was it to, and does it do what follows?"""
    if event.group is None:
        return
    group = record.groups[event.group]
    join = group.join_at(event.target)
    if join is None or join.status != "open":
        record.complain(
            "fires once", f"group {group.id} at {event.target} fires and is {join.status if join else None}"
        )
        return
    seen = tally(record, group, join)
    _check_numbers(record, event, group, seen)
    overruled = is_overruled(record, group, join)
    action, _ = verdict(record, group, join, seen)
    numbers = f"{seen}, failed {group.failed} of {group.total}"
    what = f"group {group.id} at {event.target}: {join.site.sync.strategy} with {numbers}"
    record.expect(action == "fire" or overruled, "quorum", f"{what}: fires and should {action}")
    least = join.site.sync.min_success_count
    record.expect(least is None or len(seen.arrived) >= least, "quorum", f"{what}: below min_success_count {least}")
    record.expect(
        overruled or not is_blocked(record, group, join), "block", f"{what}: an earlier instance is not drained"
    )
    check_merge(record, event, group, join, seen.arrived)
    _take_firing(record, event, group, join, seen)


def _check_numbers(record: Record, event: e.JoinFired, group: Group, seen: Tally) -> None:
    said = (event.arrived, event.failed, event.total)
    counted = (len(seen.arrived), len(group.failed), group.total)
    record.expect(said == counted, "quorum", f"group {group.id} at {event.target} says {said}, counted {counted}")


def _take_firing(record: Record, event: e.JoinFired, group: Group, join: JoinRecord, seen: Tally) -> None:
    more = bool(seen.live) or (group.total > len(group.seen) and not is_decided(group))
    rest = join.site.sync.on_early_complete if more else None
    spared = bool(seen.live) and event.rest == "abandon" and is_cancelled(record, group)  # whoever cancelled it
    right = event.rest == rest or spared
    record.expect(right, "rest", f"group {group.id}: rest is {event.rest}, live {seen.live} → {rest}")
    _decided(record, group, join, "fired")
    record.doing.owed.append((event.target, group.frames))
    for arrival in [a for a in record.arrivals.values() if a.group == group.id and a.target == event.target]:
        withdraw(record, arrival.id)
    if event.rest in ("abandon", "block"):
        group.abandoned |= seen.live
        _part_stragglers(record)
    write(record, record.isolating_frame(group.frames), event.writes)


def _part_stragglers(record: Record) -> None:
    """What abandoned branches hold at node joins meets only its own kind from now on."""
    for arrival in [a for a in record.arrivals.values() if a.group is None]:
        item = record.join_item(arrival.frames)
        if item != arrival.item:
            record.node_joins[arrival.target, arrival.item].remove(arrival.id)
            arrival.item = item
            record.node_joins.setdefault((arrival.target, item), []).append(arrival.id)


def on_failed(record: Record, event: e.JoinFailed) -> None:
    """A fan-in has failed: for a reason that holds."""
    if event.group is None:
        reopening.note_failure(record, event)
        return
    group = record.groups[event.group]
    join = group.join_at(event.target)
    if join is None or join.status != "open":
        record.complain(
            "fires once", f"group {group.id} at {event.target} fails and is {join.status if join else None}"
        )
        return
    seen = tally(record, group, join)
    action, kinds = verdict(record, group, join, seen)
    kind = event.error.kind
    overruled = is_overruled(record, group, join)
    right = (
        kind in kinds
        or (kind in LATE_KINDS and (action == "fire" or overruled))
        or (kind == "SYNC_TIMEOUT" and overruled)
    )
    text = f"group {group.id} at {event.target} fails {kind} with {seen}, failed {group.failed}"
    record.expect(right, "quorum", f"{text}: should {action} {set(kinds)}")
    _decided(record, group, join, "failed")
    reopening.note_failure(record, event)


def on_dead(record: Record, event: e.JoinDead) -> None:
    """A join nobody can reach any more."""
    group = record.groups[event.group or 0]
    join = group.join_at(event.target)
    if join is None or join.status != "open":
        record.complain("fires once", f"group {group.id} at {event.target} dies and is not open")
        return
    seen = tally(record, group, join)
    action, _ = verdict(record, group, join, seen)
    allowed = action == "dead" or is_overruled(record, group, join) or _went_along(record, group)
    record.expect(allowed, "quorum", f"group {group.id} at {event.target} dies with {seen}, should {action}")
    _decided(record, group, join, "dead")
    join.because = event.because
    for arrival in [a for a in record.arrivals.values() if a.group == group.id and a.target == event.target]:
        withdraw(record, arrival.id)


def _went_along(record: Record, group: Group) -> bool:
    """Whether a branch around the group was withdrawn in this commit, with everything that was opened in it."""
    around = {outer for outer, _ in group.frames}
    if any(is_cancelled(record, record.groups[outer]) for outer in around):
        return True
    if any(timer.purpose == "sync" and timer.group in around for timer in record.doing.timers_fired):
        return True  # the clock of a join further out: what has not arrived there is timed out
    return bool(around) and any(frame[0] == group.id for frames in record.doing.withdrawn for frame in frames)


def _decided(record: Record, group: Group, join: JoinRecord, status: str) -> None:
    """A join leaves `open` once, and its clock stops."""
    join.status = status
    mine = (group.id, join.site.target)
    record.timers = {i: t for i, t in record.timers.items() if (t.group, t.target) != mine}


def is_blocked(record: Record, group: Group, join: JoinRecord) -> bool:
    """A7: another instance, same item and target, has fired and not yet drained."""
    if join.site.sync.on_early_complete != "block":
        return False
    for other in record.groups.values():
        twin = other.join_at(join.site.target)
        if other is group or twin is None or twin.status != "fired" or twin.site.key != join.site.key:
            continue
        same_item = record.item(other.frames) == record.item(group.frames)
        if same_item and other.abandoned & tally(record, other, twin).live:
            return True
    return False


def settled(record: Record) -> None:
    """After a commit no join may be left that has something to do."""
    if record.status != "running":
        return
    for group in record.groups.values():
        for join in group.joins:
            if join.status != "open":
                continue
            seen = tally(record, group, join)
            action, kinds = verdict(record, group, join, seen)
            if action == "wait" or (action == "fire" and is_blocked(record, group, join)):
                continue
            text = f"group {group.id} at {join.site.target} waits with {seen}, failed {group.failed} of {group.total}"
            record.complain("join asleep", f"{text}: should {action} {set(kinds) or ''}")

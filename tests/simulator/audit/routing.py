"""Where tokens come from and go to: conservation, tiers, frames, limits (2.2, 2.3).

Every visit has exactly one reason to exist: the run's start, a transition out of a visit that ended just now, a
join's promise, or a compensation. Every promise is kept in the commit that made it. A visit that ended successfully
has started all unconditional transitions of one tier, or none where that is allowed.
"""

from __future__ import annotations

from tests.simulator.audit.record import Record, Visit
from tests.simulator.audit.tally import is_abandoned
from treadle.model import events as e
from treadle.model.definition import Transition
from treadle.model.ids import Frames


def on_created(record: Record, event: e.TokenCreated) -> None:
    """Why is there a new visit?"""
    if event.record is not None:
        record.expect(record.undo.get(event.record) == "running", "saga", f"a token undoes record {event.record}")
        return
    for name, count in (event.loops or {}).items():
        limit = record.transition(name).loop_max_iterations or 0
        record.expect(count <= limit, "loop", f"{name} is taken for the {count}th time, limit {limit}")
    if event.via is None:
        if (event.node, event.frames) in record.doing.jumps:
            record.doing.jumps.remove((event.node, event.frames))
            return
        early = record.seq <= record.began + 3 + len(record.chart.workflow.start)
        started = early and event.node in record.chart.workflow.start
        record.expect(started, "conservation", f"visit {event.token} of {event.node} comes from nowhere")
        return
    promise = (event.node, event.frames)
    if promise in record.doing.owed:
        record.doing.owed.remove(promise)
        return
    _follow(record, event, record.transition(event.via))


def _follow(record: Record, event: e.TokenCreated, t: Transition) -> None:
    """A plain hop."""
    record.expect(t.to == event.node, "conservation", f"{t.id} leads to {t.to}, the visit is at {event.node}")
    origin = record.visits.get(event.origin or 0)
    if origin is not None:
        # A lazy group goes on after a migration, though the node that opened it has another name there.
        gone = origin.node not in record.chart.workflow.nodes
        record.expect(
            gone or origin.node == t.from_, "conservation", f"{t.id} leaves {t.from_}, its origin was at {origin.node}"
        )
        _check_frames(record, origin.frames, event.frames, f"visit {event.token} of {event.node}")
        record.doing.fired.setdefault(origin.id, []).append(t.id)
    else:
        record.expect(event.last_error is not None, "conservation", f"visit {event.token} has no origin and no error")
    site = record.chart.site_of(t.id)
    if site is not None:
        inside = [group for group, _ in event.frames if site.key in record.groups[group].names]
        record.expect(not inside, "conservation", f"visit {event.token} went past the join of {site.key}")
    elif record.node(t.to).join is not None:
        record.complain("conservation", f"visit {event.token} went past the join of node {t.to}")


def _check_frames(record: Record, outer: Frames, frames: Frames, who: str) -> None:
    """Ordinary hops inherit the stack; a fan-out puts the groups it opens on top."""
    same = frames[: len(outer)] == outer
    mine = all(record.groups[group].frames[: len(outer)] == outer for group, _ in frames[len(outer) :])
    record.expect(same and mine, "frames", f"{who} has {frames}, its origin {outer}")


def on_arrived(record: Record, event: e.JoinArrived) -> None:
    """An arrival is a hop, too. A join's continuation may itself be an arrival, at its target's own join."""
    promise = (event.target, event.frames)
    if event.group is None and promise in record.doing.owed:
        record.doing.owed.remove(promise)
        return
    origin = record.visits.get(event.token)
    if origin is not None:
        t = record.transition(event.via)
        record.expect(
            origin.node == t.from_, "conservation", f"{t.id} leaves {t.from_}, {origin.id} is at {origin.node}"
        )
        _check_frames(record, origin.frames, event.frames, f"arrival {event.arrival}")
        record.doing.fired.setdefault(origin.id, []).append(t.id)


def on_opened(record: Record, event: e.GroupOpened) -> None:
    """A group is as large as its transitions say."""
    fired = record.doing.fired.setdefault(event.origin, [])
    fired += [t for t in event.transitions if t not in fired]
    ts = [record.transition(t) for t in event.transitions]
    if event.names == [f"node:{event.node}"]:
        record.expect(event.total == len(ts), "arity", f"fork of {event.node} has {event.total} branches of {len(ts)}")
    elif all(t.foreach is None and t.spawn_from is None for t in ts):
        count = sum(t.spawn_count or 1 for t in ts)
        record.expect(event.total == count, "arity", f"group {event.group} has {event.total} branches, not {count}")
    elif event.items is not None and not any(t.foreach is None for t in ts):
        record.expect(event.total == len(event.items), "arity", f"group {event.group}: {len(event.items)} items")
    limit = record.chart.workflow.limits.max_spawn_count * len(ts)
    record.expect(event.total <= limit, "limits", f"group {event.group} of {event.total} exceeds max_spawn_count")


def settled(record: Record) -> None:
    """After a commit: promises kept, limits held, tiers obeyed, lazy groups lazy."""
    if record.status in ("running", "paused"):
        for token in record.doing.ended:
            _check_tier(record, record.visits[token])
    if record.status == "running":
        for target, frames in record.doing.owed:
            record.complain("conservation", f"a join promised a visit of {target} in {frames}; there is none")
        _check_lazy(record)
    limit = record.chart.workflow.limits.max_tokens_per_run
    record.expect(record.forward_visits <= limit, "limits", f"{record.forward_visits} visits exceed {limit}")


def _check_tier(record: Record, visit: Visit) -> None:
    if visit.state not in ("completed", "waiting") or visit.compensation or visit.routed:
        return
    visit.routed = True
    node = record.node(visit.node)
    taken = [record.transition(t) for t in record.doing.fired.get(visit.id, ())]
    triggered = [t for t in taken if t.trigger is not None]
    routed = [t for t in taken if t.trigger is None]
    ways = [t for t in record.chart.out[visit.node] if t.trigger is None and t.on != "failure"]
    if not routed:
        undone = any(t.cancels is not None for t in ways)  # what it cancels may take its own branch along
        allowed = not ways or triggered or undone or node.on_no_match == "end" or visit.state == "waiting"
        record.expect(bool(allowed), "routing", f"visit {visit.id} of {visit.node} ended and started nothing")
        return
    tiers = {t.priority for t in routed}
    record.expect(len(tiers) == 1, "routing", f"visit {visit.id} of {visit.node} started several tiers: {tiers}")
    record.expect(
        all(t in ways for t in routed), "routing", f"visit {visit.id} took {[t.id for t in routed]} on success"
    )
    if node.fan_out == "first_match":
        record.expect(
            len({t.id for t in routed}) == 1, "routing", f"visit {visit.id} of {visit.node} took several ways"
        )
        return
    for t in ways:
        if t.priority in tiers and t.condition is None and t.loop_max_iterations is None:
            record.expect(t in routed, "routing", f"visit {visit.id} of {visit.node} did not take {t.id}")


def _check_lazy(record: Record) -> None:
    """At most max_in_flight. Not asked where a node's own join may hold branches back: what it holds is not in flight,
    and may go on in its branch all the same."""
    if any(node.join is not None for node in record.chart.workflow.nodes.values()):
        return
    for group in record.groups.values():
        if group.max_in_flight is None:
            continue
        flying = {
            index
            for visit in record.live_visits()
            if not visit.held
            for place, (identity, index) in enumerate(visit.frames)
            if identity == group.id and not is_abandoned(record, visit.frames[place + 1 :])
        } - group.revived
        text = f"group {group.id} has {len(flying)} branches in flight, max_in_flight is {group.max_in_flight}"
        record.expect(len(flying) <= group.max_in_flight, "lazy", text)

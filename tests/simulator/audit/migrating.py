"""Another version, checked (6.5): a migrated run satisfies the new graph.

The record gets the names of the other version. From then on every other rule goes by that one's chart; here it is
checked that everything the run stands on has its place in it.
"""

from __future__ import annotations

from msgspec.structs import replace

from tests.simulator.audit.record import Group, JoinRecord, Record
from treadle.model import commands as c
from treadle.model import events as e

MIGRATABLE = ("queued", "running", "paused", "failed")


def on_migrated(record: Record, event: e.RunMigrated) -> None:
    """Asked for, from the version it has, while it can still move."""
    cause = record.doing.cause
    if isinstance(cause, c.ForkRun):
        record.expect(cause.changes.version == event.to, "migrated", f"to {event.to} by {cause}")
    else:
        told = isinstance(cause, c.MigrateRun) and (cause.to, cause.nodes) == (event.to, event.nodes)
        record.expect(told and not getattr(cause, "dry_run", True), "migrated", f"to {event.to} by {cause}")
        record.expect(record.status in MIGRATABLE, "migrated", f"a run is migrated that is {record.status}")
    record.expect(event.from_ == record.version, "migrated", f"from {event.from_}, it has version {record.version}")
    _check_places(record, event)


def _check_places(record: Record, event: e.RunMigrated) -> None:
    """Whoever is somewhere is somewhere in the new graph, too."""
    new = record.chart_of(event.to)
    nodes, transitions = new.workflow.nodes, new.transitions
    for visit in record.visits.values():
        stands = (visit.live and not visit.held) or visit.failure or visit.because
        ref = event.nodes.get(visit.node, visit.node)
        if stands and not visit.compensation:
            record.expect(ref in nodes, "migrated", f"visit {visit.id} is at {ref}, which version {event.to} has not")
            if ref in nodes and visit.live:
                before, after = _kind(record.node(visit.node)), _kind(nodes[ref])
                fits = visit.reason in (None, "mutex", "timer") or before == after
                record.expect(fits, "migrated", f"visit {visit.id} waits at {ref}: it was {before}, it is {after}")
    for arrival in record.arrivals.values():
        target = event.nodes.get(arrival.target, arrival.target)
        joins = {t.to for t in new.workflow.transitions if t.synchronization is not None}
        joins |= {ref for ref, node in nodes.items() if node.join is not None}
        record.expect(target in joins, "migrated", f"arrival {arrival.id} waits at {target}, where no join is")
    for group in record.groups.values():
        if any(frame[0] == group.id for unit in record.units() for frame in unit.frames):
            gone = [t for t in group.transitions if t not in transitions]
            record.expect(not gone, "migrated", f"group {group.id} is under way, and {gone} are gone")


def _kind(node: object) -> str:
    task = getattr(node, "task", None)
    return task.steps[0].action.kind if task is not None else ""


def migrate(record: Record, event: e.RunMigrated) -> None:
    """Everything has its new name."""
    record.chart = record.chart_of(event.to)
    record.version = event.to

    def name(ref: str) -> str:
        return event.nodes.get(ref, ref)

    for visit in record.visits.values():
        visit.node = name(visit.node)
        for arrival in visit.brought:
            arrival.target = name(arrival.target)
    for arrival in (*record.arrivals.values(), *(known for _, known in record.fallen.values())):
        arrival.target = name(arrival.target)
    for group in record.groups.values():
        _regroup(record, group, event)
    for timer in record.timers.values():
        if timer.purpose == "sync" and timer.target is not None:
            timer.target = name(timer.target)
    _drop_clocks(record)
    rounds, record.rounds = record.rounds, {}
    for (target, item), seen in rounds.items():
        record.rounds[name(target), item] = seen
    record.node_joins = {}
    for arrival in sorted((a for a in record.arrivals.values() if a.group is None), key=lambda a: a.id):
        arrival.item = record.join_item(arrival.frames)
        record.node_joins.setdefault((arrival.target, arrival.item), []).append(arrival.id)
    if record.entity is not None and record.entity.node is not None:
        record.entity = replace(record.entity, node=name(record.entity.node))
    if record.budget.since is None:
        record.budget.begin(event.at)


def _regroup(record: Record, group: Group, event: e.RunMigrated) -> None:
    names = []
    for known in group.names:
        kind, _, ref = known.partition(":")
        names.append(f"node:{event.nodes.get(ref, ref)}" if kind == "node" else known)
    group.names, group.node = names, event.nodes.get(group.node, group.node)
    kept = {event.nodes.get(join.site.target, join.site.target): join for join in group.joins}
    group.joins = []
    for site in record.chart.sites_of(names):
        before = kept.get(site.target)
        group.joins.append(JoinRecord(site, before.status, before.because) if before is not None else JoinRecord(site))
    group.isolating = group.isolating or bool(group.joins)


def _drop_clocks(record: Record) -> None:
    """Clocks of triggers and joins that the new version has not."""
    for identity, timer in list(record.timers.items()):
        if timer.purpose == "trigger" and timer.token is not None:
            visit = record.visits[timer.token]
            if not any(t.id == timer.target and t.trigger is not None for t in record.chart.out[visit.node]):
                del record.timers[identity]
                visit.timers.discard(identity)
        elif timer.purpose == "sync" and timer.group is not None:
            join = record.groups[timer.group].join_at(timer.target or "")
            if join is None or join.site.sync.timeout_ms is None:
                del record.timers[identity]

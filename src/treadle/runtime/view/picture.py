"""The picture of a run: what a graph of it shows at its newest event, for readers that have not read its history yet.

Owns how a reading becomes a `RunPicture`. Promises that a canvas draws the same from it as from the whole history; the
canvas's tests compare both. Never keeps the event loop for longer than one slice of visits. Must not read a store.
"""

from __future__ import annotations

import asyncio

from treadle.kernel.group_state import SiteState
from treadle.model.states import RUN_ENDED
from treadle.runtime.view.group_log import GroupRecord, SiteRecord
from treadle.runtime.view.picture_shapes import PictureGroup, PictureSite, PictureVisits, PictureWay, RunPicture
from treadle.runtime.view.readings import RunReading
from treadle.runtime.view.snapshot import snapshot_of
from treadle.runtime.view.visit_log import VisitRecord

SLICE = 2_000
"""Visits written at a time: some 5 ms, for which nothing else happens on the loop."""


async def picture_of(reading: RunReading) -> RunPicture:
    """The picture at the reading's newest event. Nothing may be folded into the reading meanwhile."""
    state, log = reading.state, reading.log
    shown = snapshot_of(state, log.changed)
    begun = reading.began
    given = {visit.visit for visit in shown.visits}
    records = list(log.visits.values())
    return RunPicture(
        run=state.run,
        workflow=state.graph.workflow_name,
        version=state.graph.version,
        seq=state.seq,
        at=log.changed,
        started=begun,
        ended=log.changed if state.status in RUN_ENDED else None,
        status=shown.status,
        input=shown.input,
        output=shown.output,
        error=shown.error,
        scope=shown.scope,
        counts=shown.counts,
        live=shown.visits,
        visits=await _columns(reading, records),
        errors={str(one.visit): one.error for one in records if one.error is not None and one.visit not in given},
        compensating=[one.visit for one in records if one.compensation],
        ways=[
            PictureWay(transition, way.count, way.seq, way.at, way.origin, way.why)
            for transition, way in reading.ways.taken.items()
        ],
        groups=[_group(reading, group) for group in log.groups.values()],
        gates=shown.gates,
        timers=shown.timers,
    )


async def _columns(reading: RunReading, records: list[VisitRecord]) -> PictureVisits:
    nodes: dict[str, int] = {}
    statuses: dict[str, int] = {}
    begun, is_renamed = reading.began, bool(reading.migrated)
    found = PictureVisits(**{name: [] for name in PictureVisits.__struct_fields__})
    for begin in range(0, len(records), SLICE):
        for one in records[begin : begin + SLICE]:
            spent = one.spent
            found.visit.append(one.visit)
            node = reading.node_of(one) if is_renamed else one.node
            found.node.append(nodes.setdefault(node, len(nodes)))
            found.status.append(statuses.setdefault(one.status.value, len(statuses)))
            found.frames.append([list(frame) for frame in one.frames])
            found.attempts.append(one.attempts)
            found.created.append(one.created - begun)
            found.created_seq.append(one.created_seq)
            found.since.append(one.since - begun)
            found.queue_ms.append(spent.queue_ms)
            found.wait_ms.append(spent.wait_ms)
            found.run_ms.append(spent.run_ms)
            found.held_ms.append(spent.held_ms)
            found.held.append(int(one.visit in reading.ways.held))
        await asyncio.sleep(0)
    found.nodes.extend(nodes)
    found.statuses.extend(statuses)
    return found


def _group(reading: RunReading, record: GroupRecord) -> PictureGroup:
    """A group that the kernel still has is asked for what it knows; of one that is over the log knows all."""
    live = reading.state.groups.get(record.group)
    sites = {} if live is None else {site.target: site for site in live.sites}
    return PictureGroup(
        group=record.group,
        names=list(record.known_as if live is None else live.names),
        node=record.node,
        path=record.path,
        origin=record.origin,
        frames=[list(frame) for frame in record.frames],
        transitions=list(record.transitions if live is None else live.transitions),
        total=record.total,
        begun=_begun(record),
        open=record.open,
        withdrawn=record.withdrawn,
        opened=record.opened,
        opened_seq=record.opened_seq,
        failed=sorted(record.failed),
        sites=[
            _site(record.sites.get(target, SiteRecord(target)), sites.get(target))
            for target in dict.fromkeys([*record.sites, *sites])
        ],
    )


def _begun(record: GroupRecord) -> int:
    """Branches of a fork into different transitions begin all at once; others one by one."""
    at_once = not record.replicated and record.known_as[:1] and record.known_as[0].startswith("node:")
    return record.total if at_once else len(record.began)


def _site(record: SiteRecord, live: SiteState | None) -> PictureSite:
    if live is None:
        return PictureSite(record.target, record.status, None, record.met, [])
    waiting = sorted(live.waiting) if live.status == "open" else []
    return PictureSite(record.target, live.status, live.timer, record.met, waiting)

"""Groups as rows, and one group with a page of its branches. Pure.

Owns the order of branches: those that had failed when the walk began, then the others, both by index. So a walk over
several pages neither repeats nor skips a branch, whatever happens meanwhile. A page of 100,000 branches costs what the
page costs; only the visits of its branches are collected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from treadle.model.errors import Error
from treadle.runtime.view.group_log import GroupRecord, SiteRecord
from treadle.runtime.view.joins import needed_of, strategy_words
from treadle.runtime.view.readings import RunReading
from treadle.runtime.view.shapes import BranchRow, GroupDetail, GroupRow, JoinRow
from treadle.runtime.view.visit_log import VisitRecord

Json = Any


def row_of_group(reading: RunReading, record: GroupRecord) -> GroupRow:
    """A group as a row."""
    failed = len(record.failed)
    arrived = sum(1 for branch in record.arrived if branch not in record.failed)
    live = sum(1 for branch in record.live if branch not in record.failed and branch not in record.arrived)
    begun = record.began.count(1)
    pending = 0 if record.withdrawn else record.total - begun
    missing = live + pending
    return GroupRow(
        group=record.group,
        names=record.names,
        node=record.node,
        path=record.path,
        origin=record.origin,
        open=record.open,
        total=record.total,
        arrived=arrived,
        failed=failed,
        live=live,
        missing=missing,
        ended=record.total - arrived - failed - missing,
        opened=record.opened,
        joins=_joins(reading, record),
    )


def _joins(reading: RunReading, record: GroupRecord) -> list[JoinRow]:
    state = reading.state
    group = state.groups.get(record.group)
    names = group.names if group is not None else _keys(reading, record)
    sites = {site.target.ref: site for site in state.graph.sites_of(names)}
    timers = {site.target: site.timer for site in group.sites} if group is not None else {}
    found = []
    for target in dict.fromkeys([*sites, *record.sites]):
        kept = record.sites.get(target, SiteRecord(target))
        sync = sites[target].sync if target in sites else None
        timer = timers.get(target)
        due = state.timers[timer].due if timer is not None and timer in state.timers else None
        found.append(
            JoinRow(
                node=target,
                status=kept.status,
                arrivals=kept.arrivals,
                needed=needed_of(sync.strategy, record.total) if sync is not None else None,
                strategy=strategy_words(sync) if sync is not None else "",
                until=due,
                decided=kept.decided,
                why=kept.why,
                error=kept.error,
            )
        )
    return found


def _keys(reading: RunReading, record: GroupRecord) -> list[str]:
    return [reading.state.graph.group_key(name) for name in record.names]


def branches_of(record: GroupRecord, seq: int, after: int, limit: int) -> tuple[list[int], int | None]:
    """A page of branch indexes from position `after` on, and where the next begins. `seq`: the event at which the walk
    began."""
    failed = record.failed_at(seq)
    end = min(after + limit, record.total)
    page = failed[after:end]
    if len(page) < end - after:
        page += _others(failed, max(after - len(failed), 0), end - after - len(page))
    return page, end if end < record.total else None


def _others(failed: list[int], skip: int, count: int) -> list[int]:
    """Some branches that are not among the failed ones: `skip` of them are passed over."""
    found: list[int] = []
    branch, left = skip, set(failed)
    for each in failed:  # the branch at position `skip` among the others: every failed one before it moves it on
        if each <= branch:
            branch += 1
    while len(found) < count:
        if branch not in left:
            found.append(branch)
        branch += 1
    return found


def detail_of_group(
    reading: RunReading,
    record: GroupRecord,
    page: list[int],
    following: tuple[int, int] | None,
    items: Mapping[int, Json],
) -> GroupDetail:
    """A group with a page of its branches. `items`: branch → its item."""
    visits = _visits_of(reading, record, page)
    rows = [_branch(record, branch, items.get(branch), visits.get(branch, [])) for branch in page]
    row = row_of_group(reading, record)
    return GroupDetail(**msgspec.structs.asdict(row), branches=rows, next=following)


def _visits_of(reading: RunReading, record: GroupRecord, page: list[int]) -> dict[int, list[VisitRecord]]:
    """The visits of some branches. A branch's first visit is known; the rest follow it in the numbering."""
    wanted = set(page)
    found: dict[int, list[VisitRecord]] = {}
    begun = [record.first[branch] for branch in page if branch < len(record.first) and record.first[branch]]
    if not begun:
        return found
    first = min(begun)
    for visit in reading.log.visits.values():
        if visit.visit < first or visit.compensation:
            continue
        for group, branch in visit.frames:
            if group == record.group and branch in wanted:
                found.setdefault(branch, []).append(visit)
    return found


def _branch(record: GroupRecord, branch: int, item: Json, visits: list[VisitRecord]) -> BranchRow:
    error: Error | None = record.failed.get(branch)
    return BranchRow(
        branch=branch,
        status=record.status(branch),
        item=item,
        visits=[visit.visit for visit in visits],
        node=visits[-1].node if visits else None,
        error=error,
    )

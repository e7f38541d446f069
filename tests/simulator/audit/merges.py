"""What a firing join writes, recomputed from what its branches wrote (1.7, 2.4)."""

from __future__ import annotations

import json
from typing import Any

from tests.simulator.audit.record import Arrival, Group, JoinRecord, Record
from treadle.model import events as e
from treadle.model.ids import Frames

Json = Any


def check_scope(record: Record, event: e.ContextUpdated) -> None:
    """Reads fall through, writes stay: a token writes its own branch's overlay and nothing else."""
    visit = record.visits.get(event.token or 0)
    if visit is not None and event.armed is None:
        frame = record.isolating_frame(visit.frames)
        record.expect(event.scope == frame, "scope", f"visit {visit.id} writes {event.scope}, its overlay is {frame}")


def check_contribution(record: Record, event: e.JoinArrived) -> None:
    """An arrival brings what its lineage wrote since the group was opened."""
    site = record.chart.site_of(event.via)
    merge = site.sync.merge if site is not None else None
    if event.group is None or event.absorbed or merge is None or merge.source.count(".") < 3:
        return
    name = merge.source.rsplit(".", 1)[1]
    expected = _branch_value(record, event.frames, event.group, name)
    record.expect(event.value == expected, "merge", f"arrival {event.arrival} brings {event.value}, wrote {expected}")


def _branch_value(record: Record, frames: Frames, group: int, name: str) -> Json:
    place = next(place for place, frame in enumerate(frames) if frame[0] == group)
    for root in ("state", "output"):
        for frame in reversed(frames[place:]):
            values = record.scopes.get(frame, {})
            if (root, name) in values:
                return values[root, name]
    return None


def check_merge(record: Record, event: e.JoinFired, group: Group, join: JoinRecord, arrived: set[int]) -> None:
    """The merged value is that of the strategy, over contributions by branch index, then path."""
    merge = join.site.sync.merge
    if merge is None:
        return
    parts = [(_branch(a, group), a.value) for a in _in_order(record, group, join) if _branch(a, group) in arrived]
    errors = _errors(join, group)
    if errors:
        return  # their texts are the kernel's; what they are was checked when they failed
    expected = STRATEGIES[merge.strategy](parts)
    target = tuple(merge.target.removeprefix("$.").split("."))
    written = [value for path, value in event.writes if tuple(path) == target]
    record.expect(
        written == [expected], "merge", f"group {group.id} at {event.target} writes {written}, expected {expected}"
    )


def _in_order(record: Record, group: Group, join: JoinRecord) -> list[Arrival]:
    held = [a for a in record.arrivals.values() if a.group == group.id and a.target == join.site.target]
    return sorted(held, key=lambda a: (_branch(a, group), _path(a.path)))


def _path(path: str) -> list[tuple[bool, int, str]]:
    return [(not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in path.split(".")]


def _branch(arrival: Arrival, group: Group) -> int:
    return next(index for identity, index in arrival.frames if identity == group.id)


def _errors(join: JoinRecord, group: Group) -> bool:
    sync = join.site.sync
    return bool(group.failed) and sync.on_branch_failure == "include_errors" and sync.strategy.kind in ("all", "cel")


def _vote(parts: list[tuple[int, Json]]) -> Json:
    texts = [json.dumps(value, sort_keys=True) for _, value in parts]
    order = list(dict.fromkeys(texts))
    counts = [{"value": json.loads(text), "count": texts.count(text)} for text in order]
    best = max(counts, key=lambda entry: entry["count"])["value"] if counts else None
    return {"value": best, "counts": counts, "total": len(parts)}


STRATEGIES = {
    "append": lambda parts: [value for _, value in parts],
    "concat": lambda parts: [item for _, value in parts for item in value or ()],
    "merge_object": lambda parts: {key: item for _, value in parts for key, item in (value or {}).items()},
    "keyed_by_branch": lambda parts: {str(index): value for index, value in parts},
    "last_wins": lambda parts: parts[-1][1] if parts else None,
    "vote": _vote,
}

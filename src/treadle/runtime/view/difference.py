"""The difference between two states of a run, shown as data. Pure.

Owns the comparison. Promises to be complete: applied to the first state, the changes give the second. Lists inside the
run's data are compared as a whole, because a position says nothing about which element it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from treadle.runtime.view.snapshot_shapes import (
    Changed,
    DataChange,
    FieldChange,
    StateDifference,
    StateScope,
    StateView,
)

Json = Any

_RUN_FIELDS = ("status", "output", "error")
_ROOTS = ("state", "output", "nodes")


def difference_of(before: StateView, after: StateView) -> StateDifference:
    """What changed from one state to the other."""
    own = [
        FieldChange(after.run, name, _plain(getattr(before, name)), _plain(getattr(after, name)))
        for name in _RUN_FIELDS
        if getattr(before, name) != getattr(after, name)
    ]
    return StateDifference(
        run=after.run,
        begin=before.seq,
        end=after.seq,
        run_fields=own,
        data=_data(before, after),
        visits=changed_of(before.visits, after.visits, "visit"),
        groups=changed_of(before.groups, after.groups, "group"),
        joins=changed_of(before.joins, after.joins, "join"),
        gates=changed_of(before.gates, after.gates, "visit"),
        timers=changed_of(before.timers, after.timers, "timer"),
    )


def changed_of(before: Sequence[Struct], after: Sequence[Struct], key: str) -> Changed:
    """What was added to, removed from and changed in a list of things that one of their fields names."""
    old = {getattr(each, key): each for each in before}
    new = {getattr(each, key): each for each in after}
    changed = [
        FieldChange(str(name), field, _plain(getattr(old[name], field)), _plain(getattr(new[name], field)))
        for name in new
        if name in old and old[name] != new[name]
        for field in new[name].__struct_fields__
        if getattr(old[name], field) != getattr(new[name], field)
    ]
    return Changed(
        [_plain(new[name]) for name in new if name not in old],
        [_plain(old[name]) for name in old if name not in new],
        changed,
    )


def _plain(value: Json) -> Json:
    return msgspec.to_builtins(value)


def _data(before: StateView, after: StateView) -> list[DataChange]:
    old = {(scope.group, scope.branch): scope for scope in (before.scope, *before.branches)}
    new = {(scope.group, scope.branch): scope for scope in (after.scope, *after.branches)}
    found = []
    for place in dict.fromkeys([*old, *new]):
        for pointer, was, now in _scopes(old.get(place), new.get(place)):
            kind = "added" if was is _ABSENT else "removed" if now is _ABSENT else "changed"
            found.append(
                DataChange(
                    pointer,
                    kind,  # type: ignore[arg-type]
                    None if was is _ABSENT else was,
                    None if now is _ABSENT else now,
                    group=place[0],
                    branch=place[1],
                )
            )
    return found


_ABSENT = object()


def _scopes(before: StateScope | None, after: StateScope | None) -> Iterator[tuple[str, Any, Any]]:
    for root in _ROOTS:
        was = getattr(before, root) if before is not None else {}
        now = getattr(after, root) if after is not None else {}
        yield from _values(f"/{root}", was, now)


def _values(place: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    if was is not _ABSENT and now is not _ABSENT and is_equal(was, now):
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            step = str(key).replace("~", "~0").replace("/", "~1")
            yield from _values(f"{place}/{step}", was.get(key, _ABSENT), now.get(key, _ABSENT))
    else:
        yield place, was, now


def is_equal(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1, and 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal(one[key], other[key]) for key in one)
    return bool(one == other)

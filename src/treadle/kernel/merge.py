"""Merge strategies: branch outputs → one value, one function per strategy (1.7). Contributions come sorted by branch
index, then path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

Json = Any
Contribution = tuple[int, Json]
"""(branch index, value)"""


class MergeType(Exception):
    """A contribution does not fit its strategy, so the fan-in fails with MERGE_TYPE."""


def is_error(value: Json) -> bool:
    """Whether a contribution is a failed branch's error object."""
    return isinstance(value, dict) and value.keys() == {"_error"}


def append(parts: list[Contribution]) -> Json:
    return [value for _, value in parts]


def concat(parts: list[Contribution]) -> Json:
    flat: list[Json] = []
    for index, value in parts:
        if isinstance(value, list):
            flat.extend(value)
        elif is_error(value):
            flat.append(value)
        elif value is not None:
            raise MergeType(f"branch {index} contributed {_shown(value)}; concat takes arrays")
    return flat


def merge_object(parts: list[Contribution]) -> Json:
    merged: dict[str, Json] = {}
    for index, value in parts:
        if isinstance(value, dict):
            merged.update(value)
        elif value is not None:
            raise MergeType(f"branch {index} contributed {_shown(value)}; merge_object takes objects")
    return merged


def keyed_by_branch(parts: list[Contribution]) -> Json:
    return {str(index): value for index, value in parts}


def last_wins(parts: list[Contribution]) -> Json:
    return parts[-1][1] if parts else None


def vote(parts: list[Contribution]) -> Json:
    counts: dict[bytes, list[Any]] = {}
    for _, value in parts:
        key = msgspec.json.encode(value, order="deterministic")
        counts.setdefault(key, [value, 0])[1] += 1
    best = max(counts.values(), key=lambda entry: entry[1])[0] if counts else None
    return {
        "value": best,
        "counts": [{"value": value, "count": count} for value, count in counts.values()],
        "total": len(parts),
    }


STRATEGIES: dict[str, Callable[[list[Contribution]], Json]] = {
    "append": append,
    "concat": concat,
    "merge_object": merge_object,
    "keyed_by_branch": keyed_by_branch,
    "last_wins": last_wins,
    "vote": vote,
}


def _shown(value: Json) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else text[:57] + "…"

"""The limit on nesting for values that enter a run from outside. Hostile depth must cost little and break nothing."""

from __future__ import annotations

from typing import Any

DEPTH_MAX = 100
"""Levels of objects and arrays: those that a body over HTTP may have, so that what the service reads a run can take.
Nobody nests data deeper by hand, and recursive code gives up at a few hundred."""
_CONTAINERS = (dict, list)
"""A tuple: `dict | list` is built anew wherever it is written, and every output passes here."""


def is_too_deep(value: Any) -> bool:
    """Whether a JSON value is nested deeper than that; stops looking as soon as it knows."""
    for child in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        if isinstance(child, _CONTAINERS):
            break
    else:
        return False  # the commonest answer first: a flat object, looked through once
    level = [value]
    for _ in range(DEPTH_MAX):
        if not level:
            return False
        below: list[Any] = []
        for container in level:
            children = container.values() if isinstance(container, dict) else container
            below.extend(child for child in children if isinstance(child, _CONTAINERS))
        level = below
    return bool(level)


def too_deep(what: str) -> str:
    """The message about such a value."""
    return f"{what} is nested deeper than {DEPTH_MAX} levels; keep it flatter, or pass it as an artifact"

"""Large values in answers that are read by people: a bounded preview instead, and the whole from an address of its own.

A browser that shows a run must not read 20 MB before it shows the first line. With `value_max` in a query, a value
whose JSON is longer is replaced by `{"$large": {"bytes", "preview"}}`; everything around it stays as it is.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

Json = Any
PREVIEW = 20_000
"""Characters of a value that stand for the whole."""
DEPTH = 3
"""Containers that are opened to find the large value inside: an event, its writes, one write."""

ValueMax = Annotated[
    int,
    Meta(
        ge=1_000,
        description="Values whose JSON has more bytes become `{$large: {bytes, preview}}`. Without it all are whole.",
    ),
]


def without_large(value: Json, most: int | None) -> Json:
    """The value as plain data, large parts replaced."""
    plain = msgspec.to_builtins(value)
    if most is None:
        return plain
    if isinstance(plain, dict):
        return {key: _shortened(part, most, DEPTH) for key, part in plain.items()}
    return _shortened(plain, most, DEPTH)


def _shortened(value: Json, most: int, depth: int) -> Json:
    if not isinstance(value, str | dict | list | tuple):
        return value
    text = msgspec.json.encode(value)
    if len(text) <= most:
        return value
    if depth > 0 and isinstance(value, list | tuple):
        parts = [_shortened(part, most, depth - 1) for part in value]
        if len(msgspec.json.encode(parts)) <= most + PREVIEW * 4:
            return parts
    return {"$large": {"bytes": len(text), "preview": text[:PREVIEW].decode("utf-8", "ignore")}}

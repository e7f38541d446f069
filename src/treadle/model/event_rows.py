"""Events as rows of JSON, and back: the form in which a service and the command line show them.

The store keeps events as arrays; here their fields have names, and those without a value are left out.
"""

from __future__ import annotations

from typing import Any

import msgspec

from treadle.model import events as e

_TYPES: dict[str, type[e.Event]] = {
    kind.__struct_config__.tag: kind  # type: ignore[misc]
    for kind in vars(e).values()
    if isinstance(kind, type) and issubclass(kind, e.Event) and kind is not e.Event
}


def event_row(event: e.Event) -> dict[str, Any]:
    """An event as an object with named fields."""
    row: dict[str, Any] = {"seq": event.seq, "at": event.at, "type": event.type}
    for attribute, name in zip(event.__struct_fields__, event.__struct_encode_fields__, strict=True):
        value = getattr(event, attribute)
        if value is not None and name not in row:
            row[name] = msgspec.to_builtins(value)
    return row


def event_of(row: dict[str, Any]) -> e.Event:
    """The event of a row."""
    kind = _TYPES.get(row["type"]) or e.Custom
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        value = row.get(field.encode_name)
        if value is not None:
            values[field.name] = msgspec.convert(value, field.type)
        elif field.required:
            values[field.name] = None
    return kind(**values)

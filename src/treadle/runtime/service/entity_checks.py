"""The names and values an entity may have. Refusals are CommandRefused(BAD_REQUEST)."""

from __future__ import annotations

from typing import Any

from treadle.actions.plain import NotPlain, plain
from treadle.errors import CommandRefused
from treadle.expression.names import name_problem

Json = Any

TEXT_MAX = 200
"""Characters of a type, id, name or email. They are parts of addresses and of keys in the store."""


def address(type: str, id: str) -> None:
    """Raises CommandRefused(BAD_REQUEST) for a type and id that cannot be an address."""
    for what, text in (("type", type), ("id", id)):
        if not text:
            raise CommandRefused("BAD_REQUEST", f"an entity has a type and an id; the {what} is empty")
        named_text(f"entity's {what}", text)
    if "/" in type:
        raise CommandRefused("BAD_REQUEST", f"an entity's type has no slash; got {type!r}")


def without_null(attributes: dict[str, Json]) -> dict[str, Json]:
    """The attributes of a new record: null means that there is none."""
    return {
        name: without_null(value) if isinstance(value, dict) else value
        for name, value in attributes.items()
        if value is not None
    }


def named_text(what: str, text: str | None) -> None:
    """Refuses a text that cannot be seen or is too long."""
    if text is None:
        return
    problem = name_problem(text)
    if problem is None and len(text) > TEXT_MAX:
        problem = f"has {len(text)} characters; {TEXT_MAX} are allowed"
    if problem is not None:
        raise CommandRefused("BAD_REQUEST", f"the {what} {problem}")


def attributes_of(attributes: Json) -> dict[str, Json]:
    """The attributes as plain JSON."""
    try:
        value = plain(attributes)
    except NotPlain as problem:
        raise CommandRefused("BAD_REQUEST", f"attributes: {problem}") from None
    if not isinstance(value, dict):
        raise CommandRefused("BAD_REQUEST", "attributes are an object")
    return value

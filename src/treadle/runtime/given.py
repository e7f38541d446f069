"""Values people give to a run: input, signals, answers; and the names they give.

Owns the check that values are JSON before anybody decides on them. Converts what has a JSON form (dataclasses, dates,
models) and refuses the rest, naming the place. A name must not hold what cannot be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from treadle.actions.plain import NotPlain, plain
from treadle.errors import CommandRefused
from treadle.expression.names import name_problem
from treadle.model.references import EntityRef
from treadle.runtime.service.entity_checks import address

Json = Any

TAG_MAX = 500
"""Characters of a tag: stores look tags up in an index, and PostgreSQL's takes 2,700 bytes of an entry."""


def given(name: str, value: Json) -> Json:
    """The value as plain JSON. Raises CommandRefused(BAD_REQUEST)."""
    try:
        return plain(value)
    except NotPlain as problem:
        text = str(problem)
        where = f"{name}{text[1:]}" if text.startswith("$") else f"{name}: {text}"
        raise CommandRefused("BAD_REQUEST", where) from None


def named(what: str, text: str | None) -> None:
    """Raises CommandRefused(BAD_REQUEST) for a name with something in it that cannot be seen."""
    problem = name_problem(text) if text is not None else None
    if problem is not None:
        raise CommandRefused("BAD_REQUEST", f"the {what} {problem}")


def named_start(key: str | None, run_id: str | None, tags: Sequence[str], entity: EntityRef | None) -> None:
    """The names somebody gives a run."""
    named("key", key)
    named("run id", run_id)
    for tag in tags:
        named("tag", tag)
        if len(tag) > TAG_MAX:
            raise CommandRefused(
                "BAD_REQUEST", f"the tag {tag[:40]!r}… has {len(tag)} characters; {TAG_MAX} are allowed"
            )
    if entity is not None:
        address(entity.type, entity.id)


def entity_of(given: EntityRef | Mapping[str, Json] | str) -> EntityRef:
    """An entity as people write it: `order/42`, or an object with type, id and perhaps name and attributes. Raises
    CommandRefused(BAD_REQUEST)."""
    if isinstance(given, EntityRef):
        return given
    if not isinstance(given, str):
        try:
            return msgspec.convert(dict(given), EntityRef)
        except (msgspec.ValidationError, TypeError, ValueError) as problem:
            raise CommandRefused("BAD_REQUEST", f"entity: {problem}") from None
    text = given
    type, slash, id = text.partition("/")
    if not (type and slash and id):
        raise CommandRefused("BAD_REQUEST", f"an entity is named TYPE/ID, as order/42; got {text!r}")
    return EntityRef(id, type)

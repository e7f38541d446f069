"""Values people give to a run: input, signals, answers.

Owns the check that they are JSON before anybody decides on them. Converts what has a JSON form (dataclasses, dates,
models) and refuses the rest, naming the place.
"""

from __future__ import annotations

from typing import Any

from treadle.actions.plain import NotPlain, plain
from treadle.errors import CommandRefused

Json = Any


def given(name: str, value: Json) -> Json:
    """The value as plain JSON. Raises CommandRefused(BAD_REQUEST)."""
    try:
        return plain(value)
    except NotPlain as problem:
        text = str(problem)
        where = f"{name}{text[1:]}" if text.startswith("$") else f"{name}: {text}"
        raise CommandRefused("BAD_REQUEST", where) from None

"""Places that an operator writes: target paths of a command, checked (6.4)."""

from __future__ import annotations

from typing import Any

from treadle.errors import ExpressionError
from treadle.expression.sources import target_path
from treadle.kernel.deciding import Refused
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.model.events import Write

Json = Any


def targets(writes: dict[str, Json]) -> list[Write]:
    """The writes of a command. Refused unless every path may be written."""
    if not writes:
        raise Refused("BAD_REQUEST", "nothing is to be written: name at least one path, such as state.x")
    found: list[Write] = []
    for text, value in writes.items():
        try:
            found.append((target_path(text), value))
        except ExpressionError as problem:
            raise Refused("BAD_REQUEST", f"{text!r} cannot be written: {problem}") from None
        if is_too_deep(value):
            raise Refused("BAD_REQUEST", too_deep(f"the value of {text}"))
    return found

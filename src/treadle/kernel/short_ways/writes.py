"""The short way of an output mapping. See the package's docstring."""

from __future__ import annotations

from typing import Any

from treadle.expression.paths import MISSING, Path, get_in
from treadle.model.events import Write

Json = Any


def plucked(plucks: tuple[tuple[Path, Path], ...], output: Json) -> list[Write]:
    """For `GraphNode.plucks`: each target gets what is at one path of the output, null where there is nothing. Full
    rule: `writing.apply_output`, which evaluates each source in a view and tries the writes out."""
    found: list[Write] = []
    for target, path in plucks:
        if len(path) == 1 and type(output) is dict:
            found.append((target, output.get(path[0])))
            continue
        value = get_in(output, path)
        found.append((target, None if value is MISSING else value))
    return found

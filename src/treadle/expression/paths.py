"""Paths: the names of places in JSON data, and the one way to look there.

Owns the syntax of 1.6 and 1.10: `$.state.ideas[0].text`, `$["odd key"]`, `$.a['b']`; the leading `$.` may be
left out. A bare name runs to the next `.`, bracket, quote or blank, so node refs such as `step-1` need no
quoting. Promises that `parse_path(format_path(p)) == p`, and that looking into any JSON value never raises:
what is not there is MISSING.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from treadle.errors import PathSyntax

Path = tuple[str | int, ...]

LENGTH_MAX = 1_024
"""Characters. Longer than any path a person writes; short enough that a hostile one costs nothing."""
DEPTH_MAX = 32
"""Steps. The nesting that conditions and CEL allow too, so a limit met in one place is met in all."""


class _Missing:
    """The type of MISSING. Copies and pickles are the same object, so `is` always works."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The value of a place where nothing is; unlike None, which somebody wrote."""

_BARE = r"[^\s.\[\]\"']+"
_NAME = re.compile(_BARE)
_STEP = re.compile(
    rf"""\.(?P<name>{_BARE})
      | \[(?P<index>0|[1-9][0-9]{{0,8}})\]
      | \[(?P<double>"(?:[^"\\]|\\.)*")\]
      | \[(?P<single>'(?:[^'\\]|\\.)*')\]""",
    re.VERBOSE,
)


def parse_path(text: str) -> Path:
    """The steps of a path; `$` alone is the empty path, the whole of what can be seen."""
    if len(text) > LENGTH_MAX:
        raise PathSyntax(f"a path has at most {LENGTH_MAX} characters", text, LENGTH_MAX)
    steps, position = _first_step(text)
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise PathSyntax('expected .name, [index] or ["key"]', text, position)
        steps.append(_step(match, text))
        position = match.end()
    if len(steps) > DEPTH_MAX:
        raise PathSyntax(f"a path has at most {DEPTH_MAX} steps", text, position)
    return tuple(steps)


def _first_step(text: str) -> tuple[list[str | int], int]:
    if not text:
        raise PathSyntax("a path is not empty", text, 0)
    if text[0] in "$[":
        return [], int(text[0] == "$")
    match = _NAME.match(text)
    if match is None:
        raise PathSyntax("expected $ or a name", text, 0)
    return [match[0]], match.end()


def _step(match: re.Match[str], text: str) -> str | int:
    if match["name"] is not None:
        return match["name"]
    if match["index"] is not None:
        return int(match["index"])
    quoted = match["double"] or _in_double_quotes(match["single"])
    try:
        return str(json.loads(quoted, strict=False))
    except ValueError as error:
        raise PathSyntax("a quoted key escapes as JSON does", text, match.start() + 1) from error


def _in_double_quotes(single: str) -> str:
    requoted = {'"': '\\"', "\\'": "'"}
    return '"' + re.sub(r'\\.|"', lambda match: requoted.get(match[0], match[0]), single[1:-1]) + '"'


def format_path(path: Path) -> str:
    """The canonical text of a path, with its leading `$`."""
    return "$" + "".join(map(_format_step, path))


def _format_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _NAME.fullmatch(step) else f"[{json.dumps(step)}]"


def get_in(value: Any, path: Path) -> Any:
    """The value at `path` inside `value`, or MISSING. Names look into objects, indexes into arrays."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step, MISSING)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return MISSING
    return value

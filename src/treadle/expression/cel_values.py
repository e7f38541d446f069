"""The border between Python and the CEL library: what may go in, what may come out, what its errors mean.

Going in: the library cuts strings at a NUL character (so "a\\0b" == "a") and aborts on lone surrogates; both
are refused, and so is more data than it can copy in reasonable time. Coming out: errors are values, of type
ERROR, and truthy; NaN and infinity are doubles like any other. Nothing but plain JSON leaves this module.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from cel_expr_python import cel

from treadle.errors import DataTooLarge, EvaluationError

RESULT_MAX = 16 * 1024 * 1024
"""Characters and elements of one result: a loop can name one long string ten thousand times."""

_NUL = b"\\u0000"


def refuse_unreadable(data: dict[str, Any], bytes_max: int) -> None:
    """Raises EvaluationError for data that the library would misread, DataTooLarge for more than `bytes_max`."""
    try:
        encoded = msgspec.json.encode(data)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise EvaluationError(f"the data is not plain JSON: {error}") from None
    if len(encoded) > bytes_max:
        text = f"it reads {len(encoded)} bytes of data; at most {bytes_max} are allowed (setting engine.cel_bytes_max)"
        raise DataTooLarge(text)
    if _NUL in encoded and _has_nul(data):
        raise EvaluationError("the data contains a NUL character")


def _has_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_has_nul(part) for item in value.items() for part in item)
    return isinstance(value, list) and any(map(_has_nul, value))


def plain(result: Any) -> Any:
    """The library's value as Python: elements still wrapped, and the text of an error for an error."""
    try:
        return result.value()
    except TypeError:
        raise EvaluationError("the result is an optional; end it with .orValue(…)") from None


def to_json(result: Any) -> Any:
    """The result of an evaluation as plain JSON. Raises EvaluationError where there is none."""
    if result.type() == cel.Type.ERROR:
        raise EvaluationError(explain(plain(result)))
    return _Converter().convert(result)


class _Converter:
    """Converts within a budget, so that a short expression cannot fill the memory through shared strings."""

    def __init__(self) -> None:
        self._left = RESULT_MAX

    def convert(self, result: Any) -> Any:
        value = plain(result)
        if isinstance(value, list):
            self._spend(len(value))
            return [self.convert(item) for item in value]
        if isinstance(value, dict):
            self._spend(len(value))
            named = {_key(key): item for key, item in value.items()}
            return {key: self.convert(named[key]) for key in sorted(named)}  # the library's order differs by process
        return self._scalar(value)

    def _scalar(self, value: Any) -> Any:
        if isinstance(value, str):
            self._spend(len(value))
        elif isinstance(value, float) and not math.isfinite(value):
            raise EvaluationError("the result is not a finite number")
        elif isinstance(value, datetime):
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        elif isinstance(value, timedelta):
            return f"{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "s"
        elif value is not None and not isinstance(value, bool | int | float):
            raise EvaluationError("the result is bytes or a type, which JSON cannot hold")
        return value

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise DataTooLarge(f"the result is larger than {RESULT_MAX} characters")


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    raise EvaluationError(f"the key {key!r} of a map is not a string")


_IN_OUR_WORDS = (
    (re.compile(r".*Key not found in map : (.*)"), r"there is no key \1"),
    (re.compile(r'.*No value with name "(.*)" found in Activation'), r"\1 has no value here"),
    (
        re.compile(r".*No matching overloads found : <jump_condition>"),
        "the condition of ?: is not true or false",
    ),
    (re.compile(r".*No matching overloads found : (.*)"), r"unlike types: \1"),
    (
        re.compile(r".*Applying SELECT to non-message type"),
        "a field is read from something that is not an object",
    ),
    (re.compile(r".*Index error: index=(-?\d+) size=(\d+)"), r"there is no element \1 in an array of \2"),
    (re.compile(r".*Iteration budget exceeded.*"), "it loops more than 10000 times"),
    (re.compile(r"[A-Z_]+: (.*?)(?: \[[A-Z_]+\])?"), r"\1"),
)


def explain(error: str) -> str:
    """The library's message without its status codes; unknown ones pass as they are."""
    for pattern, ours in _IN_OUR_WORDS:
        if match := pattern.fullmatch(error):
            return match.expand(ours)
    return error

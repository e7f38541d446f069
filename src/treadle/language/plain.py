"""Plain values: the JSON values of bounded size that a document may contain, in any dialect.

Owns the numbers and strings that are refused everywhere, and the check of values that another program has parsed.
"""

from __future__ import annotations

import math
import re
from typing import Any

from treadle.language.limits import Bounds
from treadle.language.problem import Path, path_text
from treadle.language.source import At, Refusal

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


def refuse_text(text: str, at: At | None = None, path: Path = ()) -> None:
    """Control characters and lone surrogates cannot be stored or shown."""
    bad = _CONTROL.search(text)
    if bad is not None:
        raise Refusal(f"the text contains the character U+{ord(bad.group()):04X}, which is not allowed", at, path)


def refuse_number(value: int | float, at: At | None = None, path: Path = ()) -> None:
    """Numbers that JSON, CEL or a database could not hold."""
    if isinstance(value, float) and not math.isfinite(value):
        raise Refusal("NaN and infinity are not JSON numbers", at, path)
    if isinstance(value, int) and not _INT_MIN <= value <= _INT_MAX:
        raise Refusal("the number does not fit into 64 bits", at, path, hint="write it as text, in quotes")


def number_from(text: str, at: At, bounds: Bounds) -> int | float:
    """A number from JSON text."""
    if len(text) > bounds.number_digits:
        raise Refusal(f"a number of {len(text)} digits", at, hint="write it as text, in quotes")
    value = float(text) if any(mark in text for mark in ".eE") else int(text)
    refuse_number(value, at)
    return value


def refuse_value(value: Any, bounds: Bounds) -> None:
    """Refuses what is not plain, bounded JSON. Cycles end at the depth bound, shared parts count each time
    they occur.
    """
    _Check(bounds).visit(value, ())


class _Check:
    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.values = 0
        self.characters = 0

    def visit(self, value: Any, path: Path) -> None:
        self._count(path)
        if isinstance(value, str):
            self._text(value, path)
        elif isinstance(value, dict | list):
            if len(path) >= self.bounds.depth:
                raise Refusal(f"nested more than {self.bounds.depth} levels deep", path=path)
            self._parts(value, path)
        elif isinstance(value, int | float):
            refuse_number(value, path=path)
        elif value is not None:
            raise Refusal(f"{type(value).__name__} is not a JSON value", path=path)

    def _parts(self, value: dict[Any, Any] | list[Any], path: Path) -> None:
        if isinstance(value, list):
            for index, part in enumerate(value):
                self.visit(part, (*path, index))
            return
        for key, part in value.items():
            if not isinstance(key, str):
                raise Refusal(f"the key {key!r} in {path_text(path) or 'the document'} is not text", path=path)
            self._count(path)
            self._text(key, path)
            self.visit(part, (*path, key))

    def _count(self, path: Path) -> None:
        self.values += 1
        if self.values > self.bounds.values:
            raise Refusal(f"more than {self.bounds.values} values", path=path)

    def _text(self, text: str, path: Path) -> None:
        self.characters += len(text)
        if self.characters > self.bounds.text_bytes:
            raise Refusal(f"more than {self.bounds.text_bytes} characters of text", path=path)
        refuse_text(text, path=path)

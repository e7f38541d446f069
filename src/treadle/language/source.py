"""A document as it was written: a plain JSON value and, when it came from text, the line and column of
everything in it.

Owns positions. Promises that a position is found for every path, if need be that of the nearest enclosing
value. Must not know what a workflow is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from treadle.language.problem import Path

Json = Any

At = int
"""A place in a text, packed into one number: every value of a document has one, and most are never shown."""
COLUMN_BITS = 32
"""`line << COLUMN_BITS | column`, both 0-based: wider than any line that fits into memory."""


class Spot(NamedTuple):
    """A place in a text as people count, both 1-based."""

    line: int
    column: int


def spot_of(at: At) -> Spot:
    """Line and column of a packed place."""
    return Spot((at >> COLUMN_BITS) + 1, (at & ((1 << COLUMN_BITS) - 1)) + 1)


class Marks:
    """Positions of a map or list: its beginning, its keys, and the marks of its values."""

    __slots__ = ("at", "keys", "parts")

    def __init__(self, at: At, parts: dict[str, Mark] | list[Mark], keys: dict[str, At] | None = None) -> None:
        self.at = at
        self.parts = parts
        self.keys = keys
        """The position of each key; None for a list."""

    def part(self, step: str | int) -> Mark | None:
        """The mark one step down, if there is a value."""
        if isinstance(self.parts, dict):
            return self.parts.get(step) if isinstance(step, str) else None
        return self.parts[step] if isinstance(step, int) and 0 <= step < len(self.parts) else None

    def key(self, step: str | int) -> At | None:
        """The position of a key itself."""
        return self.keys.get(step) if self.keys is not None and isinstance(step, str) else None


Mark = Marks | At
"""Positions of any value; a scalar, or an empty map or list, has only its beginning."""


def find(mark: Mark, path: Path, *, key: bool = False) -> Spot:
    """The position of `path`, or of the nearest value around it; `key=True` asks for the key rather than its value."""
    for depth, step in enumerate(path):
        if isinstance(mark, int):
            break
        if key and depth == len(path) - 1 and (at := mark.key(step)) is not None:
            return spot_of(at)
        part = mark.part(step)
        if part is None:
            break
        mark = part
    return spot_of(mark if isinstance(mark, int) else mark.at)


class Source:
    """One document, or a part of one, ready to be loaded."""

    __slots__ = ("file", "mark", "root", "value")

    def __init__(self, value: Json, file: str, mark: Mark | None = None, root: Path = ()) -> None:
        self.value = value
        self.file = file
        self.mark = mark
        """None when it did not come from text."""
        self.root = root

    def part(self, *path: str | int) -> Source:
        """The value at `path`, still knowing its lines: `source.part("definitions", 0)`."""
        value, mark = self.value, self.mark
        for step in path:
            value = value[step]
            if isinstance(mark, Marks):
                # A value that an alias or a merge brings in has no place of its own: the alias's place is used.
                mark = part if (part := mark.part(step)) is not None else mark.at
        return Source(value, self.file, mark, (*self.root, *path))

    def spot(self, path: Path, *, key: bool = False) -> Spot | None:
        """Line and column of a path below this source, if it came from text."""
        return find(self.mark, path, key=key) if self.mark is not None else None


class Refusal(Exception):
    """A text is not a document: syntax, size, duplicate keys. Raised by readers, caught by `load`, never seen
    outside.
    """

    def __init__(self, message: str, at: At | None = None, path: Path = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.spot = spot_of(at) if at is not None else None
        self.path = path
        self.hint = hint

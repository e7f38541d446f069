"""A document as it was written: a plain JSON value and, when it came from text, the line and column of
everything in it.

Owns positions. Promises that a position is found for every path, if need be that of the nearest enclosing
value. Must not know what a workflow is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from treadle.language.problem import Path

Json = Any


class Spot(NamedTuple):
    """A place in a text, both 1-based."""

    line: int
    column: int


class Marks:
    """Positions of one value: where it begins, where its keys stand, and the marks of what it holds."""

    __slots__ = ("keys", "parts", "spot")

    def __init__(self, spot: Spot) -> None:
        self.spot = spot
        self.keys: dict[str, Spot] = {}
        self.parts: dict[str | int, Marks] = {}

    def find(self, path: Path, *, key: bool = False) -> Spot:
        """Where `path` stands; `key=True` asks for the key itself rather than its value."""
        marks = self
        for depth, step in enumerate(path):
            if key and depth == len(path) - 1 and step in marks.keys:
                return marks.keys[str(step)]
            if step not in marks.parts:
                return marks.keys.get(str(step), marks.spot)
            marks = marks.parts[step]
        return marks.spot


class Source:
    """One document, or a part of one, ready to be loaded."""

    __slots__ = ("file", "marks", "root", "text", "value")

    def __init__(
        self, value: Json, file: str, marks: Marks | None = None, root: Path = (), text: str | None = None
    ) -> None:
        self.value = value
        self.file = file
        self.marks = marks
        self.root = root
        self.text = text

    def part(self, *path: str | int) -> Source:
        """What stands at `path`, still knowing its lines: `source.part("definitions", 0)`."""
        value, marks = self.value, self.marks
        for step in path:
            value = value[step]
            marks = marks.parts.get(step) if marks is not None else None
        return Source(value, self.file, marks, (*self.root, *path), self.text)

    def spot(self, path: Path, *, key: bool = False) -> Spot | None:
        """Line and column of a path below this source, if it came from text."""
        return self.marks.find(path, key=key) if self.marks is not None else None


class Refusal(Exception):
    """A text is not a document: syntax, size, duplicate keys. Raised by readers, caught by `load`, never seen
    outside.
    """

    def __init__(self, message: str, spot: Spot | None = None, path: Path = (), hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.spot = spot
        self.path = path
        self.hint = hint

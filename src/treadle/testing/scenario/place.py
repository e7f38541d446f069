"""A value in a scenario document together with the way to it, so that every complaint names file, line and
key.

Owns the reading of single values: maps with known keys, counts, choices. Promises that a wrong value never
gets past it silently: each reader returns what it says or raises `ScenarioError`. Must not know what the keys
mean.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NoReturn

from treadle.errors import ScenarioError
from treadle.language.problem import nearest, path_text
from treadle.testing.scenario.documents import Document, Path

Json = Any


class ValuePlace:
    """One value. `place.fields(...)` and `place.items()` lead to the places below it."""

    __slots__ = ("document", "path", "value")

    def __init__(self, document: Document, path: Path = (), value: Json = None) -> None:
        self.document = document
        self.path = path
        self.value = value

    @classmethod
    def root(cls, document: Document) -> ValuePlace:
        return cls(document, (), document.value)

    @property
    def line(self) -> int:
        return self.document.spot(self.path).line

    def refuse(self, message: str, *, key: bool = False) -> NoReturn:
        """Complains about this value, or about the key it stands under."""
        spot = self.document.spot(self.path, key=key)
        where = f" at {path_text(self.path)}" if self.path else ""
        raise ScenarioError(f"{self.document.file}:{spot.line}:{spot.column}: {message}{where}")

    def under(self, step: str | int) -> ValuePlace:
        return ValuePlace(self.document, (*self.path, step), self.value[step])

    def map(self) -> dict[str, ValuePlace]:
        """The entries of a map whose keys are free."""
        if not isinstance(self.value, dict):
            self.refuse(f"expected a map, found {kind_of(self.value)}")
        return {key: self.under(key) for key in self.value}

    def fields(self, known: Collection[str], what: str) -> dict[str, ValuePlace]:
        """The entries of a map whose keys are known; `what` names the map in a complaint."""
        entries = self.map()
        for key, place in entries.items():
            if key not in known:
                near = nearest(key, known)
                hint = f"did you mean `{near}`?" if near else f"known: {', '.join(sorted(known))}"
                place.refuse(f"unknown key `{key}` of {what}; {hint}", key=True)
        return entries

    def items(self) -> list[ValuePlace]:
        if not isinstance(self.value, list):
            self.refuse(f"expected a list, found {kind_of(self.value)}")
        return [self.under(index) for index in range(len(self.value))]

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            self.refuse(f"expected a word, found {kind_of(self.value)}")
        return self.value

    def count(self, minimum: int = 0) -> int:
        """A whole number."""
        if not isinstance(self.value, int) or isinstance(self.value, bool) or self.value < minimum:
            self.refuse(f"expected a whole number of at least {minimum}, found {kind_of(self.value)}")
        return self.value

    def amount(self) -> float:
        """A number that is not negative."""
        value = self.value
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
            self.refuse(f"expected a number of at least 0, found {kind_of(value)}")
        return value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            self.refuse(f"expected true or false, found {kind_of(self.value)}")
        return self.value

    def true(self) -> None:
        """A verb without argument is written `verb: true`."""
        if self.value is not True:
            self.refuse(f"expected true, found {kind_of(self.value)}")

    def choice(self, known: Collection[str], what: str) -> str:
        word = self.text()
        if word not in known:
            near = nearest(word, known)
            hint = f"did you mean `{near}`?" if near else f"known: {', '.join(sorted(known))}"
            self.refuse(f"`{word}` is no {what}; {hint}")
        return word


def kind_of(value: Json) -> str:
    """A value in a complaint: what it is, and which one when that is short."""
    match value:
        case dict():
            return "a map"
        case list():
            return "a list"
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case _:
            return repr(value)

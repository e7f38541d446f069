"""Shapes made of other shapes: lists, maps, alternatives, conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.language.reading import Place, Reading
from treadle.language.shapes import BAD, Book, Json, Schema, Shape, Text


class ListOf(Shape):
    """A list; with `one`, a single item may stand for a list of one."""

    def __init__(self, item: Shape, *, one: bool = False, least: int = 0) -> None:
        self.item, self.one, self.least = item, one, least
        self.wants = f"a list of {item.wants}" if isinstance(item, Text) else "a list"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, list):
            if not self.one:
                return self.wrong(value, at, reading)
            single = self.item.read(value, at, reading)
            return BAD if single is BAD else [single]
        if len(value) < self.least:
            return self.wrong(value, at, reading)
        items: list[Any] = []
        for index, part in enumerate(value):
            place = Place((*at.written, index), (*at.canonical, len(items)))
            reading.note(place)
            result = self.item.read(part, place, reading)
            if result is BAD:
                reading.forget(place)
            else:
                items.append(result)
        return items

    def write(self, value: Any) -> Json:
        return [self.item.write(item) for item in value]

    def schema(self, book: Book) -> Schema:
        item = self.item.schema(book)
        several: Schema = {"type": "array", "items": item} | ({"minItems": self.least} if self.least else {})
        return {"anyOf": [item, several]} if self.one else several


class MapOf(Shape):
    """A map from names to one shape."""

    wants = "a map"

    def __init__(self, value: Shape, key: Text | None = None) -> None:
        self.value = value
        self.key = key or Text("a name")

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        results: dict[str, Any] = {}
        for key, part in value.items():
            if self.key.read(key, at.key(key), reading) is not BAD:
                result = self.value.read(part, at.key(key), reading)
                if result is not BAD:
                    results[key] = result
        return results

    def write(self, value: Any) -> Json:
        return {key: self.value.write(part) for key, part in value.items()}

    def schema(self, book: Book) -> Schema:
        return {"type": "object", "additionalProperties": self.value.schema(book)}


class Forms(Shape):
    """Alternatives told apart by their JSON type. `writes` chooses the one that a canonical value is written with."""

    def __init__(self, wants: str, *, writes: Callable[[Any], Shape] | None = None, **forms: Shape) -> None:
        self.wants = wants
        self.forms = forms
        self._writes = writes

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        form = self.forms.get(json_type(value))
        return form.read(value, at, reading) if form is not None else self.wrong(value, at, reading)

    def write(self, value: Any) -> Json:
        return self._writes(value).write(value) if self._writes is not None else value

    def schema(self, book: Book) -> Schema:
        schemas = [form.schema(book) for form in self.forms.values()]
        return {"anyOf": [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]}


def json_type(value: Json) -> str:
    """`text`, `whole`, `number`, `flag`, `map`, `list` or `nothing`."""
    if isinstance(value, bool):
        return "flag"
    names = {str: "text", int: "whole", float: "number", dict: "map", list: "list"}
    return names.get(type(value), "nothing")


class Adapt(Shape):
    """A shape whose canonical value is something else: `into` makes it, `back` undoes it."""

    def __init__(self, inner: Shape, into: Callable[[Any], Any], back: Callable[[Any], Any]) -> None:
        self.inner, self.into, self.back = inner, into, back
        self.wants = inner.wants

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        result = self.inner.read(value, at, reading)
        return BAD if result is BAD else self.into(result)

    def write(self, value: Any) -> Json:
        return self.inner.write(self.back(value))

    def schema(self, book: Book) -> Schema:
        return self.inner.schema(book)

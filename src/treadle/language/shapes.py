"""Shapes: descriptions of the values allowed at one place of a definition. One description has three uses that cannot
drift apart.

    read    author's JSON → canonical value; every mistake becomes a problem, the result is then BAD
    write   canonical value → canonical JSON
    schema  the JSON Schema that editors complete and check with

The grammar of the language is a table of these (`grammar.py`). Shapes know nothing about workflows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from treadle.language.problem import did_you_mean
from treadle.language.reading import Place, Reading

Json = Any
Schema = dict[str, Any]


class Bad:
    """The result of reading a wrong value; its problem has been recorded."""

    def __repr__(self) -> str:
        return "BAD"


BAD: Final = Bad()


class Book:
    """The `$defs` of a schema under construction: each record is described once and referred to."""

    def __init__(self) -> None:
        self.definitions: dict[str, Schema] = {}

    def entry(self, name: str, describe: Callable[[], Schema]) -> Schema:
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = describe()
        return {"$ref": f"#/$defs/{name}"}


class Shape:
    """The shape of free JSON, and the base of all shapes."""

    wants = "a value"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:  # noqa: ARG002
        return value

    def write(self, value: Any) -> Json:
        return value

    def schema(self, book: Book) -> Schema:  # noqa: ARG002
        """The JSON Schema; shapes made of others enter those into the book."""
        return self.describe()

    def describe(self) -> Schema:
        """The JSON Schema of a shape that stands alone."""
        return {}

    def wrong(self, value: Json, at: Place, reading: Reading, hint: str | None = None) -> Bad:
        reading.problem("BAD_VALUE", at, f"expected {self.wants}, found {found(value)}", hint)
        return BAD


ANYTHING = Shape()


def found(value: Json) -> str:
    """The value that was found, in words short enough for one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text `{value if len(value) <= 40 else value[:37] + '…'}`"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "a map" if value else "an empty map"


class Text(Shape):
    """Text, optionally of a pattern."""

    def __init__(self, wants: str = "text", pattern: str | None = None, *, longest: int = 1 << 20) -> None:
        self.wants = wants
        self.pattern = pattern
        self.longest = longest
        self._match = re.compile(rf"(?:{pattern})\Z").match if pattern else None

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, str) or not value.strip() or len(value) > self.longest:
            return self.wrong(value, at, reading)
        if self._match is not None and not self._match(value):
            return self.wrong(value, at, reading)
        return value

    def describe(self) -> Schema:
        return {"type": "string", "minLength": 1} | ({"pattern": f"^(?:{self.pattern})$"} if self.pattern else {})


class AnyText(Shape):
    """Text that may be empty."""

    wants = "text"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        return value if isinstance(value, str) else self.wrong(value, at, reading)

    def describe(self) -> Schema:
        return {"type": "string"}


class WebAddress(Shape):
    """An absolute http or https address. An empty or relative one reaches no server, and its token would wait for
    ever."""

    wants = "an address such as `https://host/path`"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, str) and is_web_address(value):
            return value
        return self.wrong(value, at, reading, self._hint(value))

    def _hint(self, value: Json) -> str | None:
        if not isinstance(value, str) or not value.strip():
            return None
        if _SCHEME.match(value):
            return "only http and https are spoken"
        return "write it in full, or `$.input.…` if a run decides it"

    def describe(self) -> Schema:
        return {"type": "string", "pattern": _WEB_ADDRESS.pattern}


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_WEB_ADDRESS = re.compile(r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]+[^\s]*$")


def is_web_address(text: str) -> bool:
    """Whether it has a scheme we support and a host. The network policy decides where it may lead."""
    return _WEB_ADDRESS.match(text) is not None


class Whole(Shape):
    """A whole number. Out of range is its own problem code where the specification has one."""

    def __init__(self, least: int | None = None, most: int | None = None, *, code: str = "BAD_VALUE") -> None:
        self.least, self.most, self.code = least, most, code
        self.wants = "a whole number"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return self.wrong(value, at, reading, self._hint(value))
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            reading.problem(self.code, at, f"{value} is out of range: it must be {self._range()}")
            return BAD
        return value

    def _hint(self, value: Json) -> str | None:
        digits = isinstance(value, str) and value.strip().removeprefix("-").isdecimal()
        return "write it without quotes" if digits else None

    def _range(self) -> str:
        if self.most is None:
            return f"at least {self.least}"
        return f"at most {self.most}" if self.least is None else f"between {self.least} and {self.most}"

    def describe(self) -> Schema:
        bounds = {"minimum": self.least, "maximum": self.most}
        return {"type": "integer"} | {key: bound for key, bound in bounds.items() if bound is not None}


class Milliseconds(Whole):
    """A duration. Always a number: the unit is in the field's name."""

    _WITH_UNIT = re.compile(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*([a-z]+)\s*\Z")
    _UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

    def __init__(self, least: int = 1, *, code: str = "BAD_TIMEOUT") -> None:
        super().__init__(least, code=code)
        self.wants = "a number of milliseconds"

    def _hint(self, value: Json) -> str | None:
        match = self._WITH_UNIT.match(value) if isinstance(value, str) else None
        if match is None or match[2] not in self._UNITS:
            return super()._hint(value)
        return f"write {round(float(match[1]) * self._UNITS[match[2]])}"


class Number(Shape):
    """Any number, within bounds."""

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        self.least, self.most = least, most
        self.wants = "a number" if least is None else f"a number between {least} and {most}"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self.wrong(value, at, reading)
        if self.least is not None and self.most is not None and not self.least <= value <= self.most:
            return self.wrong(value, at, reading)
        return value

    def write(self, value: Any) -> Json:
        return int(value) if float(value).is_integer() else value

    def describe(self) -> Schema:
        bounds = {"minimum": self.least, "maximum": self.most}
        return {"type": "number"} | {key: bound for key, bound in bounds.items() if bound is not None}


class Flag(Shape):
    """true or false."""

    wants = "true or false"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, bool):
            return value
        near = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(value).lower())
        return self.wrong(value, at, reading, f"write `{near}`" if near else None)

    def describe(self) -> Schema:
        return {"type": "boolean"}


class Choice(Shape):
    """One of a few words; `also` holds other spellings of them."""

    def __init__(self, *words: str, also: Mapping[str, str] | None = None) -> None:
        self.words = words
        self.also = dict(also or {})
        self.wants = "one of " + ", ".join(f"`{word}`" for word in words)

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, str):
            word = self.also.get(value, value)
            if word in self.words:
                return word
        return self.wrong(value, at, reading, did_you_mean(value, self.words) if isinstance(value, str) else None)

    def describe(self) -> Schema:
        return {"enum": [*self.words, *self.also]}

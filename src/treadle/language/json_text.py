"""JSON text → a plain value with positions.

Strict (RFC 8259): duplicate keys, NaN, raw control characters, lone surrogates and anything beyond
`Bounds` are refused with line and column. Iterative, so nesting costs no stack. Strings are decoded by the
standard library.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

from treadle.language.limits import Bounds
from treadle.language.plain import number_from, refuse_text
from treadle.language.source import Marks, Refusal, Spot

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:(?P<mark>[\[\]{},:])|(?P<quote>")"""
    r"""|(?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>-?[A-Za-z_]+))"""
)
_WORDS = {"true": True, "false": False, "null": None}


class NotJson(Exception):
    """The text does not follow JSON's grammar; it may still be YAML."""

    def __init__(self, message: str, spot: Spot) -> None:
        super().__init__(message)
        self.message = message
        self.spot = spot


def read_json(text: str, bounds: Bounds) -> tuple[Any, Marks]:
    """The value and its marks. Raises NotJson for bad grammar and Refusal for what no dialect may contain."""
    return _Reader(text, bounds).document()


class _Reader:
    def __init__(self, text: str, bounds: Bounds) -> None:
        self.text = text
        self.bounds = bounds
        self.position = 0
        self.begins = 0
        self.values = 0
        self.lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def spot(self, position: int) -> Spot:
        line = bisect_right(self.lines, position)
        return Spot(line, position - self.lines[line - 1] + 1)

    def document(self) -> tuple[Any, Marks]:
        holder: list[Any] = []
        top = Marks(Spot(1, 1))
        stack = [_Open(holder, top)]
        self._value(stack)
        while len(stack) > 1:
            if isinstance(stack[-1].value, dict):
                self._member(stack)
            else:
                self._element(stack)
        if self.text[self.position :].strip(" \t\r\n"):
            self._token()
            raise NotJson("nothing may follow the JSON value", self.spot(self.begins))
        return holder[0], top.parts[0]

    def _token(self) -> str:
        """The next token's kind; `begins` is where it starts, `position` where it ends."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :]
            self.begins = self.position + len(rest) - len(rest.lstrip(" \t\r\n"))
            raise NotJson("expected a JSON value", self.spot(min(self.begins, len(self.text))))
        kind = match.lastgroup or ""
        self.begins = match.start(kind)
        self.position = match.end()
        return match.group(kind) if kind in ("mark", "word") else kind

    def _value(self, stack: list[_Open], token: str | None = None) -> None:
        """Reads one value into the innermost open container; a container is opened, not read to its end."""
        token = token or self._token()
        at = self.spot(self.begins)
        self._count(at)
        marks = Marks(at)
        if token in "{[" and len(token) == 1:
            if len(stack) > self.bounds.depth:
                raise Refusal(f"nested more than {self.bounds.depth} levels deep", at)
            container: Any = {} if token == "{" else []
            stack[-1].add(container, marks)
            stack.append(_Open(container, marks))
        else:
            stack[-1].add(self._scalar(token, at), marks)

    def _count(self, at: Spot) -> None:
        self.values += 1
        if self.values > self.bounds.values:
            raise Refusal(f"more than {self.bounds.values} values", at)

    def _scalar(self, token: str, at: Spot) -> Any:
        if token == "quote":
            return self._string(at)
        if token == "number":
            return number_from(self.text[self.begins : self.position], at, self.bounds)
        if token in _WORDS:
            return _WORDS[token]
        if token in ("NaN", "Infinity", "-Infinity"):
            raise Refusal(f"{token} is not a JSON number", at)
        raise NotJson(f"unexpected `{token}`", at)

    def _string(self, at: Spot) -> str:
        try:
            value, self.position = scanstring(self.text, self.position, True)
        except JSONDecodeError as error:
            raise NotJson(error.msg[:1].lower() + error.msg[1:], self.spot(error.pos)) from None
        refuse_text(value, at)
        return str(value)

    def _member(self, stack: list[_Open]) -> None:
        here = stack[-1]
        token = self._token()
        if token == "," and here.value:
            token = self._token()
        elif token == "}":
            stack.pop()
            return
        elif here.value:
            raise NotJson(f"expected `,` or `}}`, found `{token}`", self.spot(self.begins))
        at = self.spot(self.begins)
        if token != "quote":
            raise NotJson("expected a key in double quotes", at)
        key = self._string(at)
        if key in here.value:
            raise duplicate_key(key, at, here.marks.keys[key])
        here.marks.keys[key] = at
        if self._token() != ":":
            raise NotJson(f"expected `:` after the key {key!r}", self.spot(self.begins))
        here.key = key
        self._value(stack)

    def _element(self, stack: list[_Open]) -> None:
        here = stack[-1]
        token = self._token()
        if token == "]":
            stack.pop()
            return
        if here.value:
            if token != ",":
                raise NotJson(f"expected `,` or `]`, found `{token}`", self.spot(self.begins))
            token = self._token()
        self._value(stack, token)


class _Open:
    """A container that is being filled."""

    __slots__ = ("key", "marks", "value")

    def __init__(self, value: Any, marks: Marks) -> None:
        self.value = value
        self.marks = marks
        self.key = ""

    def add(self, value: Any, marks: Marks) -> None:
        if isinstance(self.value, dict):
            self.value[self.key] = value
            self.marks.parts[self.key] = marks
        else:
            self.marks.parts[len(self.value)] = marks
            self.value.append(value)


def duplicate_key(key: str, at: Spot, first: Spot) -> Refusal:
    """The refusal both dialects give for a key written twice."""
    return Refusal(f"the key `{key[:60]}` is written twice", at, hint=f"it first stands in line {first.line}")

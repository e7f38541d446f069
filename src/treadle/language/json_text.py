"""JSON text → a plain value with positions.

Strict (RFC 8259): duplicate keys, NaN, raw control characters, lone surrogates and anything beyond
`Bounds` are refused with line and column. Iterative, so nesting costs no stack. Strings with escapes are
decoded by the standard library.
"""

from __future__ import annotations

import re
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import Any

from treadle.language.limits import Bounds
from treadle.language.plain import number_from, refuse_text
from treadle.language.source import COLUMN_BITS, At, Mark, Marks, Refusal, spot_of

_SPACE = r"[ \t\r\n]*+"  # possessive: a megabyte of it is looked at once
_TEXT = r'"(?P<text>[^"\\\x00-\x1f\ud800-\udfff]*+)"'
_TOKEN = re.compile(
    rf"""{_SPACE}(?:(?P<comma>,){_SPACE})?(?:{_TEXT}|(?P<none>\{{{_SPACE}\}}|\[{_SPACE}\])"""
    r"""|(?P<mark>[\[\]{},:])|(?P<quote>")"""
    r"""|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)|(?P<word>-?[A-Za-z_]++)|(?P<end>\Z))"""
)
_KEY = re.compile(rf"{_SPACE}(?:(?P<comma>,){_SPACE})?{_TEXT}{_SPACE}:")
"""The usual beginning of a member, matched at once: a key, a colon."""
_WORDS = {"true": True, "false": False, "null": None}


class NotJson(Exception):
    """The text does not follow JSON's grammar; it may still be YAML."""

    def __init__(self, message: str, at: At, values: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.values = values
        """How many values were read as JSON before the mistake."""


def read_json(text: str, bounds: Bounds) -> tuple[Any, Mark]:
    """The value and its mark. Raises NotJson for bad grammar and Refusal for what no dialect may contain."""
    return _Reader(text, bounds).document()


class _Reader:
    """One pass over the text. A comma belongs to the token behind it."""

    def __init__(self, text: str, bounds: Bounds) -> None:
        self.text = text
        self.bounds = bounds
        self.begins = 0
        self.ends = 0
        self.comma: int | None = None
        """The position of the comma before the last token, if there is one."""
        self.values = 0
        self.line = 0
        self.line_begins = 0
        self.counted = 0
        """The position up to which line breaks were counted: places are asked for in the order of the text."""

    def at(self, offset: int) -> At:
        breaks = self.text.count("\n", self.counted, offset)
        if breaks:
            self.line += breaks
            self.line_begins = self.text.rfind("\n", self.counted, offset) + 1
        self.counted = max(offset, self.counted)
        return self.line << COLUMN_BITS | offset - self.line_begins

    def document(self) -> tuple[Any, Mark]:
        holder: list[Any] = []
        marks: list[Mark] = []
        stack = [_Open(holder, Marks(0, marks))]
        self._value(stack, self._token())
        while len(stack) > 1:
            if stack[-1].is_map:
                self._member(stack)
            else:
                self._element(stack)
        if self._token() != "end" or self.comma is not None:
            raise self._not_json("nothing may follow the JSON value")
        return holder[0], marks[0]

    def _not_json(self, message: str) -> NotJson:
        return NotJson(message, self.at(self.begins), self.values)

    def _token(self) -> str:
        """The next token: a mark or a word as it is, else its kind."""
        match = _TOKEN.match(self.text, self.ends)
        if match is None:
            rest = self.text[self.ends :]
            self.begins = self.ends + len(rest) - len(rest.lstrip(" \t\r\n"))
            raise self._not_json("expected a JSON value")
        kind = match.lastgroup or ""
        self.begins = match.start(kind)
        self.ends = match.end()
        comma = match.start("comma")
        self.comma = comma if comma >= 0 else None
        if kind == "text":
            self.begins -= 1
            return '"'
        return match.group(kind) if kind in ("mark", "word") else kind

    def _value(self, stack: list[_Open], token: str) -> None:
        """Takes one value into the innermost open container; a container is opened, not read to its end."""
        at = self.at(self.begins)
        self._count(at)
        if token in ("{", "[", "none") and len(stack) > self.bounds.depth:
            raise Refusal(f"nested more than {self.bounds.depth} levels deep", at)
        if token in ("{", "["):
            container: Any = {} if token == "{" else []
            marks = Marks(at, {}, {}) if token == "{" else Marks(at, [])
            stack[-1].add(container, marks)
            stack.append(_Open(container, marks))
        else:
            stack[-1].add(self._scalar(token, at), at)

    def _count(self, at: At) -> None:
        self.values += 1
        if self.values > self.bounds.values:
            raise Refusal(f"more than {self.bounds.values} values", at)

    def _scalar(self, token: str, at: At) -> Any:
        if token == '"':
            return self.text[self.begins + 1 : self.ends - 1]
        if token == "none":
            return {} if self.text[self.begins] == "{" else []
        if token == "quote":
            return self._string(at)
        if token == "number":
            return number_from(self.text[self.begins : self.ends], at, self.bounds)
        if token in _WORDS:
            return _WORDS[token]
        if token in ("NaN", "Infinity", "-Infinity"):
            raise Refusal(f"{token} is not a JSON number", at)
        raise self._not_json("expected a JSON value" if token == "end" else f"unexpected `{token[:60]}`")

    def _string(self, at: At) -> str:
        """A string with escapes, or a broken one; its quote was read."""
        try:
            value, self.ends = scanstring(self.text, self.ends, True)
        except JSONDecodeError as error:
            self.begins = max(error.pos, self.begins)
            raise self._not_json(error.msg[:1].lower() + error.msg[1:]) from None
        refuse_text(value, at)
        return str(value)

    def _member(self, stack: list[_Open]) -> None:
        here = stack[-1]
        match = _KEY.match(self.text, self.ends)
        if match is not None and (match.start("comma") < 0) == (not here.value):
            key, self.begins, self.ends = match.group("text"), match.start("text") - 1, match.end()
            at = self.at(self.begins)
        else:
            token = self._token()
            if token == "}" and self.comma is None:
                stack.pop()
                return
            self._refuse_comma(here, "}", token)
            if token not in ('"', "quote"):
                raise self._not_json("expected a key in double quotes")
            at = self.at(self.begins)
            key = self._scalar(token, at)
            if self._token() != ":" or self.comma is not None:
                raise self._not_json(f"expected `:` after the key {key[:60]!r}")
        self._count(at)
        if key in here.value:
            assert here.marks.keys is not None
            raise duplicate_key(key, at, here.marks.keys[key])
        here.key, here.key_at = key, at
        token = self._token()
        if self.comma is not None:
            self.begins = self.comma
            raise self._not_json("unexpected `,`")
        self._value(stack, token)

    def _element(self, stack: list[_Open]) -> None:
        token = self._token()
        if token == "]" and self.comma is None:
            stack.pop()
            return
        self._refuse_comma(stack[-1], "]", token)
        self._value(stack, token)

    def _refuse_comma(self, here: _Open, end: str, token: str) -> None:
        """One comma between two parts, none before the first."""
        if here.value and self.comma is None:
            found = "" if token == "end" else f", found `{token[:60]}`"
            raise self._not_json(f"expected `,` or `{end}`{found}")
        if self.comma is not None and not here.value:
            self.begins = self.comma
            raise self._not_json("unexpected `,`")


class _Open:
    """A container that is being filled."""

    __slots__ = ("is_map", "key", "key_at", "marks", "value")

    def __init__(self, value: Any, marks: Marks) -> None:
        self.value = value
        self.marks = marks
        self.is_map = isinstance(value, dict)
        self.key = ""
        self.key_at = 0

    def add(self, value: Any, mark: Mark) -> None:
        if self.is_map:
            self.value[self.key] = value
            self.marks.parts[self.key] = mark  # type: ignore[call-overload]
            self.marks.keys[self.key] = self.key_at  # type: ignore[index]
        else:
            self.value.append(value)
            self.marks.parts.append(mark)  # type: ignore[union-attr]


def duplicate_key(key: str, at: At, first: At) -> Refusal:
    """The refusal both dialects give for a key written twice."""
    return Refusal(f"the key `{key[:60]}` stands twice", at, hint=f"it first stands in line {spot_of(first).line}")

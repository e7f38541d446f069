"""Reading requests: strict JSON, YAML for definitions, and query parameters (5.1).

Promises to refuse, with the place as a path: text that is no JSON in UTF-8, NaN, numbers out of range, duplicate keys,
nesting deeper than 100, unknown fields and parameters (all of them at once), and wrong types. Hostile text costs no
more than its length: nothing here recurses."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Struct

from treadle.server.problems import HttpProblem, ProblemLine

DEPTH_MAX = 100
DIGITS_MAX = 400
"""Digits of a number: the work of reading one grows with their square."""
DATA_MIN, DATA_MAX = -(2**63), 2**64 - 1
"""Integers that workflows reckon with: 64 bits."""
INTEGER_MAX = 2**53 - 1
"""Integers in fields and parameters of the API itself (instants, durations, counts): those that every language reads
exactly, and the sum of two of which every store can hold."""
_NESTING = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % DIGITS_MAX)


def read_json(data: bytes) -> Any:
    """A body as a value; no body is `{}`. Raises BAD_REQUEST."""
    if not data:
        return {}
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX:
        _refuse_deep(data)
    if len(data) > DIGITS_MAX and _LONG_NUMBER.search(data):
        raise bad(f"a number has more than {DIGITS_MAX} digits")
    try:
        text = data.decode("utf-8")
        value = _DECODER.decode(text)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except UnicodeDecodeError:
        raise bad("the body is not UTF-8") from None
    except UnicodeEncodeError:
        raise bad("a text contains half of a surrogate pair") from None
    except json.JSONDecodeError as problem:
        raise bad(f"the body is no JSON: {problem.msg} at line {problem.lineno}, column {problem.colno}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise bad(f"the key {twice[:80]!r} is there twice")
    return found


def _no_constant(word: str) -> Any:
    raise bad(f"{word} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise bad(f"the number {text[:40]} is out of range")
    return number


def _held(text: str) -> int:
    number = int(text)
    if not DATA_MIN <= number <= DATA_MAX:
        raise bad(f"the number {text[:40]} is out of range: it has more than 64 bits")
    return number


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_constant, parse_float=_finite, parse_int=_held)
"""Made once, not for every body."""


def _refuse_deep(data: bytes) -> None:
    depth = 0
    for match in _NESTING.finditer(data):
        mark = match.group()[:1]
        if mark in b"[{":
            depth += 1
            if depth > DEPTH_MAX:
                raise bad(f"the body is nested deeper than {DEPTH_MAX}")
        elif mark in b"]}":
            depth -= 1


def read_body(data: bytes, kind: Any) -> Any:
    """A body as the Struct that its route declares. Raises BAD_REQUEST."""
    value = read_json(data)
    if isinstance(kind, type) and issubclass(kind, Struct):
        if not isinstance(value, dict):
            raise bad(f"the body is {_kind_of(value)}; it must be an object", place="$")
        _refuse_unknown(value, kind, "field")
    return _converted(value, kind, strict=True)


def read_query(pairs: list[tuple[str, str]], kind: Any) -> Any:
    """Query parameters as the Struct that the route declares. Raises BAD_REQUEST."""
    given: dict[str, Any] = {}
    if kind is None:
        if pairs:
            raise _unknown([name for name, _ in pairs], (), "parameter")
        return None
    if not pairs:
        return _unasked(kind) if not _list_names(kind) else _converted({}, kind, strict=False)
    lists = _list_names(kind)
    for name, text in pairs:
        if name in lists:
            given.setdefault(name, []).append(text)
        elif name in given:
            raise bad(f"the parameter {name!r} is there twice", place=name)
        else:
            given[name] = text
    _refuse_unknown(given, kind, "parameter")
    return _converted(given, kind, strict=False)


@cache
def _unasked(kind: Any) -> Any:
    """A query without parameters. One for all requests: nothing in it can be changed in place."""
    return _converted({}, kind, strict=False)


def _is_list(kind: Any) -> bool:
    origin = get_origin(kind)
    return origin in (list, tuple) or any(_is_list(part) for part in get_args(kind) if origin not in (list, tuple))


def _refuse_unknown(value: dict[str, Any], kind: type[Struct], what: str) -> None:
    known = _field_names(kind)
    if not known.keys() >= value.keys():
        raise _unknown([name for name in value if name not in known], known, what)


@cache
def _field_names(kind: type[Struct]) -> dict[str, None]:
    """The names of a Struct's fields, in order. Finding them evaluates its annotations, which takes longer than all the
    rest."""
    return {field.encode_name: None for field in msgspec.structs.fields(kind)}


@cache
def _list_names(kind: type[Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(kind) if _is_list(field.type))


def _unknown(names: list[str], known: Any, what: str) -> HttpProblem:
    shown = [name[:80] for name in dict.fromkeys(names)][:20]
    takes = f"it takes {', '.join(known)}" if known else f"it takes no {what}s"
    root = "$." if what == "field" else ""
    lines = [ProblemLine(f"unknown {what} {name!r}", "BAD_REQUEST", place=root + name) for name in shown]
    detail = f"unknown {what}{'s' if len(shown) > 1 else ''}: {', '.join(shown)}"
    return HttpProblem("BAD_REQUEST", detail, place=root + shown[0], remedy=takes, problems=lines)


_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `(?P<place>[^`]*)`)?$", re.DOTALL)
_FIELD = re.compile(r"^Object (?P<how>contains unknown|missing required) field `(?P<name>.*)`$", re.DOTALL)


def _converted(value: Any, kind: Any, *, strict: bool) -> Any:
    try:
        read = msgspec.convert(value, kind, strict=strict)
        _refuse_huge(read, "$" if strict else "")
        return read
    except msgspec.ValidationError as problem:
        match = _PLACE.match(str(problem))
        assert match is not None, "the pattern matches every text"
        place = match["place"] or "$"
        field = _FIELD.match(match["what"])
        if field is not None:
            place = f"{place}.{field['name'][:80]}"
        shown = place if strict else place.removeprefix("$.")
        if field is None:
            raise bad(f"{match['what']} at {place}", place=shown) from None
        how = "unknown" if field["how"] == "contains unknown" else "missing"
        raise bad(f"{how} {'field' if strict else 'parameter'}: {place.removeprefix('$.')}", place=shown) from None


def _refuse_huge(read: Any, place: str) -> None:
    """Refuses an integer that no store holds in a declared field. What is declared as any JSON is data, and stays."""
    if isinstance(read, Struct):
        for name, shown in _integer_fields(type(read)):
            value = getattr(read, name)
            if value is not None:
                _refuse_huge(value, f"{place}.{shown}".lstrip("."))
    elif isinstance(read, list | tuple):
        for number, part in enumerate(read):
            _refuse_huge(part, f"{place}[{number}]")
    elif isinstance(read, int) and abs(read) > INTEGER_MAX:
        raise bad(f"the number at {place} is out of range: at most {INTEGER_MAX}", place=place)


@cache
def _integer_fields(kind: type[Struct]) -> tuple[tuple[str, str], ...]:
    """Fields that are integers, or Structs or lists which may hold some: their names here and in a request."""
    fields = msgspec.structs.fields(kind)
    return tuple((field.name, field.encode_name) for field in fields if _holds_integers(field.type))


def _holds_integers(kind: Any) -> bool:
    if isinstance(kind, type) and issubclass(kind, int | Struct):
        return kind is not bool
    return any(_holds_integers(part) for part in get_args(kind))


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    return {dict: "an object", list: "an array", str: "a text", bool: "true or false"}.get(type(value), "a number")


def bad(detail: str, place: str | None = None, remedy: str | None = None) -> HttpProblem:
    """400: the request cannot be understood."""
    return HttpProblem("BAD_REQUEST", detail, place=place, remedy=remedy)

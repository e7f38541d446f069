"""Any value that a function may return → a fresh copy in plain JSON, which every store can keep.

Promises that the result shares nothing with the argument. Refuses, naming the place, values that would be lost or would
break a commit later: NaN and infinities, integers beyond 64 bits, lone surrogates, cycles.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from treadle.errors import TreadleError

INT_MIN, INT_MAX = -(2**63), 2**64 - 1
"""The integers that msgpack can hold, in which history is written."""


class NotPlain(TreadleError, ValueError):
    """The value has no faithful JSON form; the message says where and why."""


def plain(value: Any) -> Any:
    """A deep copy made of JSON's own types; dataclasses, models, dates, sets and the like are converted."""
    try:
        return _copied(value)
    except (_Unusual, UnicodeEncodeError, RecursionError):
        return _walked(value)


class _Unusual(Exception):
    """Something that has to be converted, or refused."""


def _copied(value: Any) -> Any:
    """The common case: JSON already. Knows no places, which makes it three times as fast; any doubt is left to `_plain`
    (1.4 µs instead of 4.4 for an object of two members)."""
    kind = type(value)
    if kind is str:
        if not value.isascii():
            value.encode()
        return value
    if kind is bool or value is None:
        return value
    if kind is int and INT_MIN <= value <= INT_MAX:
        return value
    if kind is dict:
        copy = {}
        for key, part in value.items():
            if type(key) is not str:
                raise _Unusual
            if not key.isascii():
                key.encode()
            kind = type(part)
            if kind is str:
                if not part.isascii():
                    part.encode()
            elif kind is not bool and part is not None and not (kind is int and INT_MIN <= part <= INT_MAX):
                part = _copied(part)
            copy[key] = part
        return copy
    if kind is list or kind is tuple:
        return [_copied(part) for part in value]
    if kind is float and math.isfinite(value):
        return value
    raise _Unusual


def _walked(value: Any) -> Any:
    try:
        return _plain(value, "$")
    except RecursionError:
        raise NotPlain("the value contains itself, or is nested too deeply to be JSON") from None


def _plain(value: Any, at: str) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value, at)
    if value is None or kind is bool:
        return value
    if kind is int:
        return _integer(value, at)
    if kind is float:
        return _number(value, at)
    if kind is dict:
        return {_key(k, at): _plain(v, f"{at}.{k}") for k, v in value.items()}
    if kind is list or kind is tuple:
        return [_plain(v, f"{at}[{i}]") for i, v in enumerate(value)]
    return _plain(_builtins(value, at), at)


def _text(value: str, at: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotPlain(f"{at} is not valid Unicode text (a lone surrogate)") from None
    return value


def _integer(value: int, at: str) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise NotPlain(f"{at} is an integer beyond 64 bits; make it text")
    return value


def _number(value: float, at: str) -> float:
    if not math.isfinite(value):
        raise NotPlain(f"{at} is {value}, which JSON cannot express; make it null or text")
    return value


def _key(key: Any, at: str) -> str:
    if type(key) is str:
        return _text(key, at)
    if isinstance(key, (int, str)) and not isinstance(key, bool):
        return str(key)
    raise NotPlain(f"{at} has the key {key!r}; keys of a JSON object are text")


def _builtins(value: Any, at: str) -> Any:
    """The value in builtin types, not yet checked: the caller walks the result again."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    try:
        built = msgspec.to_builtins(value, enc_hook=_subclass)
    except (TypeError, ValueError, OverflowError):
        built = value
    if type(built) is type(value):
        raise NotPlain(f"{at} is of type {type(value).__qualname__}, which is not JSON")
    return built


_BUILTINS: tuple[Any, ...] = (str, int, float, dict, list, tuple)


def _subclass(value: Any) -> Any:
    """A user's own kind of text, number or container, as the plain one."""
    for builtin in _BUILTINS:
        if isinstance(value, builtin):
            return builtin(value)
    raise TypeError

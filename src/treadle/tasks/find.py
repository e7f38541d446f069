"""Finds a function by the name a definition gives it: registered, or importable as `package.module:function`.

Promises that a name which leads nowhere says what is nearest.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import reduce
from typing import Any

from treadle.errors import TreadleError
from treadle.tasks.decorator import Function


class UnknownFunction(TreadleError, LookupError):
    """No function of that name; the message says what was looked for and what is nearest."""


def find_function(name: str, functions: Mapping[str, Function]) -> Function:
    """The registered function of that name, or the importable one."""
    if name in functions:
        return functions[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise UnknownFunction(
            f"no function {name!r} is registered{_nearest(name, functions)} "
            "Register it, or write 'package.module:function'."
        )
    try:
        inside = importlib.import_module(module)
    except ImportError as problem:
        raise UnknownFunction(f"function {name!r} cannot be imported: {problem}") from problem
    try:
        found: Any = reduce(getattr, attribute.split("."), inside)
    except AttributeError as problem:
        near = _nearest(attribute, (key for key, value in vars(inside).items() if callable(value)))
        raise UnknownFunction(f"function {name!r} cannot be imported: {problem}{near}") from problem
    if not callable(found):
        raise UnknownFunction(f"{name!r} is a {type(found).__name__}, not a function")
    function: Function = found
    return function


def _nearest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else "."

"""Finds a function by its name in a definition: a registered name, or `package.module:function` of an allowed module.

`trust.py` decides which modules and functions are allowed. Promises that the error for an unknown name says where it
was looked for and which name is nearest, and that the error for a refused name names the operator's setting. A refused
module is not imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from treadle.errors import TreadleError
from treadle.tasks.decorator import Function
from treadle.tasks.trust import SETTING, Trust, exists

LISTED = 5
"""Registered names that a message lists: enough to see a typing error, few enough to read."""


class UnknownFunction(TreadleError, LookupError):
    """There is no function of that name. The message says where it was looked for and which name is nearest."""


class BrokenModule(TreadleError):
    """Importing the module of a function raised something that is no `Exception`: `SystemExit`, most likely."""


class UntrustedFunction(UnknownFunction):
    """The operator has not allowed workflows to call the function of that name."""


def find_function(name: str, functions: Mapping[str, Function], trust: Trust | None = None) -> Function:
    """The registered function of that name, or the one of an allowed module. Without `trust`, the project's own modules
    are allowed."""
    if name in functions:
        return functions[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise UnknownFunction(
            f"no function {name!r} is registered{_nearest(name, functions)} {_registered(functions)} "
            "Register it, or write 'package.module:function'."
        )
    trust = trust or Trust()
    if not trust.allows(module):
        raise _refused(name, module, functions, trust)
    try:
        inside = importlib.import_module(module)
    except ImportError as problem:
        text = f"function {name!r} cannot be imported: {problem}"
        raise UnknownFunction(f"{text}. {_looked(functions, trust)}") from problem
    except (Exception, KeyboardInterrupt):  # the module exists and is broken
        raise
    except BaseException as problem:  # a module that exits must not end the process that imports it
        raise BrokenModule(f"the module {module!r} ends while it is imported: {problem!r}") from problem
    found = _inside(name, inside, attribute.split("."))
    if not callable(found):
        raise UnknownFunction(f"{name!r} is a {type(found).__name__}, not a function")
    why = trust.refusal(inside, attribute.split("."), found)
    if why is not None:
        raise UntrustedFunction(f"workflows may not call {name!r}: {why}")
    function: Function = found
    return function


def _inside(name: str, inside: ModuleType, path: list[str]) -> Any:
    """The object at the end of an attribute path, which must not pass through other modules or private names."""
    found: Any = inside
    for number, part in enumerate(path):
        if number and (isinstance(found, ModuleType) or part.startswith("_")):
            through = f"it leads through {path[number - 1]!r} to what {inside.__name__!r} does not define"
            raise UntrustedFunction(f"workflows may not call {name!r}: {through}")
        try:
            found = getattr(found, part)
        except AttributeError as problem:
            near = _nearest(".".join(path), (key for key, value in vars(inside).items() if callable(value)))
            raise UnknownFunction(f"function {name!r} cannot be imported: {problem}{near}") from problem
    return found


def _refused(name: str, module: str, functions: Mapping[str, Function], trust: Trust) -> UnknownFunction:
    if not exists(module):
        text = f"function {name!r} cannot be imported: there is no module {module!r} on Python's path"
        return UnknownFunction(f"{text}. {_looked(functions, trust)}")
    text = f"workflows may not call {name!r}: {SETTING} does not cover the module {module!r}, only {trust}"
    python = f"EngineSettings(functions_allow=('.', {module!r}))"
    return UntrustedFunction(
        f"{text}. An operator adds it to {SETTING}, or starts with `--functions {module}`; in Python: {python}."
    )


def _looked(functions: Mapping[str, Function], trust: Trust) -> str:
    return f"{_registered(functions)} {SETTING} covers {trust}."


def _registered(functions: Mapping[str, Function]) -> str:
    names = sorted(functions)
    if not names:
        return "Nothing is registered here."
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"Registered here: {', '.join(names[:LISTED])}{more}."


def _nearest(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else "."

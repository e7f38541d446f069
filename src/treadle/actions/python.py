"""`python {function, process?}`: calls a registered function, or one importable as `package.module:function`.

A function of one parameter takes the step's input; one of several takes them by name; `facts`, if it has such
a parameter, is the attempt's facts. It may be async. It gets a copy of the input, and its result must be JSON
(dataclasses and models are converted).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial, reduce
from typing import Any

from treadle.actions.failure import TaskFailure, error_of
from treadle.actions.nearest import nearest
from treadle.actions.plain import plain
from treadle.actions.protocol import Call, Done, Failed, Reply, Work, failed
from treadle.errors import TreadleError

Json = Any
Function = Callable[..., Any]
Bound = Callable[[], Any]


class UnknownFunction(TreadleError, LookupError):
    """No function of that name; the message says what was looked for and what is nearest."""


class PythonKind:
    """Finds the function when it is called, so that one registered later is found too."""

    name = "python"

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions

    def run(self, call: Call) -> Reply:
        try:
            function = find_function(call.config["function"], self._functions)
        except UnknownFunction as problem:
            return failed(str(problem), "NOT_FOUND")
        bound = _bound(function, call)
        if isinstance(bound, Failed):
            return bound
        if inspect.iscoroutinefunction(function):
            return _awaited(bound)
        return Work(partial(_called, bound), "process" if call.config.get("process") else "thread")


def find_function(name: str, functions: Mapping[str, Function]) -> Function:
    """The registered function of that name, or the importable one."""
    if name in functions:
        return functions[name]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise UnknownFunction(
            f"no function {name!r} is registered{nearest(name, functions)} "
            "Register it, or write 'package.module:function'."
        )
    try:
        found: Any = reduce(getattr, attribute.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as problem:
        raise UnknownFunction(f"function {name!r} cannot be imported: {problem}") from problem
    if not callable(found):
        raise UnknownFunction(f"{name!r} is a {type(found).__name__}, not a function")
    function: Function = found
    return function


def _bound(function: Function, call: Call) -> Bound | Failed:
    """The function with its arguments. Its signature alone decides how, not what the input holds today."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some builtins have none
        return partial(function, plain(call.input))
    facts = {"facts": call.facts} if "facts" in signature.parameters else {}
    own = [parameter for name, parameter in signature.parameters.items() if name != "facts"]
    if not own:
        return partial(function, **facts)
    if len(own) == 1 and own[0].kind in (own[0].POSITIONAL_ONLY, own[0].POSITIONAL_OR_KEYWORD):
        return partial(function, plain(call.input), **facts)
    named = {**plain(call.input), **facts} if isinstance(call.input, dict) else facts
    try:
        signature.bind(**named)
    except TypeError as problem:
        name = getattr(function, "__name__", "function")
        return failed(f"the step's input does not fit {name}{signature}: {problem}; see its input_mapping")
    return partial(function, **named)


def _called(bound: Bound) -> Done | Failed:
    try:
        return Done(_as_output(bound()))
    except (Exception, SystemExit) as problem:  # user code that exits must not take the engine with it
        return Failed(error_of(problem))


async def _awaited(bound: Bound) -> Done | Failed:
    try:
        return Done(_as_output(await bound()))
    except (Exception, SystemExit) as problem:
        return Failed(error_of(problem))


def _as_output(value: Any) -> Json:
    if inspect.iscoroutine(value):
        value.close()
        raise TaskFailure("the function returned a coroutine without being `async def`; a decorator hides it?")
    result = plain(value)
    return result if isinstance(result, dict) else {"result": result}

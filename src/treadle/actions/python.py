"""`python {function, process?}`: calls a registered function, or `package.module:function` of an allowed module.

`tasks/signature.py` converts the step's input to arguments; an input that does not fit is a SCHEMA failure that names
the parameter and the place. The function may be async. It gets a copy of the input, and its result must be JSON
(dataclasses and models are converted).
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from treadle.actions.current import spent_here
from treadle.actions.failure import TaskFailure, error_of, is_interrupt
from treadle.actions.plain import plain
from treadle.actions.protocol import Call, Done, Failed, Missing, Reply, Work, failed
from treadle.tasks.find import UnknownFunction, find_function
from treadle.tasks.signature import InputMisfit, Parameter, Signature, signature_of
from treadle.tasks.trust import Trust

Json = Any
Function = Callable[..., Any]
Bound = Callable[[], Any]

__all__ = ["Function", "PythonKind", "UnknownFunction", "find_function"]


class PythonKind:
    """Looks the function up for each call, so that a function registered later is found, too."""

    name = "python"

    def __init__(
        self, functions: Mapping[str, Function], where: Callable[[], str] = str, trust: Callable[[], Trust] = Trust
    ) -> None:
        self._functions = functions
        self._trust = trust
        """The operator's list of allowed modules. It is read for every attempt, so that it binds old versions, too."""
        self._where = where
        """The node's name and the remedy, for the message about a function it lacks; empty in a scenario."""
        self._read: dict[str, tuple[Function, Signature | None]] = {}
        """Registered functions with their signatures, cached."""

    def run(self, call: Call) -> Reply:
        name = call.config["function"]
        function, signature = self._read.get(name, _UNREAD)
        if function is None or self._functions.get(name) is not function:
            try:
                function = find_function(name, self._functions, self._trust())
            except UnknownFunction as problem:
                # On a node this is the operator's mistake, not the workflow's: another node may have the function, or
                # this one after a restart.
                where = self._where()
                return failed(f"{problem}{where}", "NOT_FOUND", retryable=bool(where))
            signature = signature_of(function)
            if name in self._functions:
                self._read[name] = (function, signature)
        bound = _bound(function, signature, call)
        if isinstance(bound, Failed):
            return bound
        if signature is not None and signature.asynchronous:
            return _awaited(bound)
        return Work(partial(_called, bound), "process" if call.config.get("process") else "thread")

    def missing(self, config: Mapping[str, Json]) -> Missing | None:
        """The function, if it cannot be found here."""
        name = config["function"]
        if name in self._functions:
            return None
        try:
            find_function(name, self._functions, self._trust())
        except UnknownFunction as problem:
            return Missing(f"function {name!r}", str(problem), "start it with `--functions MODULE`")
        except Exception:  # its module exists and is broken: the attempt reports how
            return None
        return None


_UNREAD: tuple[None, None] = (None, None)


def _bound(function: Function, signature: Signature | None, call: Call) -> Bound | Failed:
    """The function with its arguments. The signature alone decides how they are passed, not the value of the input."""
    if signature is None:  # some builtins have none
        return partial(function, plain(call.input))
    known = call.facts.portable() if call.config.get("process") else call.facts
    facts = {"facts": known} if signature.facts else {}
    if not signature.parameters and not signature.anything:
        return partial(function, **facts)
    if signature.whole:
        (only,) = signature.parameters.values()
        try:
            return partial(function, only.convert(plain(call.input)), **facts)
        except InputMisfit as problem:
            return _misfit_of_whole(signature, only, call.input, problem)
    return _bound_by_name(function, signature, call.input, facts)


def _bound_by_name(function: Function, signature: Signature, given: Json, facts: dict[str, Any]) -> Bound | Failed:
    if given is not None and not isinstance(given, dict):
        text = f"{signature.shown} takes its inputs by name, and the step's input is no object but {_kind(given)}"
        return failed(f"{text}; a single parameter called `input` takes it whole")
    named = plain(given) if given else {}
    if not signature.parameters and signature.anything:
        return partial(function, **named, **facts)
    if not signature.takes(named):
        try:
            inspect.signature(function).bind(**named, **facts)
        except TypeError as problem:
            return failed(f"the step's input does not fit {signature.shown}: {problem}; see its input_mapping")
    for name, value in named.items():
        if (parameter := signature.parameters.get(name)) is not None:
            try:
                named[name] = parameter.convert(value)
            except InputMisfit as problem:
                return _misfit(signature, name, problem)
    return partial(function, **named, **facts)


def _kind(value: Json) -> str:
    return {list: "an array", str: "text", bool: "true or false"}.get(type(value), "a number")


def _misfit(signature: Signature, name: str, problem: InputMisfit) -> Failed:
    return failed(f"the input `{name}` of {signature.shown}: {problem}", "SCHEMA", details={"parameter": name})


def _misfit_of_whole(signature: Signature, only: Parameter, given: Json, problem: InputMisfit) -> Failed:
    if not isinstance(given, dict) or only.fields is not None:
        return _misfit(signature, only.name, problem)
    text = (
        f"{signature.shown} gets the whole input, an object, as `{only.name}`: {problem}; give the parameter another "
    )
    return failed(f"{text}name to take one input by that name", "SCHEMA", details={"parameter": only.name})


def _called(bound: Bound) -> Done | Failed:
    try:
        return Done(_as_output(bound()), is_plain=True, spent=spent_here())
    except BaseException as problem:  # user code that exits must not end the engine
        if is_interrupt(problem):
            raise
        return Failed(error_of(problem), spent_here())


async def _awaited(bound: Bound) -> Done | Failed:
    try:
        return Done(_as_output(await bound()), is_plain=True, spent=spent_here())
    except (
        CancelledError,
        GeneratorExit,
    ):  # the cancellation of the task, not an exception of the function: the executor tells which
        raise
    except BaseException as problem:
        if is_interrupt(problem):
            raise
        return Failed(error_of(problem), spent_here())


def _as_output(value: Any) -> Json:
    if type(value) is dict:
        return plain(value)
    if inspect.iscoroutine(value):
        value.close()
        raise TaskFailure("the function returned a coroutine without being `async def`; a decorator hides it?")
    result = plain(value)
    return result if isinstance(result, dict) else {"result": result}

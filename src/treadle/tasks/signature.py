"""The inputs of a function, read once from its signature, and the conversion of JSON to its arguments.

A function takes its inputs by name. Only a function that is not decorated and whose single parameter is called `input`
takes the step's whole input. A parameter `facts` is never mapped. An annotated parameter gets a value of its
annotation: Structs, dataclasses, TypedDicts, enums, Literals, dates and models are made from JSON. An annotation that
msgspec cannot convert to, or that cannot be resolved, is ignored: the function gets the JSON value.

Null for a parameter with a default that does not admit null means "not given": a path that leads nowhere is null.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from msgspec import inspect as shapes

from treadle.tasks.decorator import Function, options_of

Json = Any
FACTS = "facts"
WHOLE = "input"
"""The name of a single parameter that takes the step's whole input."""
NOTHING = inspect.Parameter.empty


class InputMisfit(Exception):
    """A value does not fit its parameter. The message names the place inside the value."""


class Parameter(Struct, frozen=True):
    """One input of a function."""

    name: str
    type: Any = Any
    """`Any` where there is nothing to convert to."""
    default: Any = NOTHING

    @property
    def required(self) -> bool:
        return self.default is NOTHING

    def convert(self, value: Json) -> Any:
        """The value converted to the argument. Raises InputMisfit."""
        if self.type is Any:
            return value
        try:
            return msgspec.convert(value, self.type, dec_hook=_model)
        except msgspec.ValidationError as problem:
            if value is None and not self.required:
                return self.default
            if isinstance(value, float) and value.is_integer():  # JSON has one kind of number
                return self.convert(int(value))
            raise InputMisfit(_said(problem)) from None
        except (TypeError, ValueError) as problem:  # a model's own validation
            raise InputMisfit(str(problem)) from None

    @property
    def fields(self) -> Mapping[str, bool] | None:
        """The keys of a record type, each with whether it is required; None for any other type."""
        info = shapes.type_info(self.type)
        if isinstance(info, shapes.StructType) and not info.array_like:
            return {field.encode_name: field.required for field in info.fields}
        if isinstance(info, shapes.DataclassType | shapes.TypedDictType):
            return {field.encode_name: field.required for field in info.fields}
        return None

    def __str__(self) -> str:
        shown = "" if self.type is Any else f": {getattr(self.type, '__name__', self.type)}"
        return self.name + shown


class Signature(Struct, frozen=True):
    """The inputs of one function."""

    parameters: dict[str, Parameter]
    whole: bool
    """Whether its one parameter, `input`, takes the step's whole input."""
    anything: bool
    """Whether it has `**kwargs`: then an input of any name fits."""
    facts: bool
    nameless: tuple[str, ...]
    """Parameters that can be given by position only."""
    shown: str
    """The signature as Python writes it."""
    asynchronous: bool = False
    """Whether it is an `async def`."""

    def takes(self, names: Iterable[str]) -> bool:
        """Whether inputs of exactly these names can be given."""
        if self.nameless:
            return False
        known, given = self.parameters, set(names)
        fits = self.anything or given <= known.keys()
        return fits and all(each.name in given for each in known.values() if each.required)


_SINGLE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_READ: WeakKeyDictionary[Any, Signature | None] = WeakKeyDictionary()
_UNREAD: Any = object()


def signature_of(function: Function) -> Signature | None:
    """The signature of a function; None for a builtin that has none."""
    try:
        known: Signature | None = _READ.get(function, _UNREAD)
        if known is _UNREAD:
            known = _READ[function] = _read(function)
        return known
    except TypeError:  # cannot be referred to weakly, or has no hash
        return _read(function)


def _read(function: Function) -> Signature | None:
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    own = [each for name, each in signature.parameters.items() if name != FACTS]
    named = [each for each in own if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    alone = len(own) == 1 and own[0].name == WHOLE and own[0].kind in _SINGLE
    return Signature(
        parameters={each.name: _parameter(each, function) for each in named},
        whole=alone and options_of(function) is None,
        anything=any(each.kind is each.VAR_KEYWORD for each in own),
        facts=FACTS in signature.parameters,
        nameless=tuple(each.name for each in named if each.kind is each.POSITIONAL_ONLY),
        shown=f"{getattr(function, '__name__', 'function')}{signature}",
        asynchronous=inspect.iscoroutinefunction(function),
    )


def _parameter(each: inspect.Parameter, function: Function) -> Parameter:
    wanted = _resolved(each.annotation, function)
    if each.default is None and wanted is not Any:
        wanted = wanted | None if not isinstance(wanted, str) else Any
    return Parameter(each.name, wanted if _is_convertible(wanted) else Any, each.default)


def _resolved(annotation: Any, function: Function) -> Any:
    """The annotation as a type. One that cannot be resolved must not spoil those of the other parameters."""
    if annotation is NOTHING:
        return Any
    inner = inspect.unwrap(getattr(function, "__func__", function))
    names = getattr(inner, "__globals__", {})
    try:
        alone = SimpleNamespace(__annotations__={"it": annotation})
        return typing.get_type_hints(alone, names, _closure(inner), include_extras=True)["it"]
    except Exception:  # evaluating a user's annotation may raise anything
        return Any


def _closure(function: Any) -> dict[str, Any]:
    """The names of enclosing functions that a local function uses itself."""
    try:
        return dict(inspect.getclosurevars(function).nonlocals)
    except (TypeError, ValueError):
        return {}


def _is_convertible(wanted: Any) -> bool:
    if wanted is Any:
        return False
    try:
        return not _has_foreign(shapes.type_info(wanted), set())
    except Exception:  # msgspec refuses some annotations outright
        return False


def _has_foreign(info: Any, seen: set[int]) -> bool:
    """Whether some part of a type is a class that msgspec does not know."""
    if isinstance(info, shapes.CustomType):
        return not hasattr(info.cls, "model_validate")
    if id(info) in seen:
        return False
    seen.add(id(info))
    parts: list[Any] = [getattr(info, name) for name in getattr(info, "__struct_fields__", ())]
    while parts:
        part = parts.pop()
        if isinstance(part, tuple | list):
            parts.extend(part)
        elif isinstance(part, shapes.Field):
            parts.append(part.type)
        elif isinstance(part, shapes.Type) and _has_foreign(part, seen):
            return True
    return False


def _model(wanted: type, value: Any) -> Any:
    """Whether a class validates its own values, as pydantic's models do."""
    make: Any = getattr(wanted, "model_validate", None)
    if make is None:
        raise NotImplementedError
    return make(value)


def _said(problem: msgspec.ValidationError) -> str:
    """msgspec's sentence, in lower case, because it follows the name of the parameter."""
    text = str(problem)
    return text[:1].lower() + text[1:]

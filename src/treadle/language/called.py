"""Functions as nodes: the options of `@task` become the fields of the node that calls the function.

Owns how an undoing function gets its inputs. Only writes the fields; the loader checks them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_type_hints

from treadle.language.parts import Part, action, called
from treadle.tasks.decorator import TaskOptions, options_of
from treadle.tasks.signature import Parameter, signature_of

Function = Callable[..., Any]
_VISIT = ("input", "output")


def node_fields(function: Function) -> Part:
    """The fields of a node that calls the function."""
    noted = options_of(function) or TaskOptions()
    fields = {
        "action": action("python", **called(function)),
        "retry": noted.retry,
        "timeout_ms": noted.timeout_ms,
        "queue": noted.queue,
        "compensate": noted.compensate,
    }
    return {name: value for name, value in fields.items() if value is not None}


def compensating(function: Function | None, undo: Function) -> Part:
    """The fields by which a function undoes a node's visit.

    Each of its parameters gets the value of its name: `input` and `output` are the visit's own, whole. A parameter of
    the function that did the work gets the same value again. All others come out of that function's result.
    """
    noted = options_of(undo) or TaskOptions()
    part: Part = {"action": action("python", **called(undo)), "retry": noted.retry, "timeout_ms": noted.timeout_ms}
    signature = signature_of(undo)
    if signature is not None and not signature.whole:
        did = signature_of(function) if function is not None else None
        given = did.parameters if did is not None and not did.whole else {}
        results = _results(function)
        mapping = {name: _source(each, given, results) for name, each in signature.parameters.items()}
        part["input"] = {name: source for name, source in mapping.items() if source is not None}
    return {name: value for name, value in part.items() if value is not None}


def _source(parameter: Parameter, given: dict[str, Parameter], results: frozenset[str]) -> str | None:
    name = parameter.name
    if name in _VISIT and name not in given:
        return f"$.{name}"
    if name in given:
        return f"$.input.{name}"
    return f"$.output.{name}" if parameter.required or name in results else None


def _results(function: Function | None) -> frozenset[str]:
    """The fields of a function's result, as far as its annotation names them."""
    try:
        wanted = get_type_hints(function).get("return") if function is not None else None
        fields = Parameter("return", wanted).fields if wanted is not None else None
    except Exception:  # an annotation may name anything
        fields = None
    return frozenset(fields or ())

"""The rules of an ingress hook: mappings, sources and conditions over a delivery, in canonical form (5.4).

Owns their places in a hook's document. Promises that what it gives compiles, and that every mistake is a problem with
its place, all of them at once. The expressions are those of a workflow; their roots are `body`, `headers`, `query` and
`delivery`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.errors import ExpressionError
from treadle.expression.conditions import compile_condition
from treadle.expression.sources import compile_mapping, compile_source
from treadle.language.condition import ConditionValue
from treadle.language.phrases import MappingValue, SourceValue
from treadle.language.problem import Problem
from treadle.language.reading import NOTHING_KNOWN, ROOT, Place, Reading
from treadle.language.shapes import BAD, Shape
from treadle.language.source import Source

Json = Any
ROOTS = ("body", "headers", "query", "delivery")


def read_hook_rules(document: dict[str, Json]) -> tuple[dict[str, Json], list[Problem]]:
    """The document with `input`, `key`, `when`, `signal.key` and those of `entity` in canonical form, and problems."""
    reading = Reading(Source(document, "<hook>"), NOTHING_KNOWN)
    rules = dict(document)
    _read(rules, "input", ROOT, reading, _MAPPING)
    _read(rules, "key", ROOT, reading, _SOURCE)
    _read(rules, "when", ROOT, reading, _CONDITION)
    for part, fields in (("signal", {"key": _SOURCE}), ("entity", _OF_ENTITY)):
        if isinstance(rules.get(part), dict):
            rules[part] = dict(rules[part])
            for name, form in fields.items():
                _read(rules[part], name, ROOT.key(part), reading, form)
    return rules, reading.problems


def _read(into: dict[str, Json], name: str, at: Place, reading: Reading, form: _Form) -> None:
    if into.get(name) is None:
        into.pop(name, None)
        return
    place = at.key(name)
    shape, compiles, code = form
    if shape is _MAPPING[0] and isinstance(into[name], str):  # the whole input by one source: `$.body`
        shape, compiles, code = _SOURCE
    value = shape.read(into[name], place, reading)
    if value is BAD:
        return
    try:
        compiles(value)
    except ExpressionError as problem:
        reading.problem(code, place, str(problem))
        return
    into[name] = value


_Form = tuple[Shape, Callable[[Any], object], str]
_SOURCE: _Form = (SourceValue(), lambda value: compile_source(value, ROOTS), "BAD_VALUE")
_MAPPING: _Form = (MappingValue(), lambda value: compile_mapping(value, ROOTS), "BAD_VALUE")
_CONDITION: _Form = (ConditionValue(), lambda value: compile_condition(value, ROOTS), "CONDITION_SYNTAX")
_OF_ENTITY = {"id": _SOURCE, "name": _SOURCE, "attributes": _MAPPING}

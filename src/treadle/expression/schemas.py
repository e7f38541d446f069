"""JSON Schema 2020-12, offline.

The only place that makes validators, because by default the library fetches remote references. Regular
expressions are bounded, and so is the number of subschemas that look at one value: alternatives of references
to alternatives double at every level, and explaining a failure of twenty levels would take gigabytes. Known
gap: the same doubling through `$id`s and anchors, or through arrays as deep as the data, is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import jsonschema_rs
import msgspec

from treadle.errors import ExpressionError
from treadle.expression.paths import format_path
from treadle.expression.words import clip
from treadle.model.errors import FieldProblem

SIZE_MAX = 256 * 1024
"""Bytes of JSON. The largest hand-written schemas have a tenth of it."""
PROBLEMS_MAX = 3
"""Problems told at once: enough to see a pattern, short enough for an event."""
FIELDS_MAX = 100
"""Problems of a form told at once: more fields than a person fills in."""
SUBSCHEMAS_MAX = 1_000
"""Subschemas that may look at one value, references followed. Generated unions have dozens."""
_MESSAGE_MAX = 200
_BACKTRACKS_MAX = 10_000
"""Steps of one regular expression. Only look-around and back-references need any."""
_MANY = ("allOf", "anyOf", "oneOf", "dependentSchemas")
_ONE = ("not", "if", "then", "else")


class Validator:
    """A compiled schema."""

    __slots__ = ("_validator",)

    def __init__(self, validator: Any) -> None:
        self._validator = validator

    def problem(self, value: Any) -> str | None:
        """The problems of a value, each with its place; None if there are none."""
        try:
            if self._validator.is_valid(value):
                return None
            return "; ".join(map(_told, islice(self._validator.iter_errors(value), PROBLEMS_MAX)))
        except ValueError as error:
            return f"$: not plain JSON: {clip(str(error), _MESSAGE_MAX)}"

    def problems(self, value: Any) -> tuple[FieldProblem, ...]:
        """Every problem of a value at once, for a form: a missing field is named by its own place."""
        try:
            if self._validator.is_valid(value):
                return ()
            return tuple(map(_field, islice(self._validator.iter_errors(value), FIELDS_MAX)))
        except ValueError as error:
            return (FieldProblem("$", f"not plain JSON: {clip(str(error), _MESSAGE_MAX)}"),)


def compile_schema(schema: Any) -> Validator | None:
    """A validator, or None if the schema accepts everything. Raises ExpressionError for a bad schema."""
    if schema is None or schema is True:
        return None
    if not isinstance(schema, dict | bool):
        raise _bad_schema("a schema is an object or a boolean")
    _refuse_the_oversized(schema)
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS_MAX)
    try:
        compiled = jsonschema_rs.Draft202012Validator(schema, offline=True, pattern_options=patterns)
    except jsonschema_rs.ValidationError as error:
        raise _bad_schema(error.message, _place(error.instance_path)) from None
    except ValueError as error:
        raise _bad_schema(str(error)) from None
    return Validator(compiled)


def _refuse_the_oversized(schema: Any) -> None:
    """Refuse a schema that is too deep or too large, before the library sees it: too much depth would end the
    process."""
    known: dict[str, int] = {}
    try:
        size = len(msgspec.json.encode(schema))
        looks = max((_looks(part, schema, known) for part in _objects(schema)), default=1)
    except RecursionError:
        raise _bad_schema("the schema is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise _bad_schema(f"the schema is not plain JSON: {error}") from None
    if size > SIZE_MAX:
        raise _bad_schema(f"a schema has at most {SIZE_MAX} bytes, this one has {size}")
    if looks > SUBSCHEMAS_MAX:
        raise _bad_schema(f"more than {SUBSCHEMAS_MAX} subschemas look at one value")


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for child in _children(value):
        yield from _objects(child)


def _looks(schema: Any, root: Any, known: dict[str, int]) -> int:
    """How many subschemas look at the value that `schema` looks at; `known` remembers references."""
    if not isinstance(schema, dict):
        return 1
    same_value = [schema[keyword] for keyword in _ONE if keyword in schema]
    for keyword in _MANY:
        same_value += _children(schema.get(keyword))
    looks = sum(_looks(part, root, known) for part in same_value)
    return 1 + looks + _looks_of_reference(schema.get("$ref"), root, known)


def _looks_of_reference(reference: Any, root: Any, known: dict[str, int]) -> int:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return 0
    if reference not in known:
        known[reference] = 0  # a schema that refers back to itself is counted where it began
        known[reference] = _looks(_resolve(reference, root), root, known)
    return known[reference]


def _resolve(reference: str, root: Any) -> Any:
    """The part of the schema a local JSON pointer leads to; None if there is none, which the library will report."""
    value = root
    unquoted = re.sub("%([0-9A-Fa-f]{2})", lambda code: chr(int(code[1], 16)), reference)
    for step in unquoted.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _told(error: Any) -> str:
    return f"{_place(error.instance_path)}: {clip(error.message, _MESSAGE_MAX)}"


def _field(error: Any) -> FieldProblem:
    missing = getattr(error.kind, "property", None) if error.kind.name == "required" else None
    path = [*error.instance_path, *([missing] if missing is not None else [])]
    return FieldProblem(_place(path), clip(error.message, _MESSAGE_MAX))


def _bad_schema(message: str, where: str = "") -> ExpressionError:
    return ExpressionError(clip(message, _MESSAGE_MAX), where, "BAD_SCHEMA")


def _place(path: list[str | int]) -> str:
    return format_path(tuple(path))

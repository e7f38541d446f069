"""The shape of a condition (1.5): CEL text, or the structured forms. Canonical: a map with `type`.

Owns the forms and their parts; a mistake inside one is CONDITION_SYNTAX. `expression` compiles them.
"""

from __future__ import annotations

import re
from typing import Any

from treadle.language.phrases import canonical_cel, canonical_path, is_computed, path_problem, without_strings
from treadle.language.problem import did_you_mean
from treadle.language.reading import Place, Reading
from treadle.language.shapes import BAD, Book, Json, Schema, Shape, found

_LAST_ERROR = re.compile(r"(?<![\w.])_last_error\b|\$\._last_error\b")
OPERATORS = ("==", "!=", "<", "<=", ">", ">=")


class ConditionValue(Shape):
    """A condition (1.5). Canonical: a map with `type`; CEL text has become `{type: cel, expr}`."""

    wants = "a condition: CEL text, or a map with `type`"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, bool):
            return {"type": "cel", "expr": "true" if value else "false"}
        if isinstance(value, str) and value.strip():
            return {"type": "cel", "expr": canonical_cel(value)}
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        if is_computed(value):
            value = {"type": "cel", "expr": value["cel"]}
        return self._structured(value, at, reading)

    def _structured(self, value: dict[str, Json], at: Place, reading: Reading) -> Any:
        kind = value.get("type")
        form = _FORMS.get(kind) if isinstance(kind, str) else None
        if form is None:
            hint = did_you_mean(kind, _FORMS) if isinstance(kind, str) else None
            known = ", ".join(_FORMS)
            reading.problem("CONDITION_SYNTAX", at, f"a condition's `type` is one of {known}, not {found(kind)}", hint)
            return BAD
        result: dict[str, Any] = {"type": kind}
        for name, part in form.items():
            if name not in value:
                reading.problem("CONDITION_SYNTAX", at, f"a condition of type `{kind}` needs `{name}`")
                return BAD
            result[name] = part.read(value[name], at.key(name), reading)
        for key in value.keys() - form.keys() - {"type"}:
            hint = did_you_mean(key, form) or f"known fields: {', '.join(form)}"
            reading.problem(
                "UNKNOWN_FIELD",
                at.key(key),
                f"a condition of type `{kind}` has no field `{key}`",
                hint,
                on_key=True,
            )
        return BAD if any(part is BAD for part in result.values()) else result

    def schema(self, book: Book) -> Schema:
        return book.entry("Condition", lambda: _condition_schema(book))


def _condition_schema(book: Book) -> Schema:
    structured = [
        {
            "type": "object",
            "properties": {"type": {"const": kind}} | {name: part.schema(book) for name, part in form.items()},
            "required": ["type", *form],
            "additionalProperties": False,
        }
        for kind, form in _FORMS.items()
    ]
    computed = {"type": "object", "properties": {"cel": {"type": "string"}}, "required": ["cel"]}
    text = {"type": "string", "description": "A CEL expression, such as `state.score >= 80`."}
    return {"anyOf": [text, {"type": "boolean"}, *structured, computed | {"additionalProperties": False}]}


class _Syntax(Shape):
    """Parts of a condition: a mistake in them is a syntax error of the condition."""

    def wrong(self, value: Json, at: Place, reading: Reading, hint: str | None = None) -> Any:
        reading.problem("CONDITION_SYNTAX", at, f"expected {self.wants}, found {found(value)}", hint)
        return BAD


class _FieldPath(_Syntax):
    """The path of a condition's `field`; also wrapped once more: `{field: state.x}`."""

    wants = "a path such as `state.score`"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, dict) and set(value) == {"field"}:
            value, at = value["field"], at.key("field")
        if not isinstance(value, str) or not value.strip():
            return self.wrong(value, at, reading)
        path = canonical_path(value.strip())
        if (message := path_problem(path)) is not None:
            reading.problem("CONDITION_SYNTAX", at, message)
            return BAD
        return path

    def describe(self) -> Schema:
        text = {"type": "string", "minLength": 1}
        wrapped = {"type": "object", "properties": {"field": text}, "required": ["field"]}
        return {"anyOf": [text, wrapped | {"additionalProperties": False}]}


class _Operand(_Syntax):
    wants = "{field: path} or {literal: value}"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, dict) and set(value) == {"literal"}:
            return value
        if isinstance(value, dict) and set(value) == {"field"}:
            path = _FieldPath().read(value["field"], at.key("field"), reading)
            return BAD if path is BAD else {"field": path}
        hint = f"write {{literal: {value}}}" if isinstance(value, int | float) else None
        if isinstance(value, str):
            hint = f"write {{field: {value}}} or {{literal: {value}}}"
        return self.wrong(value, at, reading, hint)

    def schema(self, book: Book) -> Schema:
        field = {"type": "object", "properties": {"field": _FieldPath().schema(book)}, "required": ["field"]}
        literal = {"type": "object", "properties": {"literal": {}}, "required": ["literal"]}
        return {"anyOf": [field | {"additionalProperties": False}, literal | {"additionalProperties": False}]}


class _Operator(_Syntax):
    wants = "one of " + ", ".join(f"`{operator}`" for operator in OPERATORS)

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, str) and value in OPERATORS:
            return value
        near = {"=": "==", "<>": "!=", "=<": "<=", "=>": ">=", "eq": "=="}.get(str(value))
        return self.wrong(value, at, reading, f"did you mean `{near}`?" if near else None)

    def describe(self) -> Schema:
        return {"enum": list(OPERATORS)}


class _Values(_Syntax):
    wants = "a list of values"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        return value if isinstance(value, list) else self.wrong(value, at, reading)

    def describe(self) -> Schema:
        return {"type": "array"}


class _Count(_Syntax):
    wants = "a whole number"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        sound = isinstance(value, int) and not isinstance(value, bool)
        return value if sound else self.wrong(value, at, reading)

    def describe(self) -> Schema:
        return {"type": "integer"}


class _Conditions(_Syntax):
    wants = "a list of conditions"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, list) or not value:
            return self.wrong(value, at, reading)
        parts = [ConditionValue().read(part, at.item(index), reading) for index, part in enumerate(value)]
        return BAD if any(part is BAD for part in parts) else parts

    def schema(self, book: Book) -> Schema:
        return {"type": "array", "minItems": 1, "items": ConditionValue().schema(book)}


class _CelSyntax(_Syntax):
    wants = "a CEL expression"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        return canonical_cel(value) if isinstance(value, str) and value.strip() else self.wrong(value, at, reading)

    def describe(self) -> Schema:
        return {"type": "string", "minLength": 1}


_FORMS: dict[str, dict[str, Shape]] = {
    "comparison": {"left": _Operand(), "operator": _Operator(), "right": _Operand()},
    "exists": {"field": _FieldPath()},
    "in_set": {"field": _FieldPath(), "values": _Values()},
    "array_length": {"field": _FieldPath(), "operator": _Operator(), "value": _Count()},
    "and": {"conditions": _Conditions()},
    "or": {"conditions": _Conditions()},
    "not": {"condition": ConditionValue()},
    "cel": {"expr": _CelSyntax()},
}


def reads_last_error(condition: Json) -> bool:
    """Whether a canonical condition looks at `_last_error`: then it is about failures (1.4, `on`)."""
    if isinstance(condition, list):
        return any(reads_last_error(part) for part in condition)
    if not isinstance(condition, dict):
        return False
    if condition.get("type") == "cel":
        return bool(_LAST_ERROR.search(without_strings(condition["expr"])))
    field = condition.get("field")
    if isinstance(field, str) and _LAST_ERROR.search(field):
        return True
    return any(reads_last_error(condition.get(key)) for key in ("left", "right", "condition", "conditions"))

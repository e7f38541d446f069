"""Forms of gates: a JSON Schema as fields that a browser can show, and what a browser sends as data.

Owns the names of the fields, the widget of each, and the way back. Promises that every entry of a browser becomes some
data and nothing is decided here: the kernel checks the data against the schema, and its problems are found again by
the field's place. Must not check anything itself. Display keywords (`x-order`, `x-widget`, `x-help`) change nothing but
the looks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

Json = Any
DEPTH_MAX = 4
"""Objects inside objects that become fields of their own; anything deeper is written as JSON."""
RADIOS_MAX = 5
"""Up to so many choices are all shown; more become a list to choose from."""
WHOLE = "data"
"""The name of the only field of a form whose answer is no object."""


class FormChoice(Struct, frozen=True):
    """One value that may be chosen."""

    text: str
    """As a browser sends it."""
    value: Json
    label: str
    help: str | None = None


class FormField(Struct, kw_only=True):
    """One field."""

    name: str
    path: tuple[str, ...]
    label: str
    widget: str
    """text, number, textarea, lines, json, radio, select, checkboxes, date, datetime, email, url, file, hidden or
    group."""
    help: str | None = None
    required: bool = False
    default: Json = None
    choices: tuple[FormChoice, ...] = ()
    fields: tuple[FormField, ...] = ()
    limits: dict[str, Any] = {}
    """Attributes that help to fill it in: min, max, maxlength."""

    @property
    def place(self) -> str:
        """Where a problem with it is, as the kernel says."""
        return "$" + "".join(_step(part) for part in self.path)

    @property
    def id(self) -> str:
        return "f-" + re.sub(r"[^A-Za-z0-9-]", lambda match: f"_{ord(match[0]):x}", self.name)


def _step(part: str) -> str:
    return f".{part}" if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", part) else f"[{msgspec.json.encode(part).decode()}]"


def fields_of(form: Json) -> tuple[FormField, ...]:
    """The fields of a form; none for a gate without one."""
    if not isinstance(form, dict) or not form:
        return ()
    schema = _resolved(form, form)
    if "properties" in schema or schema.get("type") == "object":
        return _properties(schema, form, (), 0)
    return (_field(WHOLE, (), schema, form, required=True, depth=0),)


def _properties(schema: dict[str, Json], root: Json, path: tuple[str, ...], depth: int) -> tuple[FormField, ...]:
    known = schema.get("properties")
    known = known if isinstance(known, dict) else {}
    required = schema.get("required")
    needed: list[Json] = required if isinstance(required, list) else []
    order = schema.get("x-order")
    first = {name: place for place, name in enumerate(order)} if isinstance(order, list) else {}

    def rank(entry: tuple[int, tuple[str, Json]]) -> tuple[float, float, int]:
        at, (name, part) = entry
        own = part.get("x-order") if isinstance(part, dict) else None
        number = float(own) if isinstance(own, int | float) and not isinstance(own, bool) else float("inf")
        return first.get(name, float("inf")), number, at

    listed = [entry for _, entry in sorted(enumerate(known.items()), key=rank)]
    found = []
    for name, part in listed:
        inner = _resolved(part, root)
        found.append(_field(_named(path, name), (*path, name), inner, root, required=name in needed, depth=depth))
    return tuple(found)


def _named(path: tuple[str, ...], name: str) -> str:
    """The name of a field: the property's own, unless it could be taken for a path or for a field of ours."""
    parts = [part.replace("~", "~0").replace(".", "~1") for part in (*path, name)]
    text = ".".join(parts)
    return f"~2{text[1:]}" if text.startswith("_") else text


def _resolved(schema: Json, root: Json) -> dict[str, Json]:
    """A schema with its local reference followed; what is not understood becomes a field for JSON."""
    seen = 0
    while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and seen < DEPTH_MAX:
        target: Json = root
        for step in schema["$ref"].removeprefix("#").split("/")[1:]:
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **rest} if isinstance(target, dict) else rest
        seen += 1
    return schema if isinstance(schema, dict) else {}


def _field(
    name: str, path: tuple[str, ...], schema: dict[str, Json], root: Json, *, required: bool, depth: int
) -> FormField:
    title = schema.get("title")
    label = title if isinstance(title, str) and title else _words(path[-1] if path else "Your answer")
    helps = [schema.get(key) for key in ("description", "x-help")]
    help_text = " ".join(text for text in helps if isinstance(text, str) and text) or None
    choices = _choices(schema)
    widget = _widget(schema, choices, depth)
    inner = _properties(schema, root, path, depth + 1) if widget == "group" else ()
    return FormField(
        name=name,
        path=path,
        label=label,
        widget=widget,
        help=help_text,
        required=required,
        default=schema.get("const", schema.get("default")),
        choices=choices,
        fields=inner,
        limits=_limits(schema),
    )


def _words(name: str) -> str:
    text = re.sub(r"[_-]+", " ", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)).strip() or name
    return text[:1].upper() + text[1:]


def _types(schema: dict[str, Json]) -> list[str]:
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return [each for each in kinds if isinstance(each, str) and each != "null"]


def _choices(schema: dict[str, Json]) -> tuple[FormChoice, ...]:
    if isinstance(schema.get("enum"), list):
        return tuple(_choice(value) for value in schema["enum"])
    for keyword in ("oneOf", "anyOf"):
        parts = schema.get(keyword)
        if isinstance(parts, list) and parts and all(isinstance(part, dict) and "const" in part for part in parts):
            return tuple(_choice(part["const"], part.get("title"), part.get("description")) for part in parts)
    if _types(schema) == ["boolean"]:
        return (_choice(True, "Yes"), _choice(False, "No"))
    if _types(schema) == ["array"] and isinstance(schema.get("items"), dict):
        return _choices(schema["items"]) if "boolean" not in _types(schema["items"]) else ()
    return ()


def _choice(value: Json, label: Json = None, help_text: Json = None) -> FormChoice:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    shown = label if isinstance(label, str) and label else _words(text) if isinstance(value, str) and value else text
    return FormChoice(text, value, shown or "(empty)", help_text if isinstance(help_text, str) else None)


_FORMATS = {"date": "date", "date-time": "datetime", "email": "email", "uri": "url"}


def _widget(schema: dict[str, Json], choices: Sequence[FormChoice], depth: int) -> str:
    wanted, kinds = schema.get("x-widget"), _types(schema)
    if wanted in ("hidden", "file") or ("const" in schema and wanted is None):
        return str(wanted or "hidden")
    if kinds == ["array"]:
        return "checkboxes" if choices else "lines" if _is_text(schema.get("items")) else "json"
    if choices:
        return str(wanted) if wanted in ("radio", "select") else "radio" if len(choices) <= RADIOS_MAX else "select"
    if kinds == ["object"] or "properties" in schema:
        return "group" if isinstance(schema.get("properties"), dict) and depth < DEPTH_MAX else "json"
    if kinds in (["integer"], ["number"], ["integer", "number"], ["number", "integer"]):
        return "number"
    if kinds == ["string"]:
        if wanted in ("textarea", "date"):
            return str(wanted)
        longest = schema.get("maxLength")
        long = isinstance(longest, int) and longest > 200
        return _FORMATS.get(schema.get("format", ""), "textarea" if long else "text")
    return "json"


def _is_text(schema: Json) -> bool:
    return isinstance(schema, dict) and _types(schema) == ["string"]


def _limits(schema: dict[str, Json]) -> dict[str, Any]:
    found = {}
    for keyword, attribute in (("minimum", "min"), ("maximum", "max"), ("maxLength", "maxlength")):
        value = schema.get(keyword)
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[attribute] = value
    return found


Entries = Mapping[str, Sequence[str]]
"""What a browser has sent: name → values, in order."""


def data_of(fields: Sequence[FormField], entries: Entries) -> Json:
    """The data that entries stand for. A field that was left empty is not part of it."""
    if len(fields) == 1 and not fields[0].path:
        found = _value(fields[0], entries)
        return None if found is msgspec.UNSET else found
    return _object(fields, entries)


def _object(fields: Sequence[FormField], entries: Entries) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for field in fields:
        if field.widget == "group":
            inner = _object(field.fields, entries)
            if inner or field.required:
                found[field.path[-1]] = inner
            continue
        value = _value(field, entries)
        if value is not msgspec.UNSET:
            found[field.path[-1]] = value
    return found


def _value(field: FormField, entries: Entries) -> Json:
    texts = entries.get(field.name, ())
    if field.widget == "checkboxes":
        return [_chosen(field, text) for text in texts]
    text = texts[0].replace("\r\n", "\n") if texts else ""
    if field.widget == "hidden" and not texts:
        return field.default if field.default is not None else msgspec.UNSET
    if not text.strip():
        return msgspec.UNSET
    if field.choices:
        return _chosen(field, text)
    if field.widget == "lines":
        return [line.strip() for line in text.split("\n") if line.strip()]
    if field.widget in ("number", "json") or (field.widget == "hidden" and not isinstance(field.default, str)):
        return _parsed(text)
    if field.widget == "datetime" and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d", text):
        return f"{text}:00Z"
    return text


def _parsed(text: str) -> Json:
    """A number or other JSON; what cannot be read stays text, which the schema then refuses."""
    try:
        return msgspec.json.decode(text.strip())
    except msgspec.DecodeError:
        return text


def _chosen(field: FormField, text: str) -> Json:
    return next((choice.value for choice in field.choices if choice.text == text), text)


def entries_of(fields: Sequence[FormField]) -> dict[str, list[str]]:
    """The entries that a form begins with: the defaults of its schema."""
    found: dict[str, list[str]] = {}
    for field in fields:
        if field.widget == "group":
            found |= entries_of(field.fields)
        elif field.default is not None:
            several = field.default if isinstance(field.default, list) and field.widget == "checkboxes" else None
            found[field.name] = [_text(value) for value in several] if several is not None else [_shown(field)]
    return found


def _shown(field: FormField) -> str:
    if field.widget == "lines" and isinstance(field.default, list):
        return "\n".join(map(str, field.default))
    return _text(field.default)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

"""Shapes of expressions that read and write data: paths, sources, mappings, schemas (1.6, 1.10).

Owns their canonical spelling, which is the only one `graph` and `kernel` know. Whether a name in them
exists, and whether CEL compiles, is not decided here: that needs the whole workflow (`checks`).
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

from treadle.errors import PathSyntax
from treadle.expression.paths import parse_path
from treadle.language.reading import Place, Reading
from treadle.language.shapes import BAD, Book, Json, Schema, Shape, found

_SEED_ERROR = re.compile(r"\bstate\._last_error\b")
_STRING = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")


def canonical_path(text: str) -> str:
    """`state.x` → `$.state.x` (1.10); the older spelling `state._last_error` → `$._last_error`."""
    path = text if text.startswith("$") else "$" + text if text.startswith("[") else "$." + text
    return re.sub(r"^\$\.state\._last_error\b", "$._last_error", path)


def canonical_cel(text: str) -> str:
    """CEL with the older spelling `state._last_error` read as `_last_error`, string literals untouched."""
    if "_last_error" not in text:
        return text.strip()
    parts = _STRING.split(text.strip())
    return "".join(part if index % 2 else _SEED_ERROR.sub("_last_error", part) for index, part in enumerate(parts))


def without_strings(text: str) -> str:
    """CEL with its string literals emptied, so that names can be looked for."""
    return _STRING.sub("''", text)


def path_problem(path: str) -> str | None:
    """The problem of a path's syntax, if there is one."""
    try:
        parse_path(path)
    except PathSyntax as error:
        return f"{error.message} at position {error.position + 1} of the path `{path[:80]}`"
    return None


class PathText(Shape):
    """A path where only a path can stand: the leading `$.` may be left out."""

    wants = "a path such as `state.items`"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, str) or not value.strip():
            return self.wrong(value, at, reading)
        path = canonical_path(value.strip())
        if (message := path_problem(path)) is not None:
            reading.problem("BAD_VALUE", at, message)
            return BAD
        return path

    def describe(self) -> Schema:
        return {"type": "string", "minLength": 1, "examples": ["state.items", "$.input.count"]}


class CelText(Shape):
    """A CEL expression."""

    wants = "a CEL expression"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, str) or not value.strip():
            return self.wrong(value, at, reading)
        return canonical_cel(value)

    def describe(self) -> Schema:
        return {"type": "string", "minLength": 1, "description": "A CEL expression."}


class SourceValue(Shape):
    """A source (1.6): `$…` is a path, `{cel: …}` is computed, `{literal: …}` and any other JSON is itself."""

    wants = "a source"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, str) and value.startswith("$"):
            path = canonical_path(value)
            if (message := path_problem(path)) is not None:
                reading.problem("BAD_VALUE", at, message, "for text that begins with `$` write {literal: …}")
                return BAD
            return path
        if is_computed(value):
            expr = CelText().read(value["cel"], at.key("cel"), reading)
            return BAD if expr is BAD else {"cel": expr}
        return value

    def schema(self, book: Book) -> Schema:
        return book.entry(
            "Source",
            lambda: {
                "description": "`$.path` reads, {cel: …} computes, {literal: v} or any other JSON is itself.",
                "examples": ["$.state.items[0]", {"cel": "input.n + 1"}, {"literal": "$5"}],
            },
        )


def is_computed(value: Json) -> bool:
    """Whether a source is `{cel: …}`."""
    return isinstance(value, dict) and set(value) == {"cel"}


class MappingValue(Shape):
    """Target key → source."""

    wants = "a map from names to sources"
    source = SourceValue()

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        results: dict[str, Any] = {}
        for key, part in value.items():
            result = self.source.read(part, at.key(key), reading)
            if result is not BAD:
                results[key] = result
        return results

    def schema(self, book: Book) -> Schema:
        return {"type": "object", "additionalProperties": self.source.schema(book)}


class TargetPath(PathText):
    """A place that may be written: below `state` or `output`. Written with its leading `$.`, or, as a key, without."""

    wants = "a target such as `state.votes` or `output.total`"

    def __init__(self, *roots: str) -> None:
        self.roots = roots or ("state", "output")

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        path = super().read(value, at, reading)
        if path is BAD:
            return BAD
        steps = parse_path(path)
        if steps[:1] == ("input",):
            hint = f"write to `state.{'.'.join(map(str, steps[1:])) or 'name'}` instead"
            reading.problem("INPUT_NOT_WRITABLE", at, f"`{value}` cannot be written: input never changes", hint)
            return BAD
        if not steps or steps[0] not in self.roots or len(steps) < 2:
            written = value.removeprefix("$.")
            meant = get_close_matches(written.partition(".")[0], self.roots, n=1) if "." in written else []
            near = (
                f"did you mean `{meant[0]}.{written.partition('.')[2]}`?"
                if meant
                else f"did you mean `state.{written}`?"
            )
            return self.wrong(value, at, reading, None if steps[:1] in (("state",), ("output",)) else near)
        return path


class TargetMapping(Shape):
    """Target path → source in the task's output."""

    wants = "a map from targets (`state.…`, `output.…`) to sources"
    target = TargetPath()
    source = SourceValue()

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        results: dict[str, Any] = {}
        for key, part in value.items():
            target = self.target.read(key, at.key(key), reading)
            result = self.source.read(part, at.key(key), reading)
            if target is BAD or result is BAD:
                continue
            canonical = target.removeprefix("$.")
            if canonical in results:
                reading.problem("BAD_VALUE", at.key(key), f"the target `{canonical}` is written twice", on_key=True)
            elif canonical != key:
                reading.note(Place((*at.written, key), (*at.canonical, canonical)))
            results[canonical] = result
        return results

    def schema(self, book: Book) -> Schema:
        return {
            "type": "object",
            "propertyNames": {"pattern": r"^(\$\.?)?(state|output)[.\[]|^\$\[|^\["},
            "additionalProperties": self.source.schema(book),
        }


class JsonSchemaValue(Shape):
    """A JSON Schema; compiled by the checks."""

    wants = "a JSON Schema"

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if isinstance(value, dict | bool):
            return value
        reading.problem("BAD_SCHEMA", at, f"a JSON Schema is a map, found {found(value)}")
        return BAD

    def describe(self) -> Schema:
        return {"anyOf": [{"type": "object"}, {"type": "boolean"}], "description": "A JSON Schema (2020-12)."}

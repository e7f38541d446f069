"""Records: maps with known fields, the rows of the grammar's tables.

Owns unknown fields, missing fields, other spellings and "exactly one of". A record reads into a canonical
Struct (or a plain dict), and writes it back without what equals its default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from treadle.language.problem import did_you_mean
from treadle.language.reading import Place, Reading
from treadle.language.shapes import BAD, Book, Json, Schema, Shape, found


@dataclass(frozen=True, slots=True)
class Field:
    """One row of a table."""

    name: str
    shape: Shape
    doc: str
    also: tuple[str, ...] = ()
    required: bool = False
    keeps_null: bool = False
    """null is a value here; for other fields it means "not given"."""
    attribute: str | None = None
    """The Struct's attribute where it differs from the name (`from` → `from_`)."""
    default: Json = None
    """For the JSON Schema's reader only; the Struct has the real one."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """Of these fields at most one may be given, or exactly one."""

    names: tuple[str, ...]
    required: bool = False


class Record(Shape):
    """A map with known fields. `of` is the Struct it becomes; without it, a dict."""

    wants = "a map"

    def __init__(
        self,
        name: str,
        doc: str,
        fields: Sequence[Field],
        of: type[msgspec.Struct] | None = None,
        *,
        make: Callable[[dict[str, Any]], Any] | None = None,
        unmake: Callable[[Any], dict[str, Any]] | None = None,
        one_of: Sequence[OneOf] = (),
        hints: Mapping[str, str] | None = None,
        unknown: str = "UNKNOWN_FIELD",
    ) -> None:
        self._unknown_code = unknown
        self.name, self.doc, self.fields, self.of = name, doc, tuple(fields), of
        self.one_of = tuple(one_of)
        self.hints = dict(hints or {})
        self.spellings = {spelling: field for field in fields for spelling in (field.name, *field.also)}
        self._make = make
        self._unmake = unmake

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        values, sound = self.read_fields(value, at, reading)
        return self.make(values) if sound else BAD

    def read_fields(self, value: dict[str, Json], at: Place, reading: Reading) -> tuple[dict[str, Any], bool]:
        """The fields' canonical values, and whether enough is there to make the record."""
        values: dict[str, Any] = {}
        given: dict[str, str] = {}
        for key, part in value.items():
            field = self.spellings.get(key)
            if field is None:
                self._unknown(key, at, reading)
            elif field.name in given:
                self._twice(field, key, given[field.name], at, reading)
            elif part is not None or field.keeps_null:
                given[field.name] = key
                place = at.key(field.name, key)
                if key != field.name:
                    reading.note(place)
                result = field.shape.read(part, place, reading)
                if result is not BAD:
                    values[field.name] = result
        sound = self._required(values, given, at, reading)
        return values, self._exclusive(values, given, at, reading) and sound

    def _unknown(self, key: str, at: Place, reading: Reading) -> None:
        if reading.is_full():
            reading.drop(self._unknown_code)
            return
        known = [field.name for field in self.fields]
        hint = self.hints.get(key) or did_you_mean(key, self.spellings) or f"known fields: {', '.join(known)}"
        article = "an" if self.name[0].lower() in "aeiou" else "a"
        message = f"{article} {words_of(self.name)} has no field `{key[:60]}`"
        reading.problem(self._unknown_code, at.key(key), message, hint, on_key=True)

    def _twice(self, field: Field, key: str, other: str, at: Place, reading: Reading) -> None:
        message = f"`{key}` and `{other}` are two spellings of the same field `{field.name}`"
        reading.problem("BAD_VALUE", at.key(key), message, "keep one of them", on_key=True)

    def _required(self, values: dict[str, Any], given: dict[str, str], at: Place, reading: Reading) -> bool:
        sound = True
        for field in self.fields:
            if field.required and field.name not in values:
                sound = False
                if field.name not in given:
                    message = f"{words_of(self.name)} needs the field `{field.name}`"
                    reading.problem("BAD_VALUE", at, message, field.doc.split(".")[0])
        return sound

    def _exclusive(self, values: dict[str, Any], given: dict[str, str], at: Place, reading: Reading) -> bool:
        sound = True
        for rule in self.one_of:
            present = [name for name in given if name in rule.names]
            listed = ", ".join(f"`{name}`" for name in rule.names)
            if len(present) > 1:
                sound = False
                reading.problem(
                    "BAD_VALUE", at.key(given[present[1]]), f"only one of {listed} may be given", on_key=True
                )
            elif rule.required and not present:
                sound = False
                reading.problem("BAD_VALUE", at, f"{words_of(self.name)} needs one of {listed}")
            elif rule.required and present[0] not in values:
                sound = False
        return sound

    def make(self, values: dict[str, Any]) -> Any:
        """The canonical record from its fields' values."""
        if self._make is not None:
            return self._make(values)
        if self.of is None:
            return values
        return self.of(
            **{field.attribute or field.name: values[field.name] for field in self.fields if field.name in values}
        )

    def unmake(self, record: Any) -> dict[str, Any]:
        """The fields' values of a canonical record, without those that equal their default."""
        if self._unmake is not None:
            return self._unmake(record)
        return given_fields(record) if self.of is not None else record

    def write(self, value: Any) -> Json:
        values = self.unmake(value)
        return {
            field.name: field.shape.write(values[field.name])
            for field in self.fields
            if field.name in values and (values[field.name] is not None or field.keeps_null)
        }

    def schema(self, book: Book) -> Schema:
        return book.entry(self.name, lambda: self.described(book))

    def described(self, book: Book) -> Schema:
        """The record's own JSON Schema, every spelling included."""
        properties: dict[str, Schema] = {}
        for field in self.fields:
            properties[field.name] = self._property(field, book)
            for spelling in field.also:
                same = f"#/$defs/{self.name}/properties/{field.name}"
                properties[spelling] = {"$ref": same, "description": f"Another spelling of `{field.name}`."}
        schema: Schema = {
            "type": "object",
            "description": self.doc,
            "properties": properties,
            "additionalProperties": False,
        }
        needed = [self._needed(field) for field in self.fields if field.required]
        needed += [
            {"anyOf": [part for name in rule.names for part in (self._needed(self.spellings[name]),)]}
            for rule in self.one_of
            if rule.required
        ]
        return schema | ({"allOf": needed} if needed else {})

    def _property(self, field: Field, book: Book) -> Schema:
        schema = field.shape.schema(book)
        if not field.required and not field.keeps_null:
            schema = {"anyOf": [schema, {"type": "null"}]} if schema else {}
        described: Schema = {"description": field.doc} | schema
        return described | ({"default": field.default} if field.default is not None else {})

    @staticmethod
    def _needed(field: Field) -> Schema:
        spellings = (field.name, *field.also)
        return (
            {"anyOf": [{"required": [spelling]} for spelling in spellings]}
            if field.also
            else {"required": [field.name]}
        )


def given_fields(record: Any) -> dict[str, Any]:
    """A Struct's fields by their canonical names, without those that equal their default."""
    values: dict[str, Any] = {}
    for info in msgspec.structs.fields(record):
        value = getattr(record, info.name)
        default = info.default if info.default_factory is msgspec.NODEFAULT else info.default_factory()
        if value is not msgspec.UNSET and (default is msgspec.NODEFAULT or value != default):
            values[info.encode_name] = value
    return values


def words_of(name: str) -> str:
    """`EntityMove` → `entity move`: a record's name in a sentence."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


class OneKey(Shape):
    """A map with exactly one of several keys, each with its own shape: `{m_of_n: 2}`. Canonical: (key, value)."""

    def __init__(self, keys: Mapping[str, tuple[Shape, str]], also: Mapping[str, str] | None = None) -> None:
        self.keys = dict(keys)
        self.also = dict(also or {})
        self.wants = "a map with one of " + ", ".join(f"`{key}`" for key in keys)

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict) or len(value) != 1:
            return self.wrong(value, at, reading)
        spelled, part = next(iter(value.items()))
        key = self.also.get(spelled) or spelled
        if key not in self.keys:
            hint = did_you_mean(key, self.keys) or f"known: {', '.join(self.keys)}"
            reading.problem("UNKNOWN_FIELD", at.key(spelled), f"`{spelled[:60]}` is not known here", hint, on_key=True)
            return BAD
        result = self.keys[key][0].read(part, at.key(key, spelled), reading)
        return BAD if result is BAD else (key, result)

    def write(self, value: Any) -> Json:
        key, part = value
        return {key: self.keys[key][0].write(part)}

    def schema(self, book: Book) -> Schema:
        names = {**{key: key for key in self.keys}, **self.also}
        return {
            "type": "object",
            "properties": {
                spelled: {"description": self.keys[key][1]} | self.keys[key][0].schema(book)
                for spelled, key in names.items()
            },
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        }


__all__ = ["Field", "OneKey", "OneOf", "Record", "found", "given_fields"]

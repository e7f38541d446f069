"""Actions: `{kind, ...config, execution}`. The kind decides which keys are known."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from treadle.language.grammar.kinds import KINDS
from treadle.language.grammar.retry import EXECUTION
from treadle.language.problem import did_you_mean
from treadle.language.reading import Place, Reading
from treadle.language.record import Field, Record
from treadle.language.shapes import ANYTHING, BAD, Book, Json, Schema, Shape, Text
from treadle.model import definition as d


def needed_keys(kind: str) -> tuple[Field, ...]:
    """The keys an action of this kind needs, from its config or from the step's input."""
    record = KINDS.get(kind)
    return tuple(field for field in record.fields if field.required) if record is not None else ()


class ActionShape(Shape):
    """`{kind, ...config, execution}`: the kind decides which keys are known."""

    wants = "an action: a map with `kind`"
    _frame = (
        Field("kind", Text("an action kind"), "What it does", required=True),
        Field("execution", EXECUTION, "Timeout and retry of the action"),
    )

    def read(self, value: Json, at: Place, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return self.wrong(value, at, reading)
        record = self._record(value, reading)
        if record is None:
            return self._no_kind(value.get("kind"), at, reading)
        values, sound = record.read_fields(value, at, reading)
        if not sound:
            return BAD
        execution = values.pop("execution", None)
        return d.Action(kind=values.pop("kind"), config=values, execution=execution)

    def _framed(self, config: Record) -> Record:
        # Whether a needed key is missing depends on what the step's input brings: `checks.tasks` decides it.
        fields = [replace(field, required=False) for field in config.fields]
        return Record(config.name, config.doc, (*self._frame, *fields), one_of=config.one_of)

    @cached_property
    def _ours(self) -> dict[str, Record]:
        return {kind: self._framed(config) for kind, config in KINDS.items()}

    def _record(self, value: dict[str, Json], reading: Reading) -> Record | None:
        """The fields of an action of this kind; None if there is no such kind."""
        kind = value.get("kind")
        others = reading.settings.kinds or {}
        if not isinstance(kind, str) or kind in KINDS or kind not in others:
            return self._ours.get(kind) if isinstance(kind, str) else None
        known = others[kind]
        keys = value.keys() - {"kind", "execution"} if known is None else known
        fields = [Field(key, ANYTHING, "Configuration", keeps_null=True) for key in sorted(keys)]
        return self._framed(Record(f"{kind} action", "A third-party action.", fields))

    def _no_kind(self, kind: Json, at: Place, reading: Reading) -> Any:
        known = [*KINDS, *(reading.settings.kinds or {})]
        if not isinstance(kind, str):
            reading.problem("BAD_VALUE", at, "an action needs the field `kind`", f"one of {', '.join(known)}")
        else:
            hint = did_you_mean(kind, known) or f"known kinds: {', '.join(known)}"
            reading.problem("BAD_VALUE", at.key("kind"), f"there is no action kind `{kind[:60]}`", hint)
        return BAD

    def write(self, value: Any) -> Json:
        record = KINDS.get(value.kind)
        config = record.write(value.config) if record is not None else dict(value.config)
        execution = {"execution": EXECUTION.write(value.execution)} if value.execution is not None else {}
        return {"kind": value.kind, **config, **execution}

    def schema(self, book: Book) -> Schema:
        return book.entry("Action", lambda: self._describe(book))

    def _describe(self, book: Book) -> Schema:
        branches = [
            {"if": {"properties": {"kind": {"const": kind}}}, "then": record.schema(book)}
            for kind, record in self._ours.items()
        ]
        return {
            "type": "object",
            "description": "One operation. Which fields it has depends on `kind`.",
            "properties": {"kind": {"anyOf": [{"enum": list(KINDS)}, {"type": "string"}]}},
            "required": ["kind"],
            "allOf": branches,
        }


ACTION = ActionShape()

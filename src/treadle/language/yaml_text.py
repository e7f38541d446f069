"""YAML 1.2 text → plain values with positions, one per document.

The scanner and parser are ruamel.yaml's; what their events mean is decided here, because safety is: only
true/false are booleans, dates stay text, keys are text, tags beyond the core ones are refused, aliases
count at their expanded size, and depth, number of values and documents are bounded while reading, never
afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError
from ruamel.yaml.scanner import Scanner

from treadle.language.json_text import duplicate_key
from treadle.language.limits import Bounds
from treadle.language.plain import refuse_number, refuse_text
from treadle.language.source import Marks, Refusal, Spot

_INT = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_CORE_TAG = re.compile(r"!!(str|int|float|bool|null|map|seq)(?=[\s,\]}]|\Z)")


def read_yaml(text: str, bounds: Bounds) -> Iterator[tuple[Any, Marks]]:
    """Each document's value and marks. Raises Refusal."""
    events = _events(text, bounds)
    documents = 0
    for event in events:
        if isinstance(event, DocumentStartEvent):
            documents += 1
            if documents > bounds.documents:
                raise Refusal(f"more than {bounds.documents} documents in one file", _spot(event))
            yield _Composer(events, bounds).document()


def _events(text: str, bounds: Bounds) -> Iterator[Any]:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 2)
    yaml.Scanner = _scanner(bounds)
    try:
        yield from yaml.parse(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.problem, error.context) if part) or "not valid YAML"
        raise Refusal(f"not valid YAML: {message}", Spot(mark.line + 1, mark.column + 1) if mark else None) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - (text.rfind("\n", 0, error.position) + 1) + 1
        raise Refusal(
            f"the text contains the character U+{int(error.character):04X}, which is not allowed",
            Spot(line, column),
        ) from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise Refusal(f"not valid YAML: {str(error)[:200]}") from None


def _scanner(bounds: Bounds) -> type[Scanner]:
    """A scanner that stops early where the stock one would first do quadratic work."""

    class Bounded(Scanner):
        def fetch_flow_collection_start(self, token_class: Any, to_push: Any) -> None:
            if self.flow_level >= bounds.depth:
                mark = self.reader.get_mark()
                raise Refusal(f"nested more than {bounds.depth} levels deep", Spot(mark.line + 1, mark.column + 1))
            super().fetch_flow_collection_start(token_class, to_push)

        def fetch_tag(self) -> None:
            reader = self.reader
            if not _CORE_TAG.match(reader.buffer, reader.pointer):
                mark = reader.get_mark()
                raise Refusal("tags are not supported", Spot(mark.line + 1, mark.column + 1), hint="write plain YAML")
            super().fetch_tag()

    return Bounded


def _spot(event: Any) -> Spot:
    return Spot(event.start_mark.line + 1, event.start_mark.column + 1)


class _Composer:
    """Builds one document from events. `sizes` counts what an anchor stands for, so that aliases cost what
    they mean.
    """

    def __init__(self, events: Iterator[Any], bounds: Bounds) -> None:
        self.events = events
        self.bounds = bounds
        self.values = 0
        self.anchors: dict[str, tuple[Any, int]] = {}

    def document(self) -> tuple[Any, Marks]:
        event = next(self.events)
        return self._node(event, 0)

    def _node(self, event: Any, depth: int) -> tuple[Any, Marks]:
        marks = Marks(_spot(event))
        if isinstance(event, AliasEvent):
            return self._alias(event, marks), marks
        self._count(1, marks.spot)
        before = self.values
        if isinstance(event, ScalarEvent):
            value = self._scalar(event, marks.spot)
        else:
            if depth >= self.bounds.depth:
                raise Refusal(f"nested more than {self.bounds.depth} levels deep", marks.spot)
            value = (
                self._mapping(marks, depth) if isinstance(event, MappingStartEvent) else self._sequence(marks, depth)
            )
        if isinstance(event, NodeEvent) and event.anchor:
            self.anchors[event.anchor] = (value, self.values - before + 1)
        return value, marks

    def _count(self, more: int, at: Spot) -> None:
        self.values += more
        if self.values > self.bounds.values:
            raise Refusal(f"more than {self.bounds.values} values", at, hint="aliases count each time they are used")

    def _alias(self, event: Any, marks: Marks) -> Any:
        if event.anchor not in self.anchors:
            raise Refusal(f"the alias *{event.anchor} stands for nothing written before it", marks.spot)
        value, size = self.anchors[event.anchor]
        self._count(size, marks.spot)
        return value

    def _sequence(self, marks: Marks, depth: int) -> list[Any]:
        items: list[Any] = []
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                break
            value, marks.parts[len(items)] = self._node(event, depth + 1)
            items.append(value)
        return items

    def _mapping(self, marks: Marks, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                break
            at = _spot(event)
            key = self._key(event, at, depth)
            if key in members:
                raise duplicate_key(key, at, marks.keys[key])
            marks.keys[key] = at
            members[key], marks.parts[key] = self._node(next(self.events), depth + 1)
        return members

    def _key(self, event: Any, at: Spot, depth: int) -> str:
        if isinstance(event, SequenceStartEvent | MappingStartEvent):
            raise Refusal("a key must be text, not a list or map", at)
        key, _ = self._node(event, depth + 1)
        if not isinstance(key, str):
            written = event.value if isinstance(event, ScalarEvent) else "*" + str(event.anchor)
            raise Refusal(f"the key `{written[:60]}` is not text", at, hint=f'write it in quotes: "{written[:60]}"')
        return key

    def _scalar(self, event: ScalarEvent, at: Spot) -> Any:
        text = str(event.value)
        tag = str(event.tag) if event.tag else ""
        if tag.endswith(":str") or (not event.implicit[0] and not tag):
            refuse_text(text, at)
            return text
        value = _resolve(text, at, self.bounds)
        if isinstance(value, str):
            refuse_text(value, at)
        return value


def _resolve(text: str, at: Spot, bounds: Bounds) -> Any:
    """A plain scalar by the YAML 1.2 core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    value: int | float
    if _INT.match(text):
        _refuse_digits(text, at, bounds)
        value = int(text)
    elif _OCTAL.match(text) or _HEX.match(text):
        _refuse_digits(text, at, bounds)
        value = int(text, 0)
    elif _FLOAT.match(text):
        _refuse_digits(text, at, bounds)
        value = float(text)
    elif _NOT_FINITE.match(text):
        raise Refusal("NaN and infinity are not JSON numbers", at)
    else:
        return text
    refuse_number(value, at)
    return value


def _refuse_digits(text: str, at: Spot, bounds: Bounds) -> None:
    if len(text) > bounds.number_digits:
        raise Refusal(f"a number of {len(text)} digits", at, hint="write it as text, in quotes")

"""YAML events → plain values with positions.

Owns the rules for what a document may consist of. Everything is refused when its event comes, before anything is built
from it: too many values, too deep, keys that are not text or stand twice, tags, aliases beyond their expanded size.
Events are those of PyYAML or of ruamel.yaml, which have the same names and attributes. Syntax errors pass through to
the caller that parses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treadle.language.json_text import duplicate_key
from treadle.language.limits import Bounds
from treadle.language.source import COLUMN_BITS, At, Mark, Marks, Refusal
from treadle.language.yaml_scalar import agreeing, scalar, tag_name

Json = Any
Event = Any


def compose(events: Iterator[Event], bounds: Bounds, *, relaxed: bool = False) -> list[tuple[Json, Mark]]:
    """Every document's value and mark. Raises Refusal."""
    composer = _Composer(events, bounds, relaxed)
    documents: list[tuple[Json, Mark]] = []
    for event in events:
        if event.__class__.__name__ == "DocumentStartEvent":
            if len(documents) == bounds.documents:
                raise Refusal(f"more than {bounds.documents} documents in one file", _at(event))
            documents.append(composer.document())
    return documents


def _at(event: Event) -> At:
    mark = event.start_mark
    at: At = mark.line << COLUMN_BITS | mark.column
    return at


class _Composer:
    """Builds documents. Values are counted over all of them; `anchors` keeps what a name stands for and its
    size, so that an alias costs what it means.
    """

    def __init__(self, events: Iterator[Event], bounds: Bounds, relaxed: bool) -> None:
        self.events = events
        self.bounds = bounds
        self.relaxed = relaxed
        self.values = 0
        self.values_max = bounds.values
        self.anchors: dict[str, tuple[Json, int]] = {}
        self.known_keys: dict[str, str] = {}
        """Plain keys seen before: the same few words stand in a file a thousand times."""

    def document(self) -> tuple[Json, Mark]:
        self.anchors.clear()
        return self._node(next(self.events), 0)

    def _node(self, event: Event, depth: int) -> tuple[Json, Mark]:
        at = _at(event)
        before = self.values
        self.values += 1
        if self.values > self.values_max:
            raise self._too_many(at)
        value: Json
        mark: Mark = at
        kind = event.__class__.__name__
        if kind == "ScalarEvent":
            value = scalar(event, at, self.bounds)
        elif kind == "AliasEvent":
            return self._alias(event, at), at
        elif depth >= self.bounds.depth:
            raise Refusal(f"nested more than {self.bounds.depth} levels deep", at)
        elif kind == "MappingStartEvent":
            value, mark = self._map(event, at, depth + 1)
        else:
            value, mark = self._list(event, at, depth + 1)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, self.values - before)
        return value, mark

    def _too_many(self, at: At) -> Refusal:
        return Refusal(f"more than {self.values_max} values, once aliases are expanded", at)

    def _alias(self, event: Event, at: At) -> Json:
        if event.anchor not in self.anchors:
            raise Refusal(f"the alias *{event.anchor[:60]} stands for nothing written before it", at)
        value, size = self.anchors[event.anchor]
        self.values += size - 1
        if self.values > self.values_max:
            raise self._too_many(at)
        return value

    def _list(self, start: Event, at: At, depth: int) -> tuple[list[Json], Mark]:
        if start.tag is not None:
            agreeing(tag_name(start.tag, at), [], at)
        items: list[Json] = []
        parts: list[Mark] = []
        for event in self.events:
            if event.__class__.__name__ == "SequenceEndEvent":
                break
            value, mark = self._node(event, depth)
            items.append(value)
            parts.append(mark)
        return items, Marks(at, parts) if parts else at

    def _map(self, start: Event, at: At, depth: int) -> tuple[dict[str, Json], Mark]:
        if start.tag is not None:
            agreeing(tag_name(start.tag, at), {}, at)
        members: dict[str, Json] = {}
        inherited: dict[str, Json] = {}
        parts: dict[str, Mark] = {}
        keys: dict[str, At] = {}
        for event in self.events:
            kind = event.__class__.__name__
            if kind == "MappingEndEvent":
                break
            key_at = _at(event)
            key = self._key(event, kind, key_at)
            merges = key == "<<" and self._merges(event)
            if key in members and not merges:
                raise duplicate_key(key, key_at, keys[key])
            value_event = next(self.events)
            value, mark = self._node(value_event, depth)
            if merges:
                _merge(value, _at(value_event), inherited)
            else:
                members[key], parts[key], keys[key] = value, mark, key_at
        return {**inherited, **members} if inherited else members, Marks(at, parts, keys) if parts else at

    def _key(self, event: Event, kind: str, at: At) -> str:
        plain = kind == "ScalarEvent" and event.implicit[0]
        if plain and event.anchor is None and event.value in self.known_keys:
            self.values += 1
            return self.known_keys[event.value]
        if kind not in ("ScalarEvent", "AliasEvent"):
            raise Refusal("a key must be a plain word, not a list or map", at)
        key, _ = self._node(event, 0)
        if self.relaxed and kind == "ScalarEvent":
            key = event.value
        if not isinstance(key, str):
            written = event.value if kind == "ScalarEvent" else f"*{event.anchor}"
            raise Refusal(f"the key `{written[:60]}` is not text", at, hint=f'write it in quotes: "{written[:60]}"')
        if plain:
            self.known_keys[key] = key
        return key

    def _merges(self, event: Event) -> bool:
        return self.relaxed and event.__class__.__name__ == "ScalarEvent" and event.implicit[0]


def _merge(value: Json, at: At, into: dict[str, Json]) -> None:
    """The keys that `<<` merges in: of several maps the first decides."""
    for source in value if isinstance(value, list) else [value]:
        if not isinstance(source, dict):
            raise Refusal("`<<` merges maps only", at)
        for key, part in source.items():
            into.setdefault(key, part)

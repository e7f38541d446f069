"""Large values are moved out of their records: a block of history stays small, and the same content is kept once.

Owns which values may be moved out (authors' data, typed `Any` in `model`; never a field of ours) and the mark in their
place: a msgpack extension of type 1 whose content is the raw SHA-256 of the value, packed. Promises that resolving
every mark gives back what was packed. Must not touch a database: it hands out digests with bytes, and asks for bytes by
digest.

A value is moved out if it is larger than the limit. Its parts go first: of {small: 1, scan: 20 MB} only the scan is
moved out, so that the same scan in another record is kept once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect
from msgspec.msgpack import Ext
from msgspec.structs import replace

from treadle.store.packing import pack, unpack

MARK = 1
"""Extension type of the mark of a value that was moved out."""

Change = Callable[[Any], Any]
Swap = Callable[[Any, Change], Any]


class Spill:
    """Values that were moved out, by digest."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.blobs: dict[bytes, bytes] = {}

    def shrunk(self, record: msgspec.Struct) -> Any:
        """The record with a mark in place of every large value."""
        if len(pack(record)) <= self._limit:
            return record
        swap = _swap_of(type(record))
        return swap(record, self._shrink) if swap is not None else record

    def _shrink(self, value: Any) -> Any:
        if not isinstance(value, str | dict | list | tuple) or len(packed := pack(value)) <= self._limit:
            return value
        if isinstance(value, dict):
            value = {key: self._shrink(part) for key, part in value.items()}
        elif not isinstance(value, str):
            value = [self._shrink(part) for part in value]
        if not isinstance(value, str) and len(packed := pack(value)) <= self._limit:
            return value
        digest = hashlib.sha256(packed).digest()
        self.blobs[digest] = packed
        return Ext(MARK, digest)


class Resolver:
    """Turns marks into values, with a function that fetches bytes by digest."""

    def __init__(self, fetch: Callable[[bytes], bytes]) -> None:
        self._fetch = fetch
        self._decode = msgspec.msgpack.Decoder(ext_hook=self).decode

    def __call__(self, kind: int, content: memoryview) -> Any:
        if kind != MARK:
            raise ValueError(f"a stored value has the unknown extension type {kind}")
        return self._decode(self._fetch(bytes(content)))


def marks_in(block: bytes, fetch: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """Digests that a block needs, with those inside values that were moved out."""
    pending = [unpack(block)]
    while pending:
        value = pending.pop()
        if isinstance(value, Ext):
            digest = bytes(value.data)
            yield digest
            pending.append(unpack(fetch(digest)))
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value


@cache
def _swap_of(kind: type) -> Swap | None:
    """A function that changes every author's value inside a record of a type; None if the type has none."""
    return _swap(inspect.type_info(kind), frozenset())


def _swap(info: inspect.Type, within: frozenset[type]) -> Swap | None:
    """The same; `within` are the enclosing types. An error has causes, which are errors."""
    if isinstance(info, inspect.AnyType):
        return lambda value, change: change(value)
    if isinstance(info, inspect.ListType | inspect.VarTupleType):
        return _each(_swap(info.item_type, within))
    if isinstance(info, inspect.DictType):
        return _values(_swap(info.value_type, within))
    if isinstance(info, inspect.TupleType):
        return _positions([_swap(item, within) for item in info.item_types])
    if isinstance(info, inspect.StructType):
        return _fields(info, within)
    if isinstance(info, inspect.UnionType):
        return _alternatives(info, within)
    return None


def _each(item: Swap | None) -> Swap | None:
    if item is None:
        return None
    return lambda values, change: [item(value, change) for value in values]


def _values(item: Swap | None) -> Swap | None:
    if item is None:
        return None
    return lambda values, change: {key: item(value, change) for key, value in values.items()}


def _positions(items: list[Swap | None]) -> Swap | None:
    if not any(items):
        return None
    return lambda values, change: tuple(
        item(value, change) if item else value for item, value in zip(items, values, strict=True)
    )


def _fields(info: inspect.StructType, within: frozenset[type]) -> Swap | None:
    if info.cls in within:  # a recursive type: looked up when a value is changed, when it is known
        return lambda record, change: swap(record, change) if (swap := _swap_of(record.__class__)) else record
    inside = within | {info.cls}
    fields = [(field.name, swap) for field in info.fields if (swap := _swap(field.type, inside)) is not None]
    if not fields:
        return None
    return lambda record, change: replace(
        record, **{name: swap(getattr(record, name), change) for name, swap in fields}
    )


def _alternatives(info: inspect.UnionType, within: frozenset[type]) -> Swap | None:
    """For a union of ours: at most one alternative is a list and one a dict; structs are distinguished by class."""
    structs = {item.cls: _fields(item, within) for item in info.types if isinstance(item, inspect.StructType)}
    rest = [way for item in info.types if not isinstance(item, inspect.StructType) and (way := _swap(item, within))]
    if not rest and not any(structs.values()):
        return None

    def swap(value: Any, change: Change) -> Any:
        if isinstance(value, msgspec.Struct):
            chosen = structs.get(type(value))
            return chosen(value, change) if chosen else value
        return rest[0](value, change) if rest and value is not None else value

    return swap

"""A parsed CEL expression as a small tree of ours.

The library parses but shows no tree; what it does offer is the expression serialised as the protobuf that the
CEL specification publishes (`cel/expr/syntax.proto`, `checked.proto`). The field numbers below are from there
and are frozen by protobuf's own rules. Reading twenty of them takes less code than a tokenizer, and unlike
one it knows about string literals, macros and shadowed names. The tree keeps only what analysis asks for:
names, steps into them, calls, folds.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Constant(Struct, frozen=True):
    """A literal; only strings and integers are kept, because only they can be steps of a path."""

    value: str | int | None


class Name(Struct, frozen=True):
    """An identifier: a root, a variable of a macro, or a type."""

    name: str


class Access(Struct, frozen=True):
    """One constant step into a value: `a.b`, `a["b"]`, `a[0]`, `a.?b`, `has(a.b)`."""

    of: Tree
    step: str | int


class Call(Struct, frozen=True):
    """A function or operator with its arguments, receiver first; lists and maps are calls of `[]`, `{}`."""

    function: str
    arguments: tuple[Tree, ...]


class Fold(Struct, frozen=True):
    """The expansion of every macro: over the items, while `test`, `total` becomes `step`; then `result`."""

    variables: tuple[str, ...]
    over: Tree
    total: str
    start: Tree
    test: Tree
    step: Tree
    result: Tree


Tree = Constant | Name | Access | Call | Fold

_Fields = dict[int, list[bytes]]
_STEPS = {"_[_]", "_?._", "_[?_]"}
_NOTHING = Constant(None)


def read_tree(serialized: bytes) -> Tree:
    """The tree of an expression that the library serialised (an Any of a ParsedExpr or a CheckedExpr)."""
    envelope = _fields(serialized)
    expression = 4 if envelope[1][0].endswith(b"CheckedExpr") else 2
    return _tree(_fields(envelope[2][0])[expression][0])


def _tree(message: bytes) -> Tree:
    fields = _fields(message)
    for number, read in _READERS.items():
        if number in fields:
            return read(_fields(fields[number][0]))
    return _NOTHING


def _constant(fields: _Fields) -> Tree:
    if 6 in fields:
        return Constant(_text(fields, 6))
    if 3 in fields:
        return Constant(int.from_bytes(fields[3][0], "little", signed=True))
    return _NOTHING


def _name(fields: _Fields) -> Tree:
    return Name(_text(fields, 1).removeprefix("."))


def _select(fields: _Fields) -> Tree:
    return Access(_tree(fields[1][0]), _text(fields, 2))


def _call(fields: _Fields) -> Tree:
    arguments = tuple(_tree(message) for message in (*fields.get(1, ()), *fields.get(3, ())))
    function = _text(fields, 2)
    if function in _STEPS and isinstance(arguments[1], Constant) and arguments[1].value is not None:
        return Access(arguments[0], arguments[1].value)
    return Call(function, arguments)


def _list(fields: _Fields) -> Tree:
    return Call("[]", tuple(map(_tree, fields.get(1, ()))))


def _struct(fields: _Fields) -> Tree:
    entries = [_fields(entry) for entry in fields.get(2, ())]
    return Call("{}", tuple(_tree(part) for entry in entries for part in (*entry.get(3, ()), *entry.get(4, ()))))


def _fold(fields: _Fields) -> Tree:
    over, start, test, step, result = (_tree(fields[number][0]) for number in (2, 4, 5, 6, 7))
    variables = tuple(_text(fields, number) for number in (1, 8) if number in fields)
    return Fold(variables, over, _text(fields, 3), start=start, test=test, step=step, result=result)


_READERS = {3: _constant, 4: _name, 5: _select, 6: _call, 7: _list, 8: _struct, 9: _fold}


def _text(fields: _Fields, number: int) -> str:
    return fields[number][0].decode() if number in fields else ""


def _fields(message: bytes) -> _Fields:
    fields: _Fields = {}
    for number, value in _wire(message):
        fields.setdefault(number, []).append(value)
    return fields


def _wire(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Protobuf's wire format; integers come as eight little-endian bytes, so that every value is bytes."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == 0:
            value, position = _varint(message, position)
            yield tag >> 3, (value & 2**64 - 1).to_bytes(8, "little")
            continue
        length = {1: 8, 5: 4}.get(kind, 0)
        if kind == 2:
            length, position = _varint(message, position)
        yield tag >> 3, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7

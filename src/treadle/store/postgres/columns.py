"""Rows as arrays: the parameters of a statement for any number of rows.

asyncpg asks every element of an array whether it is an array itself, which costs more than everything else about a
commit. Where there may be many rows a column is therefore handed over as the text of an array, made at once: a list of
JSON in other brackets, as long as no text needs a backslash, and the server reads it (`$1::text::bigint[]`). Bytes stay
an array of asyncpg's: as text they would double.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import msgspec

from treadle.store.postgres.connect import without_nul

Rows = Iterable[Sequence[Any]]

_json = msgspec.json.Encoder().encode


def columns(rows: Rows, width: int = 0) -> list[Sequence[Any]]:
    """Rows as one array per column; without a row, `width` arrays of nothing."""
    turned = [_column(column) for column in zip(*rows, strict=True)]
    return turned or [[] for _ in range(width)]


def handed(statement: str, rows: Rows) -> list[Any]:
    """Some rows, column by column, as the statement expects them."""
    wanted = _as_text(statement)
    return [
        literal(column) if place in wanted else _column(column)
        for place, column in enumerate(zip(*rows, strict=True), 1)
    ]


def literal(values: Sequence[Any]) -> str:
    """Texts, numbers, truth values or None as PostgreSQL writes an array of them."""
    encoded = _json(values)
    if b"\\" not in encoded:
        return f"{{{encoded[1:-1].decode()}}}"
    # JSON has escapes that PostgreSQL does not know. The caller replaces NUL (`texts`).
    return f"{{{','.join([_quoted(value) for value in values])}}}"


def _quoted(value: Any) -> str:
    if not isinstance(value, str):
        return _json(value).decode()
    escaped = value.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


@cache
def _as_text(statement: str) -> frozenset[int]:
    """The positions of the columns that a statement expects as text."""
    return frozenset(int(place) for place in re.findall(r"\$(\d+)::text::", statement))


def texts(values: Iterable[str]) -> Sequence[str]:
    """Texts as one array parameter."""
    given = tuple(values)
    return _column(given) if given else given


def _column(values: tuple[Any, ...]) -> Sequence[Any]:
    """The texts as PostgreSQL can keep them. They are checked all at once: almost none has a character to replace."""
    if isinstance(values[0], int | bytes):  # then all of them are, or None
        return values
    whole = "".join([value for value in values if isinstance(value, str)])
    if "\0" in whole or "\1" in whole:
        return [without_nul(value) if isinstance(value, str) else value for value in values]
    return values


def count(tag: str) -> int:
    """How many rows a statement touched: `UPDATE 3`, `INSERT 0 3`."""
    return int(tag.rpartition(" ")[2])

"""Rows as arrays: what a statement is given for any number of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from treadle.store.postgres.connect import without_nul

Rows = Iterable[Sequence[Any]]


def columns(rows: Rows, width: int = 0) -> list[Sequence[Any]]:
    """Rows as one array per column; without a row, `width` arrays of nothing."""
    turned = [_column(column) for column in zip(*rows, strict=True)]
    return turned or [[] for _ in range(width)]


def texts(values: Iterable[str]) -> Sequence[str]:
    """An array of them."""
    given = tuple(values)
    return _column(given) if given else given


def _column(values: tuple[Any, ...]) -> Sequence[Any]:
    """As PostgreSQL can keep it. Texts are looked at all at once: next to none has a character that must go."""
    if isinstance(values[0], int | bytes):  # then all of them are, or None
        return values
    whole = "".join([value for value in values if isinstance(value, str)])
    if "\0" in whole or "\1" in whole:
        return [without_nul(value) if isinstance(value, str) else value for value in values]
    return values


def count(tag: str) -> int:
    """How many rows a statement touched: `UPDATE 3`, `INSERT 0 3`."""
    return int(tag.rpartition(" ")[2])

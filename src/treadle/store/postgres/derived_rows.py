"""Rows that are made again from moved ones: the keys and tags by which runs are found. Runs inside a transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg
import msgspec

from treadle.store.postgres.columns import handed
from treadle.store.postgres.queries import SQL
from treadle.store.transfer import SHELVES


async def write_derived(connection: asyncpg.Connection, shelf: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Writes what follows from some rows of a shelf."""
    keys: list[tuple[str, str, str]] = []
    tags: list[tuple[str, str]] = []
    if shelf == "runs":
        for row in rows:
            run = dict(zip(SHELVES["runs"], row, strict=True))
            keys += [(run["workflow"], key, run["run"]) for key in [run["idempotency_key"]] if key is not None]
            tags += [(run["run"], tag) for tag in msgspec.json.decode(run["tags"] or "[]")]
    elif shelf == "batch_items":
        keys += [(workflow, key, run) for run, _, workflow, key in rows if key is not None]
    if keys:
        await connection.execute(SQL["claim_keys"], *handed(SQL["claim_keys"], keys))
    if tags:
        await connection.execute(SQL["tag_runs"], *handed(SQL["tag_runs"], tags))

"""Everything a store holds, to be compared with another."""

from __future__ import annotations

from typing import Any

from treadle.store.transfer import SHELVES, Transfer


async def dump(end: Transfer) -> dict[str, list[Any]]:
    """Every shelf; the ones whose order means something in that order."""
    found: dict[str, list[Any]] = {}
    for shelf in SHELVES:
        rows: list[Any] = []
        after: Any = ()
        while (page := await end.page(shelf, after)).rows:
            rows += page.rows
            after = page.after
        found[shelf] = rows if shelf in ("runs", "requests") else sorted(rows, key=repr)
    return found

"""Runs that are over, and what belongs together among them: questions retention asks the store.

Owns the paging. A run and everything it started are a family: they go together. Must not drop anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RUN_OPEN
from treadle.store.port import RunQuery, RunRow, Store

PAGE = 500
"""Runs looked at, or dropped, at once."""
OVER = tuple(sorted(RUN_ENDED))


class Families:
    """See the module's docstring."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def is_root(self, row: RunRow) -> bool:
        """A child goes with its parent; one whose parent is gone already is its own."""
        return row.parent is None or not await self._store.find_runs(RunQuery(run=row.parent))

    async def is_wanted(self, row: RunRow) -> bool:
        """Whether a run it was started for, however far up, may want it undone, or one it started its artifacts."""
        if await self._store.find_runs(RunQuery(parent=row.run, statuses=RUN_OPEN, limit=1)):
            return True
        parent = row.parent
        while parent is not None and (above := await self._store.find_runs(RunQuery(run=parent))):
            if above[0].status not in RUN_ENDED:
                return True
            parent = above[0].parent
        return False

    async def family(self, run: RunId) -> list[RunId]:
        """A finished run and everything it started; nothing if something of that lives."""
        found = [run]
        for parent in found:
            async for row in self._rows(RunQuery(parent=parent)):
                if row.status not in RUN_ENDED:
                    return []
                found.append(row.run)
        return found

    def finished(self, query: RunQuery) -> AsyncIterator[RunRow]:
        """Of the runs a query describes those that are over."""
        return self._rows(replace(query, statuses=OVER))

    async def _rows(self, query: RunQuery) -> AsyncIterator[RunRow]:
        """Page after page. Nothing may be dropped meanwhile: a page begins behind a run that is there."""
        query = replace(query, limit=PAGE)
        while page := await self._store.find_runs(query):
            for row in page:
                yield row
            if len(page) < PAGE:
                return
            query = replace(query, after=page[-1].run)


def batched(runs: Iterable[RunId]) -> Iterator[list[RunId]]:
    """A page at a time."""
    rest = iter(runs)
    while page := list(islice(rest, PAGE)):
        yield page

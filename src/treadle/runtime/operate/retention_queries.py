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


class RetentionQueries:
    """See the module's docstring."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def is_root(self, row: RunRow) -> bool:
        """A child goes with its parent; one whose parent is gone already is its own."""
        return row.parent is None or not await self._store.find_runs(RunQuery(run=row.parent))

    async def wanted(self, page: list[RunRow]) -> set[RunId]:
        """Those that a run they were started for, however far up, may want undone, or whose artifacts one they started
        may want."""
        wanted: set[RunId] = set()
        async for rows in self._pages(RunQuery(parents=tuple(row.run for row in page), statuses=RUN_OPEN)):
            wanted.update(row.parent for row in rows if row.parent is not None)
        for row in page:
            parent = row.parent
            while parent is not None and (above := await self._store.find_runs(RunQuery(run=parent))):
                if above[0].status not in RUN_ENDED:
                    wanted.add(row.run)
                    break
                parent = above[0].parent
        return wanted

    async def whole(self, roots: list[RunId]) -> list[RunId]:
        """Finished runs and everything they started, those who started others after what they started; nothing of a
        family of which something lives. Asked a generation at a time: under load every question waits for its turn."""
        families = {root: [root] for root in roots}
        generation = {root: root for root in roots}
        while generation:
            older, generation = generation, {}
            async for rows in self._pages(RunQuery(parents=tuple(older))):
                for row in rows:
                    assert row.parent is not None, "it was found by its parent"
                    root = older[row.parent]
                    if row.status not in RUN_ENDED:
                        families.pop(root, None)
                    elif root in families:
                        families[root].append(row.run)
                        generation[row.run] = root
        return [run for family in families.values() for run in reversed(family)]

    async def finished(self, query: RunQuery) -> AsyncIterator[RunRow]:
        """Of the runs a query describes those that are over."""
        async for rows in self.pages(query):
            for row in rows:
                yield row

    def pages(self, query: RunQuery) -> AsyncIterator[list[RunRow]]:
        """The same, some at a time."""
        return self._pages(replace(query, statuses=OVER))

    async def _pages(self, query: RunQuery) -> AsyncIterator[list[RunRow]]:
        """Page after page. Nothing may be dropped meanwhile: a page begins behind a run that is there."""
        query = replace(query, limit=PAGE)
        while page := await self._store.find_runs(query):
            yield page
            if len(page) < PAGE:
                return
            query = replace(query, after=page[-1].run)


def batched(runs: Iterable[RunId]) -> Iterator[list[RunId]]:
    """A page at a time."""
    rest = iter(runs)
    while page := list(islice(rest, PAGE)):
        yield page

"""Questions of retention to the store: finished runs, and the families they belong to.

Owns the paging. A run and all runs it started, directly or not, are a family: they are dropped together. Must not drop
anything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice

from msgspec.structs import replace

from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RUN_OPEN
from treadle.store.port import RunQuery, RunRow, Store

PAGE = 500
"""Runs read or dropped at once."""
OVER = tuple(sorted(RUN_ENDED))


class RetentionQueries:
    """See the module's docstring."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def is_root(self, row: RunRow) -> bool:
        """Whether a run is the root of its family. A child is dropped with its parent; if the parent is already gone,
        the child is a root."""
        return row.parent is None or not await self._store.find_runs(RunQuery(run=row.parent))

    async def wanted(self, page: list[RunRow]) -> set[RunId]:
        """The runs of a page that are still needed: an ancestor that has not ended may want them undone, or a child
        that has not ended may want their artifacts."""
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
        """The families of finished roots, children before the runs that started them. A family with a run that has not
        ended is left out. Asked one generation at a time, because under load every question waits for its turn."""
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
        """The finished runs among those a query describes."""
        async for rows in self.pages(query):
            for row in rows:
                yield row

    def pages(self, query: RunQuery) -> AsyncIterator[list[RunRow]]:
        """The same, a page at a time."""
        return self._pages(replace(query, statuses=OVER))

    async def _pages(self, query: RunQuery) -> AsyncIterator[list[RunRow]]:
        """Page after page. No run may be dropped meanwhile: a page begins after a run that exists."""
        query = replace(query, limit=PAGE)
        while page := await self._store.find_runs(query):
            yield page
            if len(page) < PAGE:
                return
            query = replace(query, after=page[-1].run)


def batched(runs: Iterable[RunId]) -> Iterator[list[RunId]]:
    """Splits runs into pages."""
    rest = iter(runs)
    while page := list(islice(rest, PAGE)):
        yield page

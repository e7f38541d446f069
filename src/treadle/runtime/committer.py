"""The transaction: gathers decisions while the last batch is being written, writes them together, survives a store
that does not answer.

Owns the batch in the making and the one under way. Promises order: batches are written one after the other, and what
was gathered is reported durable in the order in which it was decided. Must not know what a decision means.

    add ─► gathering ─┐
    add ─► gathering  ├─► commit n ─► durable(n)
                      │   (n+1 gathers meanwhile)
                      └─► commit n fails: n and n+1 are handed back, to be decided again
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from treadle.errors import StoreConflict, StoreUnavailable
from treadle.runtime.gathering import Decided, Gathering, Item
from treadle.store.port import Answer, Batch, Commit, Fence, OutboxRow, Store

RETRY_FIRST_S, RETRY_LAST_S = 0.05, 5.0
"""Waits between tries to reach a store that is unavailable: a full disk is looked at every five seconds."""

log = structlog.get_logger("treadle.committer")

T = TypeVar("T")


class Committer:
    """See the module's docstring."""

    def __init__(
        self,
        store: Store,
        fence: Fence,
        durable: Callable[[Gathering, list[OutboxRow]], None],
        again: Callable[[list[Item]], None],
        lost: Callable[[StoreConflict], None],
    ) -> None:
        self.store = store
        self.fence = fence
        self._durable = durable
        self._again = again
        """Items of batches that failed, in their order: decide them on what the store really has."""
        self._lost = lost
        """The lease belongs to somebody else."""
        self._loop = asyncio.get_running_loop()
        self._gathering = Gathering()
        self._writing: asyncio.Task[None] | None = None
        self._stopped = False

    @property
    def is_idle(self) -> bool:
        return self._writing is None and not self._gathering

    @property
    def waiting(self) -> list[Item]:
        """Decided, and not under way yet."""
        return [decided.item for decided in self._gathering.decided]

    def add(self, decided: Decided, commit: Commit | None) -> None:
        self._gathering.add(decided, commit)

    def settle(self, row: int, parked: str | None = None) -> None:
        """An outbox row is done with, or given up."""
        if parked is None:
            self._gathering.done.append(row)
        else:
            self._gathering.parked.append((row, parked))

    def revive(self, row: int | None, answer: Answer | None) -> None:
        """A parked row is to be tried again."""
        if row is not None:
            self._gathering.revived.append(row)
        if answer is not None:
            self._gathering.answers.append(answer)

    def flush(self) -> None:
        """Writes what was gathered, at once or when the batch under way is done."""
        if self._writing is None and self._gathering and not self._stopped:
            self._writing = self._loop.create_task(self._write())

    async def drained(self) -> None:
        """Everything gathered so far is durable."""
        while not self.is_idle and not self._stopped:
            self.flush()
            assert self._writing is not None
            await asyncio.wait([self._writing])

    def stop(self) -> None:
        """Write nothing any more. A batch under way has an unknown outcome."""
        self._stopped = True

    async def _write(self) -> None:
        try:
            while self._gathering and not self._stopped:
                gathered, self._gathering = self._gathering, Gathering()
                rows = await self._commit(gathered)
                if rows is not None:
                    self._durable(gathered, rows)
        finally:
            self._writing = None

    async def _commit(self, gathered: Gathering) -> list[OutboxRow] | None:
        """The new rows; None if the batch has to be decided again, or never."""
        if not gathered.writes:
            return []
        try:
            return await self.store.commit(gathered.batch(), self.fence)
        except StoreConflict as conflict:
            if conflict.kind == "LEASE_CONFLICT":
                self._gathering.decided[:0] = gathered.decided
                self._lost(conflict)
                return None
            log.warning("the store refused a batch: deciding again", error=str(conflict))
        except StoreUnavailable as problem:
            log.warning("the store is unavailable: trying again", error=str(problem))
        await self._start_over(gathered)
        return None

    async def _start_over(self, gathered: Gathering) -> None:
        await self._until_reachable()
        behind, self._gathering = self._gathering, Gathering()
        items = [decided.item for decided in (*gathered.decided, *behind.decided)]
        asked = {item.row for item in items}
        self._gathering.done = [row for row in (*gathered.done, *behind.done) if row not in asked]
        self._gathering.parked = [*gathered.parked, *behind.parked]
        self._gathering.revived = [*gathered.revived, *behind.revived]
        asking = {item.request for item in items}
        self._gathering.answers = [a for a in (*gathered.answers, *behind.answers) if a.request not in asking]
        self._again(items)

    async def _until_reachable(self) -> None:
        try:
            await reliably(lambda: self.store.commit(Batch(), self.fence), lambda: self._stopped)
        except StoreConflict as conflict:
            self._lost(conflict)


async def reliably(ask: Callable[[], Awaitable[T]], is_over: Callable[[], bool]) -> T:
    """Asks a store until it answers. Only for what may be asked again."""
    delay = RETRY_FIRST_S
    while True:
        try:
            return await ask()
        except StoreUnavailable as problem:
            if is_over():
                raise
            log.warning("the store is unavailable", error=str(problem), next_try_s=delay)
            await asyncio.sleep(delay)
            delay = min(delay * 2, RETRY_LAST_S)

"""The transaction: gathers decisions while the last batch is being written, writes them together, survives a store
that does not answer.

Owns the batch in the making and the one under way. Promises order: batches are written one after the other, and what
was gathered is reported durable in the order in which it was decided. Must not know what a decision means.

    add ─► gathering ─┐
    add ─► gathering  ├─► commit n ─► durable(n)
                      │   (n+1 gathers meanwhile)
                      ├─► nobody knows whether commit n happened: look; if it did, durable(n)
                      └─► commit n did not happen: n and n+1 are handed back, to be decided again

A batch is written under the fences of the shards it is about. If some are lost the others do not notice, but that what
was decided is decided again.

A batch the store cannot even take (a value nobody can pack) is written in halves until the decision is found that is to
blame: it is refused, everything else goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from treadle.errors import StoreConflict, StoreUnavailable
from treadle.model.codec import pack_events
from treadle.runtime.base.logs import logger
from treadle.runtime.base.outage import OUTAGE
from treadle.runtime.coordinate.gathering import Decided, Gathering, Item
from treadle.runtime.coordinate.shards import Shards
from treadle.store.port import Batch, Commit, Fence, InboxAnswer, OutboxRow, Store

RETRY_FIRST_S, RETRY_LAST_S = 0.05, 5.0
"""Waits between tries to reach a store that is unavailable: a full disk is looked at every five seconds."""

log = logger("treadle.committer")

T = TypeVar("T")


class Committer:
    """See the module's docstring."""

    def __init__(
        self,
        store: Store,
        shards: Shards,
        durable: Callable[[Gathering, list[OutboxRow]], None],
        again: Callable[[list[Item]], None],
        lost: Callable[[StoreConflict | StoreUnavailable], None],
        refused: Callable[[Item, Exception], None],
    ) -> None:
        self.store = store
        self._shards = shards
        self._durable = durable
        self._again = again
        """Items of batches that failed, in their order: decide them on what the store really has."""
        self._lost = lost
        """The leases of some shards belong to somebody else, or the store will not take anything any more."""
        self._refused = refused
        """No store could take what was decided about this item."""
        self._loop = asyncio.get_running_loop()
        self._gathering = Gathering()
        self._parts: deque[Gathering] = deque()
        """Of a batch that is written in parts."""
        self._number, self._settled = 1, 0
        """Of the batch in the making, and of the last one of which is known what became of it."""
        self._settling: list[asyncio.Future[None]] = []
        self._writing: asyncio.Future[list[OutboxRow]] | asyncio.Task[None] | None = None
        """What is under way: a batch at the store, or coping with one that went wrong."""
        self._stopped = False
        self._written = 0
        self._failures = 0
        """In a row. A full disk can be asked and not be written: reaching it is no reason to hurry."""
        self._last_row = 0
        """Of the outbox rows this committer has written."""

    @property
    def is_idle(self) -> bool:
        return self._writing is None and not self._gathering

    @property
    def settled(self) -> int:
        """How many batches have been dealt with so far, one way or the other."""
        return self._settled

    @property
    def written(self) -> int:
        """How many batches the store has taken so far: whether there is progress."""
        return self._written

    @property
    def waiting(self) -> list[Item]:
        """Decided, and not under way yet."""
        return [decided.item for part in (*self._parts, self._gathering) for decided in part.decided]

    def add(self, decided: Decided, commit: Commit | None) -> None:
        self._gathering.add(decided, commit)

    def settle(self, row: int, parked: str | None = None) -> None:
        """An outbox row is done with, or given up."""
        if parked is None:
            self._gathering.done.append(row)
        else:
            self._gathering.parked.append((row, parked))

    def revive(self, row: int | None, answer: InboxAnswer | None) -> None:
        """A parked row is to be tried again."""
        if row is not None:
            self._gathering.revived.append(row)
        if answer is not None:
            self._gathering.answers.append(answer)

    def flush(self) -> None:
        """Writes what was gathered, at once or when the batch under way is done."""
        while self._writing is None and (self._parts or self._gathering) and not self._stopped:
            self._write(self._take())

    async def drained(self) -> None:
        """Everything gathered so far is durable, or was handed back. What is gathered later is not waited for: under
        load there is always more."""
        last = self._number if self._gathering else self._number - 1
        while self._settled < last and not self._stopped:
            self.flush()
            if self._settled >= last:
                return  # there was nothing to write
            settled: asyncio.Future[None] = self._loop.create_future()
            self._settling.append(settled)
            await settled

    def stop(self) -> None:
        """Write nothing any more. A batch under way has an unknown outcome."""
        self._stopped = True
        self._settle()

    def _take(self) -> Gathering:
        if self._parts:
            return self._parts.popleft()
        self._number += 1
        gathered, self._gathering = self._gathering, Gathering()
        return gathered

    def _settle(self) -> None:
        """Whoever waits for a batch looks whether it was this one."""
        settling, self._settling = self._settling, []
        for future in settling:
            if not future.done():
                future.set_result(None)

    # Called back, not awaited: a task would cost a lone chain two turns of the loop with every commit.

    def _write(self, gathered: Gathering) -> None:
        if not gathered.writes and not self._shards.is_shared:
            self._over(gathered, [])
            return
        try:
            # Also when nothing is written: an answer that rests on a state somebody else has moved on from must not be
            # given.
            gathered.fences = self._shards.covering(gathered.runs if self._shards.is_shared else ())
            writing = asyncio.ensure_future(self.store.commit(gathered.batch(), *gathered.fences))
        except Exception as problem:
            self._writing = self._loop.create_task(self._cope(gathered, problem))
            return
        if writing.done():  # a store may be done at once
            self._heard(gathered, writing)
        else:
            self._writing = writing
            writing.add_done_callback(partial(self._heard, gathered))

    def _heard(self, gathered: Gathering, writing: asyncio.Future[list[OutboxRow]]) -> None:
        self._writing = None
        if writing.cancelled():
            return  # the loop is being closed
        problem = writing.exception()
        if problem is None:
            rows = writing.result()
            self._last_row = rows[-1].id if rows else self._last_row
            self._written, self._failures = self._written + 1, 0
            OUTAGE.answered()
            self._over(gathered, rows)
            self.flush()
        elif isinstance(problem, Exception):
            self._writing = self._loop.create_task(self._cope(gathered, problem))

    def _over(self, gathered: Gathering, rows: list[OutboxRow] | None) -> None:
        """It is known what became of a batch; None: it has to be decided again, or never."""
        if rows is not None:
            self._durable(gathered, rows)
        if not self._parts:
            self._settled = self._number - 1
            if self._settling:
                self._settle()

    async def _cope(self, gathered: Gathering, problem: Exception) -> None:
        try:
            rows = await self._after(gathered, problem)
            self._over(gathered, rows)
        except StoreUnavailable as final:  # for good: nobody may wait for it
            self._lost(final)
        finally:
            self._writing = None
        self.flush()

    async def _after(self, gathered: Gathering, problem: Exception) -> list[OutboxRow] | None:
        """What became of a batch the store did not take: its rows if it did, None if it did not."""
        if isinstance(problem, StoreConflict):
            if problem.kind == "LEASE_CONFLICT":
                self._lost(self._shards.still_held(problem, gathered.fences))
            if self._stopped:
                self._gathering.decided[:0] = gathered.decided
                return None
            log.warning("the store refused a batch: deciding again", error=str(problem))
        elif isinstance(problem, StoreUnavailable):
            delay = min(RETRY_FIRST_S * 2 ** (self._failures - 1), RETRY_LAST_S) if self._failures else 0
            self._failures += 1
            OUTAGE.failed("committing", problem)
            await asyncio.sleep(delay)
            found = await self._went_through(gathered)
            if found is not None:
                return found
        else:
            await self._isolate(gathered, problem)
            return None
        await self._start_over(gathered)
        return None

    async def _went_through(self, gathered: Gathering) -> list[OutboxRow] | None:
        """The rows of a batch nobody heard of any more; None if it did not happen. Comparing its fences first makes
        sure that it is over. A batch happens as a whole, and under fences that are still ours nobody else writes: one
        event tells. Else somebody may have decided the same, so every decision is compared."""
        are_ours = await self._until_reachable(gathered.fences)
        decisions = [commit for commit in gathered.commits if commit.events]
        if not decisions or self._stopped:
            return None
        for commit in decisions[:1] if are_ours else decisions:
            if not await self._is_there(commit, entirely=not are_ours):
                return None
        rows: list[OutboxRow] = []
        shards = [fence.shard for fence in gathered.fences]
        while page := await reliably(lambda: self.store.outbox(shards, self._last_row), lambda: self._stopped):
            rows += page
            self._last_row = page[-1].id
        return rows

    async def _is_there(self, commit: Commit, entirely: bool) -> bool:
        run, seq, count = commit.run, commit.expected_seq, len(commit.events) if entirely else 1
        found = await reliably(lambda: self.store.history(run, seq, count), lambda: self._stopped)
        return bool(found) and (not entirely or pack_events(found) == pack_events(list(commit.events)))

    async def _isolate(self, gathered: Gathering, problem: Exception) -> None:
        """One decision is to blame, and those made on it; the others must not notice."""
        if len(gathered.decided) > 1:
            self._parts.extendleft(reversed(gathered.halves()))
            return
        log.error("a decision cannot be written", exc_info=problem)
        for decided in gathered.decided:
            await self._start_over(gathered.rest())
            self._refused(decided.item, problem)

    async def _start_over(self, gathered: Gathering) -> None:
        await self._until_reachable(self._shards.covering(()))
        behind = [*self._parts, self._gathering]
        self._parts.clear()
        self._gathering = gathered.rest(*behind)
        self._gathering.keep_answers(self._shards.holds)
        self._number += 1
        self._again([decided.item for one in (gathered, *behind) for decided in one.decided])

    async def _until_reachable(self, fences: tuple[Fence, ...]) -> bool:
        """Whether these are still ours."""
        try:
            await reliably(lambda: self.store.commit(Batch(), *fences), lambda: self._stopped)
        except StoreConflict as conflict:
            self._lost(self._shards.still_held(conflict, fences))
            return False
        return True


async def reliably(ask: Callable[[], Awaitable[T]], is_over: Callable[[], bool]) -> T:
    """Asks a store until it answers. Only for what may be asked again."""
    delay = RETRY_FIRST_S
    while True:
        try:
            answer = await ask()
            OUTAGE.answered()
            return answer
        except StoreUnavailable as problem:
            if is_over() or problem.final:
                raise
            OUTAGE.failed("reading", problem)
            await asyncio.sleep(delay)
            delay = min(delay * 2, RETRY_LAST_S)

"""The committer: gathers decisions while the last batch is being written, writes them in one transaction, and copes
with a store that does not answer.

Owns the batch that gathers and the batch being written. Promises order: batches are written one after the other, and
decisions are reported durable in the order in which they were made. Must not know what a decision means.

    add ─► gathering ─┬─► commit n ─► durable(n)   (n+1 gathers meanwhile)
                      ├─► the outcome of commit n is unknown: read the store; if it was written, durable(n)
                      └─► commit n was not written: the items of n and n+1 are handed back, to be decided again

A batch is written under the fences of the shards whose runs it is about. Losing some shards does not affect the others,
except that their decisions are made again.

If a batch holds a value that cannot be packed, the batch is cut in halves again and again, until the decision with
that value stands alone. That decision is refused; all others are written.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

from treadle.errors import StoreConflict, StoreUnavailable
from treadle.model.codec import pack_events
from treadle.runtime.coordinate.gathering import Decided, Gathering, Item
from treadle.runtime.coordinate.hold_back import HoldBack
from treadle.runtime.coordinate.shards import Shards
from treadle.runtime.surroundings import patience
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.outage import OUTAGE
from treadle.runtime.surroundings.patience import reliably
from treadle.store.port import Batch, Commit, Fence, InboxAnswer, OutboxRow, Store
from treadle.store.service import ServiceStore

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
        hold_back: HoldBack,
    ) -> None:
        self.store = store
        self._shards = shards
        self._durable = durable
        self._again = again
        """Called with the items of failed batches, in order: they are decided again on states read from the store."""
        self._lost = lost
        """Called when another node holds the leases of some shards, or the store has failed for good."""
        self._refused = refused
        """Called with an item whose decision cannot be packed, and the exception."""
        self._hold_back = hold_back
        self._loop = asyncio.get_running_loop()
        self._gathering = Gathering()
        self._parts: deque[Gathering] = deque()
        """Parts of a batch that was cut in halves, in order. They are written first."""
        self._number, self._settled = 1, 0
        """Numbers of the batch that gathers, and of the last batch whose outcome is known."""
        self._settling: list[asyncio.Future[None]] = []
        self._writing: asyncio.Future[list[OutboxRow]] | asyncio.Task[None] | None = None
        """The commit under way, or the task that copes with a commit that failed; None: neither."""
        self._stopped = False
        self._written = 0
        self._failures = 0
        """Failed commits in a row. A full disk can be read and not written, so only a successful write resets this."""
        self._last_row = 0
        """Id of the newest outbox row this committer has written."""

    @property
    def is_idle(self) -> bool:
        return self._writing is None and not self._gathering

    @property
    def settled(self) -> int:
        """How many batches were written or handed back so far."""
        return self._settled

    @property
    def written(self) -> int:
        """How many batches the store has written so far. It grows as long as there is progress."""
        return self._written

    @property
    def waiting(self) -> list[Item]:
        """Items that are decided and whose batch has not been sent."""
        return [decided.item for part in (*self._parts, self._gathering) for decided in part.decided]

    def add(self, decided: Decided, commit: Commit | None) -> None:
        self._gathering.add(decided, commit)

    def settle(self, row: int, parked: str | None = None) -> None:
        """Removes an outbox row with the next batch, or makes it a dead letter for the reason `parked`."""
        if parked is None:
            self._gathering.done.append(row)
        else:
            self._gathering.parked.append((row, parked))

    def revive(self, row: int | None, answer: InboxAnswer | None) -> None:
        """Puts a dead letter back into the outbox with the next batch, and answers the request for that."""
        if row is not None:
            self._gathering.revived.append(row)
        if answer is not None:
            self._gathering.answers.append(answer)

    def flush(self) -> None:
        """Writes the gathered batch now, or when the batch being written is done and is held back no longer."""
        while self._writing is None and (self._parts or self._gathering) and not self._stopped:
            if not self._parts and self._hold_back.goes_on(self._gathering):
                break
            self._write(self._take())

    async def drained(self) -> None:
        """Waits until everything gathered so far is durable or was handed back, not for decisions gathered later."""
        last = self._number if self._gathering else self._number - 1
        while self._settled < last and not self._stopped:
            self.flush()
            if self._settled >= last:
                return  # there was nothing to write
            settled: asyncio.Future[None] = self._loop.create_future()
            self._settling.append(settled)
            await settled

    def stop(self) -> None:
        """Writes nothing from now on. The outcome of a commit under way stays unknown."""
        self._stopped = True
        self._settle()

    def _take(self) -> Gathering:
        if self._parts:
            return self._parts.popleft()
        self._number += 1
        gathered, self._gathering = self._gathering, Gathering()
        return gathered

    def _settle(self) -> None:
        """Wakes the callers of `drained`; each checks whether its batch was the one."""
        settling, self._settling = self._settling, []
        for future in settling:
            if not future.done():
                future.set_result(None)

    # A commit ends in a callback. Awaiting it in a task would cost a lone chain two turns of the loop per commit.

    def _write(self, gathered: Gathering) -> None:
        if not gathered.writes and not self._shards.is_shared:
            self._over(gathered, [])
            return
        try:
            # The fences are compared even if there is nothing to write: if another node has changed the run since, an
            # answer from this node's state would be wrong.
            gathered.fences = self._shards.covering(gathered.runs if self._shards.is_shared else ())
            gathered.sent = self._loop.time()
            writing = asyncio.ensure_future(self.store.commit(gathered.batch(), *gathered.fences))
        except Exception as problem:
            self._writing = self._loop.create_task(self._cope(gathered, problem))
            return
        if writing.done():  # some stores write at once
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
            if rows := writing.result():
                self._last_row = rows[-1].id
            self._written, self._failures = self._written + 1, 0
            OUTAGE.answered()
            self._over(gathered, rows)
            self._hold_back.answered(gathered, self._gathering)
            self.flush()
        elif isinstance(problem, Exception):
            self._writing = self._loop.create_task(self._cope(gathered, problem))

    def _over(self, gathered: Gathering, rows: list[OutboxRow] | None) -> None:
        """Ends a batch whose outcome is known. `rows` is None if it was not written."""
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
        except StoreUnavailable as final:  # for good: callers must not go on waiting
            self._lost(final)
        finally:
            self._writing = None
        self.flush()

    async def _after(self, gathered: Gathering, problem: Exception) -> list[OutboxRow] | None:
        """Outcome of a failed commit: its rows if it was written after all, else None."""
        if isinstance(problem, StoreConflict):
            if problem.kind == "LEASE_CONFLICT":
                self._lost(self._shards.still_held(problem, gathered.fences))
            if self._stopped:
                self._gathering.decided[:0] = gathered.decided
                return None
            log.warning("the store refused a batch: deciding again", error=str(problem))
        elif isinstance(problem, StoreUnavailable):
            delay = (
                min(patience.RETRY_FIRST_S * 2 ** (self._failures - 1), patience.RETRY_LAST_S) if self._failures else 0
            )
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
        """The rows of a batch whose outcome is unknown; None if it was not written. An empty commit under its fences
        comes first, so that the unknown commit is over when the histories are read. A batch is written as a whole: if
        the fences are still ours, one of its events is enough. Otherwise another node may have made similar decisions,
        and every decision is compared in full."""
        are_ours = await self._until_reachable(gathered.fences)
        decisions = [commit for commit in gathered.commits if commit.events]
        if self._stopped or not (decisions or await self._is_answered(gathered)):
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

    async def _is_answered(self, gathered: Gathering) -> bool:
        """Whether the requests of a batch without decisions have their answers. A refused start must not be decided
        again once its sender may know of the refusal: meanwhile there may be room for it."""
        asked = [(one.item.asks_for, one.item.request) for one in gathered.decided if one.item.request and one.answer]
        for run, request in asked:
            store = cast(ServiceStore, self.store)
            known = await reliably(lambda: store.find_request(run, request), lambda: self._stopped)  # noqa: B023
            if known is None or known.answer is None:
                return False
        self._gathering.done += gathered.done if asked else ()  # answered before, perhaps: removing rows twice is safe
        return bool(asked)

    async def _is_there(self, commit: Commit, entirely: bool) -> bool:
        run, seq, count = commit.run, commit.expected_seq, len(commit.events) if entirely else 1
        found = await reliably(lambda: self.store.history(run, seq, count), lambda: self._stopped)
        return bool(found) and (not entirely or pack_events(found) == pack_events(list(commit.events)))

    async def _isolate(self, gathered: Gathering, problem: Exception) -> None:
        """Cuts a batch that cannot be packed in halves. A batch of one decision is refused, and decisions made after it
        are made again."""
        if len(gathered.decided) > 1:
            self._parts.extendleft(reversed(gathered.halves()))
            return
        log.error("a decision cannot be written", exc_info=problem)
        for decided in gathered.decided:
            await self._start_over(gathered.without_items())
            self._refused(decided.item, problem)

    async def _start_over(self, gathered: Gathering) -> None:
        await self._until_reachable(self._shards.covering(()))
        behind = [*self._parts, self._gathering]
        self._parts.clear()
        self._gathering = gathered.without_items(*behind)
        self._gathering.keep_answers(self._shards.holds)
        self._number += 1
        self._again([decided.item for one in (gathered, *behind) for decided in one.decided])

    async def _until_reachable(self, fences: tuple[Fence, ...]) -> bool:
        """Waits until the store answers. Returns whether this node still holds these fences."""
        try:
            await reliably(lambda: self.store.commit(Batch(), *fences), lambda: self._stopped)
        except StoreConflict as conflict:
            self._lost(self._shards.still_held(conflict, fences))
            return False
        return True

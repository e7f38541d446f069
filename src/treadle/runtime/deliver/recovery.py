"""What a new owner does first: makes up for what the last one left undone.

Owns nothing; everything it does is to say again what the store has. Promises to look only at what may have been lost:
rows of the outbox, runs somebody was at work for, requests without an answer. A sleeping run is not touched. Work that
was claimed is not lost before its lease is over, and a lease is a timer: nobody has to look for it here. Saying
something twice is harmless, so a recovery may itself be interrupted and repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from treadle.kernel.state import RunState, Token
from treadle.model.commands import LoseWorker
from treadle.model.effects import OfferWork, RunTask
from treadle.model.ids import RunId, TokenId
from treadle.model.states import TokenState
from treadle.runtime.coordinate.committer import reliably
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.hot import is_executed_here, is_on_a_queue
from treadle.runtime.deliver.delivery import Delivery
from treadle.store.port import InboxRequest, OutboxRow, RunQuery
from treadle.store.transfer import CheckableStore

PAGE = 1_000

IsInHand = Callable[[RunId, TokenId, int], bool]
"""Whether an executor of this process has an attempt in hand."""


class Recovery:
    """See the module's docstring."""

    def __init__(
        self, coordinator: Coordinator, delivery: Delivery, is_in_hand: IsInHand, is_gone: Callable[[str | None], bool]
    ) -> None:
        self._coordinator = coordinator
        self._delivery = delivery
        self._is_in_hand = is_in_hand
        self._is_gone = is_gone
        """Whether a worker is known to be gone, whatever its lease says."""
        self._taken: set[str] = set()
        """Requests being answered."""
        self._looking = asyncio.Lock()

    async def recover(self, shards: Sequence[int] | None = None, graceful: bool = False) -> None:
        """Of these shards, or of all that are owned. Rows first: what they offer need not be looked for among the runs.
        `graceful`: the last owner has stopped its work in good order."""
        shards = self._coordinator.shards.owned if shards is None else shards
        if shards:
            offered = await self._redeliver(shards)
            await self._replace_workers(shards, offered, graceful)
            await self.read_inbox()

    def give_back(self, request: str) -> None:
        """It was taken up and will not be answered here; if its run comes back, it is taken up again."""
        self._taken.discard(request)

    async def read_inbox(self) -> None:
        """Takes up what other processes ask for. Requests being answered are still listed until that is durable."""
        async with self._looking:
            while await self._read_page():
                pass

    async def _read_page(self) -> bool:
        """Whether there may be more."""
        limit = PAGE + len(self._taken)
        shards = self._coordinator.shards.owned
        requests = await self._coordinator.store.inbox(shards, limit) if shards else []
        self._taken &= {request.id for request in requests}
        if any(request.id not in self._taken for request in requests):
            await self._coordinator.library.refresh()  # in this order: what was deployed before it was asked is known
        for request in requests:
            if request.id not in self._taken:
                self._taken.add(request.id)
                self._take_up(request)
        return len(requests) == limit

    def _take_up(self, request: InboxRequest) -> None:
        if request.command is not None:
            self._coordinator.put(Item(request.run, request.command, request.workflow, request=request.id))
        else:
            self._coordinator.spawn(self.revive(request.revive, request.run, request.id))

    async def revive(self, row: int, run: RunId, request: str = "") -> None:
        """A dead letter of a run is tried again; a row that is none is left alone."""
        store, shard = self._coordinator.store, self._coordinator.shards.of(run)
        read = partial(store.outbox, shard, row - 1, 1, parked=True)
        parked = await reliably(read, lambda: self._coordinator.stopped is not None)
        known = bool(parked) and parked[0].id == row
        self._coordinator.revive(row if known else None, run, request)
        if known:
            await self._coordinator.drained()
            self._delivery.row(OutboxRow(row, parked[0].run, parked[0].effect))

    async def _redeliver(self, shards: Sequence[int]) -> set[tuple[RunId, TokenId]]:
        offered = set()
        after = 0
        while rows := await self._coordinator.store.outbox(shards, after, PAGE):
            for row in rows:
                if isinstance(row.effect, RunTask):
                    offered.add((row.run, row.effect.token))
                self._delivery.row(row)
            after = rows[-1].id
        return offered

    async def _replace_workers(
        self, shards: Sequence[int], offered: set[tuple[RunId, TokenId]], graceful: bool
    ) -> None:
        """Whoever executed something without a lease of its own is gone with its process."""
        query = RunQuery(busy=True, shard=tuple(shards), limit=PAGE)
        while runs := await self._coordinator.store.find_runs(query):
            for row in runs:
                state = await self._coordinator.state(row.run)
                if state is not None:
                    self._lose(state, offered, await self._on_offer(state), graceful)
            query = RunQuery(busy=True, shard=query.shard, after=runs[-1].run, limit=PAGE)

    async def _on_offer(self, state: RunState) -> set[TokenId]:
        """Visits whose row has a claim, or will have: a claim that ran out is `offering`'s business. Queue work without
        a row was at work in an engine, or with a worker, of the store that was moved here."""
        if self._coordinator.shape is None or not any(_is_queued(state, token) for token in state.tokens.values()):
            return set()
        await self._coordinator.drained()
        assert isinstance(self._coordinator.store, CheckableStore), "every store has them"
        rows = (await self._coordinator.store.beside([state.run])).outbox.get(state.run, [])
        return {row.effect.token for row in rows if isinstance(row.effect, OfferWork)}

    def _lose(
        self, state: RunState, offered: set[tuple[RunId, TokenId]], on_offer: set[TokenId], graceful: bool
    ) -> None:
        for token in state.tokens.values():
            if not is_executed_here(state, token) or self._is_in_hand(state.run, token.id, token.attempt):
                continue
            if self._is_leased(state, token):
                continue
            if token.id in on_offer:
                continue
            if token.state is TokenState.DISPATCHED and (state.run, token.id) in offered:
                continue
            self._coordinator.tell(state.run, LoseWorker(token.id, token.attempt, token.recoveries, graceful))

    def _is_leased(self, state: RunState, token: Token) -> bool:
        """Whether somebody else may still be at work: its lease says so, or will say when it is not."""
        leased = any(state.timers[timer].purpose == "lease" for timer in token.timers)
        return leased and not self._is_gone(token.worker)


def _is_queued(state: RunState, token: Token) -> bool:
    return is_executed_here(state, token) and is_on_a_queue(state, token)

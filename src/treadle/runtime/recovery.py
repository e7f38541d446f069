"""What a new owner does first: makes up for what the last one left undone.

Owns nothing; everything it does is to say again what the store has. Promises to look only at what may have been lost:
rows of the outbox, runs somebody was at work for, requests without an answer. A sleeping run is not touched. Saying
something twice is harmless, so a recovery may itself be interrupted and repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from treadle.kernel.state import RunState
from treadle.model.commands import LoseWorker
from treadle.model.effects import RunTask
from treadle.model.ids import RunId, TokenId
from treadle.model.states import TokenState
from treadle.runtime.committer import reliably
from treadle.runtime.coordinator import Coordinator
from treadle.runtime.deliver import Delivery
from treadle.runtime.gathering import Item
from treadle.runtime.hot import is_executed_here
from treadle.store.port import OutboxRow, Request, RunQuery

PAGE = 1_000

IsInHand = Callable[[RunId, TokenId, int], bool]
"""Whether an executor of this process has an attempt in hand."""


class Recovery:
    """See the module's docstring."""

    def __init__(self, coordinator: Coordinator, delivery: Delivery, is_in_hand: IsInHand) -> None:
        self._coordinator = coordinator
        self._delivery = delivery
        self._is_in_hand = is_in_hand
        self._taken: set[str] = set()
        """Requests being answered."""
        self._looking = asyncio.Lock()

    async def recover(self, graceful: bool = False) -> None:
        """Rows first: what they offer need not be looked for among the runs. `graceful`: the last owner has stopped its
        work in good order."""
        offered = await self._redeliver()
        await self._replace_workers(offered, graceful)
        await self.read_inbox()

    async def read_inbox(self) -> None:
        """Takes up what other processes ask for. Requests being answered are still listed until that is durable."""
        async with self._looking:
            while await self._read_page():
                pass

    async def _read_page(self) -> bool:
        """Whether there may be more."""
        limit = PAGE + len(self._taken)
        requests = await self._coordinator.store.inbox(self._coordinator.fence.shard, limit)
        await self._coordinator.library.refresh()  # in this order: what was deployed before it was asked for is known
        self._taken &= {request.id for request in requests}
        for request in requests:
            if request.id not in self._taken:
                self._taken.add(request.id)
                self._take_up(request)
        return len(requests) == limit

    def _take_up(self, request: Request) -> None:
        if request.command is not None:
            self._coordinator.put(Item(request.run, request.command, request.workflow, request=request.id))
        else:
            self._coordinator.spawn(self.revive(request.revive, request.id))

    async def revive(self, row: int, request: str = "") -> None:
        """A dead letter is tried again; a row that is none is left alone."""
        store, shard = self._coordinator.store, self._coordinator.fence.shard
        read = partial(store.outbox, shard, row - 1, 1, parked=True)
        parked = await reliably(read, lambda: self._coordinator.stopped is not None)
        known = bool(parked) and parked[0].id == row
        self._coordinator.revive(row if known else None, request)
        if known:
            await self._coordinator.drained()
            self._delivery.row(OutboxRow(row, parked[0].run, parked[0].effect))

    async def _redeliver(self) -> set[tuple[RunId, TokenId]]:
        offered = set()
        after = 0
        while rows := await self._coordinator.store.outbox(self._coordinator.fence.shard, after, PAGE):
            for row in rows:
                if isinstance(row.effect, RunTask):
                    offered.add((row.run, row.effect.token))
                self._delivery.row(row)
            after = rows[-1].id
        return offered

    async def _replace_workers(self, offered: set[tuple[RunId, TokenId]], graceful: bool) -> None:
        """Whoever executed something without a lease of its own is gone with its process."""
        query = RunQuery(busy=True, shard=self._coordinator.fence.shard, limit=PAGE)
        while runs := await self._coordinator.store.find_runs(query):
            for row in runs:
                state = await self._coordinator.state(row.run)
                if state is not None:
                    self._lose(state, offered, graceful)
            query = RunQuery(busy=True, shard=query.shard, after=runs[-1].run, limit=PAGE)

    def _lose(self, state: RunState, offered: set[tuple[RunId, TokenId]], graceful: bool) -> None:
        for token in state.tokens.values():
            if not is_executed_here(state, token) or self._is_in_hand(state.run, token.id, token.attempt):
                continue
            if token.state is TokenState.DISPATCHED and (state.run, token.id) in offered:
                continue
            self._coordinator.tell(state.run, LoseWorker(token.id, token.attempt, token.recoveries, graceful))

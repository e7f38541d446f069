"""The inbox: requests of other processes for runs that this node decides for.

Owns the requests that were taken up and are not answered yet. Promises that each is put to the coordinator once while
this node owns its run. Must not answer: the answer is written in the transaction of the decision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from treadle.model.ids import RunId
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.deliver.delivery import Delivery
from treadle.runtime.surroundings.patience import reliably
from treadle.store.port import InboxRequest, OutboxRow

PAGE = 1_000


class Inbox:
    """See the module's docstring."""

    def __init__(self, coordinator: Coordinator, delivery: Delivery) -> None:
        self._coordinator = coordinator
        self._delivery = delivery
        self._taken: set[str] = set()
        """Ids of requests that were taken up and whose answer is not known to be durable."""
        self._reading = asyncio.Lock()
        self.is_asked_here: Callable[[str], bool] = lambda _request: False
        """Whether a request is being decided that a caller of this process has made, too: it answers both."""

    async def read(self) -> None:
        """Takes up every new request. Requests being answered are still listed until their answer is durable."""
        async with self._reading:
            while await self._read_page():
                pass

    def give_back(self, request: str) -> None:
        """The request was taken up and will not be answered here; if its run comes back, it is taken up again."""
        self._taken.discard(request)

    def answered_here(self, request: str) -> None:
        """A caller of this process has had its answer: a page that was read before still lists it as unanswered."""
        self._taken.add(request)

    async def revive(self, row: int, run: RunId, request: str = "") -> None:
        """Tries a dead letter of a run again; a row that is no dead letter is left alone."""
        store, shard = self._coordinator.store, self._coordinator.shards.of(run)
        read = partial(store.outbox, shard, row - 1, 1, parked=True)
        parked = await reliably(read, lambda: self._coordinator.stopped is not None)
        known = bool(parked) and parked[0].id == row
        self._coordinator.revive(row if known else None, run, request)
        if known:
            await self._coordinator.drained()
            self._delivery.row(OutboxRow(row, parked[0].run, parked[0].effect))

    async def _read_page(self) -> bool:
        """Returns whether there may be more."""
        limit = PAGE + len(self._taken)
        shards = self._coordinator.shards.owned
        requests = await self._coordinator.store.inbox(shards, limit) if shards else []
        self._taken &= {request.id for request in requests}
        if any(request.id not in self._taken for request in requests):
            await self._coordinator.library.refresh()  # after the inbox: a version deployed before a request is known
        for request in requests:
            if request.id not in self._taken and not self.is_asked_here(request.id):
                self._taken.add(request.id)
                self._take_up(request)
        return len(requests) == limit

    def _take_up(self, request: InboxRequest) -> None:
        if request.command is not None:
            self._coordinator.put(Item(request.run, request.command, request.workflow, request=request.id))
        else:
            self._coordinator.spawn(self.revive(request.revive, request.run, request.id))

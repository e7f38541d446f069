"""Recovery: a new owner carries out again the effects that the last owner may have left undone.

Owns nothing. It delivers outbox rows again, and reports work of a dead process as lost, so that it is handed out again.
Promises to read only rows of the outbox and runs marked `busy`; a run that only waits is not touched. Claimed work is
not lost before its lease runs out, and a lease is a timer, so recovery need not look for it. Delivering a row or a
report twice is harmless, so a recovery may itself be interrupted and repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treadle.kernel.state import RunState, Token
from treadle.model.commands import LoseWorker
from treadle.model.effects import OfferWork, RunTask
from treadle.model.ids import RunId, TokenId
from treadle.model.states import TokenState
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.coordinate.hot import is_executed_here, is_on_a_queue
from treadle.runtime.deliver.delivery import Delivery
from treadle.store.port import RunQuery
from treadle.store.transfer import CheckableStore

PAGE = 1_000

IsInHand = Callable[[RunId, TokenId, int], bool]
"""Returns whether an executor of this process has the attempt in hand."""


class Recovery:
    """See the module's docstring."""

    def __init__(
        self, coordinator: Coordinator, delivery: Delivery, is_in_hand: IsInHand, is_gone: Callable[[str | None], bool]
    ) -> None:
        self._coordinator = coordinator
        self._delivery = delivery
        self._is_in_hand = is_in_hand
        self._is_gone = is_gone
        """Returns whether a worker is known to be gone, whatever its lease says."""

    async def recover(self, shards: Sequence[int] | None = None, graceful: bool = False) -> None:
        """Recovers these shards, or all owned ones for None. Rows come first: work they offer is not lost and is
        skipped among the runs. `graceful`: the last owner has stopped its work in good order."""
        shards = self._coordinator.shards.owned if shards is None else shards
        if shards:
            offered = await self._redeliver(shards)
            await self._replace_workers(shards, offered, graceful)

    async def _redeliver(self, shards: Sequence[int]) -> set[tuple[RunId, TokenId]]:
        offered, holds = set(), self._delivery.held.of(shards)
        after = 0
        while rows := await self._coordinator.store.outbox(shards, after, PAGE):
            for row in rows:
                if isinstance(row.effect, RunTask):
                    offered.add((row.run, row.effect.token))
                self._delivery.found(row)
            after = rows[-1].id
        self._delivery.let_on(holds)
        return offered

    async def _replace_workers(
        self, shards: Sequence[int], offered: set[tuple[RunId, TokenId]], graceful: bool
    ) -> None:
        """Reports work without a lease of its own as lost: it ended with the process that executed it."""
        query = RunQuery(busy=True, shard=tuple(shards), limit=PAGE)
        while runs := await self._coordinator.store.find_runs(query):
            for row in runs:
                state = await self._coordinator.state(row.run)
                if state is not None:
                    self._lose(state, offered, await self._on_offer(state), graceful)
            query = RunQuery(busy=True, shard=query.shard, after=runs[-1].run, limit=PAGE)

    async def _on_offer(self, state: RunState) -> set[TokenId]:
        """Visits whose work is offered to workers, claimed or not; `offers` notices a claim that has run out. Queue
        work without an offer was being executed when its store was moved here."""
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
        """Whether another worker may still be at work: it has a lease, whose timer fires if the worker is lost."""
        leased = any(state.timers[timer].purpose == "lease" for timer in token.timers)
        return leased and not self._is_gone(token.worker)


def _is_queued(state: RunState, token: Token) -> bool:
    return is_executed_here(state, token) and is_on_a_queue(state, token)

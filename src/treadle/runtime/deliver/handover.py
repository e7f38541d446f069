"""Attempts that go on here while another node becomes the owner of their run.

Owns the claims of the attempts in hand. Promises that handing a shard over stops no work. First, every attempt that is
executed here without a lease of its own gets a durable claim: this node as its worker, with a lease. Then the shard is
given up. This node goes on executing, renews the lease, and sends the result to the new owner of the run. The new owner
hands work out again only when its lease has run out. Must not know which node that is, nor why shards move.

    executing here ─► StartAttempt(worker, lease) ─► durable ─► shard released ─► … ─► result, through the inbox
                                     └── not durable: the work is stopped, the new owner hands it out again
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from msgspec.structs import replace

from treadle.errors import EngineStopped
from treadle.model import commands as c
from treadle.model.ids import RunId, TokenId
from treadle.model.states import TokenState
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.shards import Moved
from treadle.runtime.surroundings.ports import Alarm, Clock, Executor, Report
from treadle.store.port import InboxAnswer

CLAIM_MS = 30_000
"""Lease of a claim. Two renewals may fail before the work is taken away, and it outlasts a new owner that crashes."""

Identity = tuple[RunId, TokenId, int]


class Claims(dict[Identity, int]):
    """The attempts claimed for this node, with the number of times each had been lost before."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = ""
        """Name of this node in the leases; a restart gets a new one."""

    def signed(self, run: RunId, command: c.Command) -> c.Command:
        """Adds this node as the worker to a result of claimed work, and ends the claim. Returns other commands as they
        are."""
        if isinstance(command, c.FinishAttempt | c.FailAttempt) and command.worker is None:
            attempt = (run, command.token, command.attempt)
            if self.pop(attempt, None) is not None:
                return replace(command, worker=self.owner)
        return command


class Handover:
    """See the module's docstring."""

    def __init__(
        self, coordinator: Coordinator, executor: Executor, clock: Clock, claims: Claims, report: Report
    ) -> None:
        self._coordinator = coordinator
        self._executor = executor
        self._clock = clock
        self._claims = claims
        self._report = report
        self._alarm: Alarm | None = None

    async def claim_cold(self, shards: Collection[int]) -> None:
        """Claims work whose runs are not in memory, one by one: they have to be read first."""
        for attempt in self._executor.in_hand:
            run, identity = attempt.run, attempt.identity
            if self._coordinator.shards.of(run) not in shards or self._coordinator.is_hot(run):
                continue
            if attempt.queue is not None or identity in self._claims:
                continue
            state = await self._coordinator.state(run)
            token = state.tokens.get(attempt.token) if state is not None else None
            if token is None or token.worker is not None:
                continue
            until = self._clock.now() + CLAIM_MS
            with suppress(Moved, EngineStopped):
                answer = await self._coordinator.ask(
                    run, c.StartAttempt(token.id, attempt.attempt, self._claims.owner, until)
                )
                if answer.rejection is None and self._executor.has_in_hand(*identity):
                    self._claims[identity] = token.recoveries

    def claim(self, shards: Collection[int]) -> Callable[[], None]:
        """Claims all work executed here for hot runs of these shards, ahead of other decisions about them. Returns a
        function to be called when the claims are durable or known to have failed: it stops work whose claim failed."""
        asked: list[tuple[Identity, asyncio.Future[InboxAnswer]]] = []
        until = self._clock.now() + CLAIM_MS
        for run, hot in self._coordinator.hot_runs(shards):
            for id in tuple(hot.attempts):
                token = hot.state.tokens.get(id)
                if token is None or token.state is not TokenState.EXECUTING or token.worker is not None:
                    continue
                attempt = (run, id, token.attempt)
                if not self._executor.has_in_hand(*attempt) and id not in hot.handed_out:
                    continue
                told = self._coordinator.decide_now(run, c.StartAttempt(id, token.attempt, self._claims.owner, until))
                if told is not None:
                    told.add_done_callback(_consume_exception)
                    self._claims[attempt] = token.recoveries
                    asked.append((attempt, told))
        self._renew_later()
        return lambda: self._settle(asked)

    def give_up(self) -> None:
        """This node closes: reports its claimed work as lost, so that the owners of the runs hand it out again at
        once."""
        if self._alarm is not None:
            self._alarm.cancel()
        for (run, token, attempt), recoveries in list(self._claims.items()):
            self._report(run, c.LoseWorker(token, attempt, recoveries, graceful=True))

    def _settle(self, asked: list[tuple[Identity, asyncio.Future[InboxAnswer]]]) -> None:
        for attempt, told in asked:
            refused = not told.done() or told.cancelled() or told.exception() or told.result().rejection is not None
            if refused and attempt in self._claims:
                self._claims.pop(attempt, None)
                self._executor.stop(*attempt)

    def _renew_later(self) -> None:
        if self._claims and self._alarm is None:
            self._alarm = self._clock.call_at(self._clock.now() + CLAIM_MS // 3, self._renew)

    def _renew(self) -> None:
        self._alarm = None
        until = self._clock.now() + CLAIM_MS
        for attempt in list(self._claims):
            if self._executor.has_in_hand(*attempt):
                run, token, number = attempt
                told = self._coordinator.future()
                told.add_done_callback(partial(self._renewed, attempt))
                beat = c.ExtendLease(token, number, self._claims.owner, until)
                self._coordinator.put(Item(run, beat, future=told))
            else:  # it was stopped, and its result is not wanted
                self._claims.pop(attempt, None)
        self._renew_later()

    def _renewed(self, attempt: Identity, told: asyncio.Future[InboxAnswer]) -> None:
        """Stops work whose renewal was refused: another worker has it."""
        lost = not told.cancelled() and told.exception() is None and told.result().rejection is not None
        if lost and attempt in self._claims:
            self._claims.pop(attempt, None)
            self._executor.stop(*attempt)


def _consume_exception(told: asyncio.Future[InboxAnswer]) -> None:
    """Consumes the exception, so that asyncio does not warn about it."""
    if not told.cancelled():
        told.exception()

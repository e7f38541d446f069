"""Work that this node executes itself: begun at once or after waiting in line, stopped, and reported.

Owns the executor, the outbox rows of work in line, and `report`, through which results come back. Promises that the row
of work in line is removed only when the beginning of the work is durable, or when the work is withdrawn. Every report
carries the lease epoch the work ran under, so that a report from before a hand-over is not taken for a new one. Must
not know other effects of a decision (`delivery`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.events import RunResumed
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus, TokenState
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.coordinate.gathering import Decided, Item
from treadle.runtime.coordinate.shards import Moved
from treadle.runtime.deliver.handover import Claims
from treadle.runtime.execute.attempt_of_run import AttemptMaker
from treadle.runtime.execute.progress import Progress
from treadle.runtime.surroundings.ports import MakeExecutor
from treadle.store.port import InboxAnswer, OutboxRow

Identity = tuple[RunId, TokenId, int]
"""Identity of an attempt: run, visit, number."""


class OwnWork:
    """See the module's docstring."""

    def __init__(
        self,
        coordinator: Coordinator,
        make_executor: MakeExecutor,
        attempts: AttemptMaker,
        progress: Progress,
        claims: Claims,
    ) -> None:
        self._coordinator = coordinator
        self._is_shared, self._epoch_of = coordinator.shards.is_shared, coordinator.shards.epoch_of
        self._attempts = attempts
        self._progress = progress
        self._claims = claims
        self.executor = make_executor(self.report)
        self._offered: dict[Identity, OutboxRow] = {}
        """Rows of work in line, by attempt."""
        self._held: dict[RunId, list[Identity]] = {}
        """Work of paused runs whose turn came during the pause: offered again when the run is resumed."""

    def is_claimed(self, run: RunId, effect: f.RunTask) -> bool:
        """Whether this node has claimed the attempt, so that it goes on here though its run has another owner."""
        return (run, effect.token, effect.attempt) in self._claims

    def _offer_row(self, row: OutboxRow) -> None:
        assert isinstance(row.effect, f.RunTask), "nothing else waits in line"
        if self._coordinator.shards.owns(row.run):
            self.offer(row, row.effect)

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Forgets work in line of the other runs: their new owner hands it out."""
        for key in [key for key in self._offered if not is_kept(key[0])]:
            del self._offered[key]
            self.executor.stop(*key)
        self._held = {run: keys for run, keys in self._held.items() if is_kept(run)}

    def report(self, run: RunId, command: c.Command) -> None:
        """Takes a report from an executor. The report that work begins removes the outbox row of the work. A renewal
        does not: if there is a row, the work was lost and is on offer again."""
        if self._claims:
            command = self._claims.signed(run, command)
        if isinstance(command, (c.FinishAttempt, c.FailAttempt)):
            if self._progress.has_spoken:
                self._progress.ended(run, command.token, command.attempt)
        elif isinstance(command, (c.StartAttempt, c.ExtendLease)):
            begins = isinstance(command, c.StartAttempt)
            row = self._offered.get((run, command.token, command.attempt)) if begins else None
            told = self._stop_if_refused(run, command, row)
            id, epoch = row.id if row is not None else 0, self._epoch_of(run)
            self._coordinator.put(Item(run, command, future=told, row=id, keeps_row=True, epoch=epoch))
            return
        self._coordinator.put(Item(run, command, epoch=self._epoch_of(run) if self._is_shared else 0))

    def _stop_if_refused(
        self, run: RunId, command: c.StartAttempt | c.ExtendLease, row: OutboxRow | None
    ) -> asyncio.Future[InboxAnswer]:
        """A future for the answer to a beginning or a renewal. If it is refused, the attempt stops: another worker has
        the work, or its run is paused."""
        future: asyncio.Future[InboxAnswer] = self._coordinator.future()
        key = (run, command.token, command.attempt)

        def told(answered: asyncio.Future[InboxAnswer]) -> None:
            if answered.cancelled() or self._offered.get(key, row) is not row:
                return  # the work was lost and offered anew: this answer is about the earlier offer
            problem = answered.exception()
            if problem is not None:
                if isinstance(problem, Moved):
                    self.executor.stop(*key)
                return
            rejection = answered.result().rejection
            if rejection is not None:
                self.executor.stop(*key)
            if rejection is not None and rejection.kind == "INVALID_STATE" and row is not None and key in self._offered:
                self._coordinator.spawn(self._hold(row, key))
                return
            # Only now: until the beginning is durable, recovery finds the row and would offer the work again.
            if self._offered.pop(key, None) is not None and rejection is not None and row is not None:
                self._coordinator.settle(row.id)

        future.add_done_callback(told)
        return future

    async def _hold(self, row: OutboxRow, key: Identity) -> None:
        """Keeps work whose beginning was refused because its run is paused. If the run was resumed meanwhile, the work
        is offered again; if it has ended, the row is removed."""
        state = await self._coordinator.state(row.run)
        if self._offered.get(key) is not row:
            return
        if state is not None and state.status is RunStatus.PAUSED:
            self._held.setdefault(row.run, []).append(key)
            return
        del self._offered[key]
        if state is not None and state.status is RunStatus.RUNNING:
            self._offer_row(row)
        else:
            self._coordinator.settle(row.id)

    def decided(self, one: Decided) -> None:
        """Called with a durable decision. If it has resumed its run, work that the pause kept from beginning is
        offered."""
        if one.item.run not in self._held:
            return
        if one.commit is not None and any(isinstance(event, RunResumed) for event in one.commit.events):
            for key in self._held.pop(one.item.run):
                row = self._offered.pop(key, None)
                if row is not None:
                    self._offer_row(row)

    def begin(self, state: RunState, effect: f.RunTask) -> bool:
        """Executes an attempt now. Returns False if the visit has moved on and does not need it."""
        attempt = self._attempts.attempt(state, effect)
        if attempt is None:
            return False
        if self._claims and attempt.identity in self._claims and state.tokens[effect.token].worker is None:
            self._claims.pop(attempt.identity, None)  # claimed by an earlier execution, whose lease has run out
            self.executor.stop(*attempt.identity)
        self.executor.begin(attempt)
        return True

    def stop(self, run: RunId, effect: f.StopTask) -> None:
        """Stops an attempt, or takes it out of the line."""
        self.executor.stop(run, effect.token, effect.attempt)
        row = self._offered.pop((run, effect.token, effect.attempt), None)
        if row is not None:
            self._coordinator.settle(row.id)

    def offer(self, row: OutboxRow, effect: f.RunTask) -> None:
        """Begins work that may have to wait in line. Its row is removed when the beginning is durable. A newer row
        replaces an older one: the work was lost meanwhile."""
        key = (row.run, effect.token, effect.attempt)
        before = self._offered.get(key)
        if before is not None:
            if before.id >= row.id:
                return
            self._coordinator.settle(before.id)
        self._offered[key] = row

        async def begin() -> None:
            state = await self._coordinator.state(row.run)
            if self._offered.get(key) is not row:
                return
            if self._coordinator.shape is not None and (effect.queue is not None or self._is_shared):
                self._offer_again(row, effect, state)
                return
            if state is not None and is_on_offer(state, effect):
                self.executor.stop(*key)  # an execution that was given up as lost: its result would be refused
                if self.begin(state, effect):
                    return
            del self._offered[key]
            self._coordinator.settle(row.id)

        self._coordinator.spawn(begin())

    def _offer_again(self, row: OutboxRow, effect: f.RunTask, state: RunState | None) -> None:
        """Turns a row into an offer to workers. Such a row comes from a store without claims that was moved here."""
        del self._offered[row.run, effect.token, effect.attempt]
        if state is None or not is_on_offer(state, effect):
            self._coordinator.settle(row.id)
            return
        lost = state.tokens[effect.token].recoveries
        self._coordinator.tell(row.run, c.LoseWorker(effect.token, effect.attempt, lost, graceful=True), row.id)


def is_on_offer(state: RunState, effect: f.RunTask) -> bool:
    """Whether the work has not begun yet. It may have, since a row can be read a moment before it is removed."""
    token = state.tokens.get(effect.token)
    return token is not None and token.state is TokenState.DISPATCHED

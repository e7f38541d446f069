"""What happens when decisions are durable: work begins, alarms are set, other runs and the world are told.

Owns one handler per effect. Promises at-least-once: a row of the outbox is done with in the transaction of the decision
it led to, or when its receiver has accepted; doing it twice is harmless, because dispatches are fenced by attempt,
children by their id, and commands count once. What follows for a run that was handed over or lost meanwhile is left to
its new owner, but for the work that was claimed (`handover`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from treadle.kernel.state import RunState
from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.errors import Error
from treadle.model.events import RunResumed
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus, TokenState
from treadle.runtime.base.logs import logger
from treadle.runtime.base.ports import MakeExecutor
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.coordinate.gathering import Decided, Item
from treadle.runtime.coordinate.shards import Moved
from treadle.runtime.deliver import relatives
from treadle.runtime.deliver.handover import Claims
from treadle.runtime.deliver.outgoing import Outgoing
from treadle.runtime.deliver.timers import Timers
from treadle.runtime.execute.attempt_of_run import Facts
from treadle.runtime.execute.progress import Progress
from treadle.store.port import InboxAnswer, OutboxRow

log = logger("treadle.delivery")

Identity = tuple[RunId, TokenId, int]
"""Of an attempt: run, visit, number."""


class Delivery:
    """See the module's docstring."""

    def __init__(
        self,
        coordinator: Coordinator,
        make_executor: MakeExecutor,
        timers: Timers,
        facts: Facts,
        outgoing: Outgoing,
        progress: Progress,
        claims: Claims,
    ) -> None:
        self._claims = claims
        self._shards = coordinator.shards
        self._is_shared, self._epoch_of = coordinator.shards.is_shared, coordinator.shards.epoch_of
        self._progress = progress
        self._coordinator = coordinator
        self.executor = make_executor(self.report)
        self._timers = timers
        self._facts = facts
        self._outgoing = outgoing
        self._offered: dict[Identity, OutboxRow] = {}
        """Rows of work that waits in line, by attempt: done with when it begins or is withdrawn."""
        self._held: dict[RunId, list[Identity]] = {}
        """Work of paused runs whose turn came during the pause: offered again when the run goes on."""
        self._rows: dict[type[f.Effect], Callable[[OutboxRow, Any], None]] = {
            f.RunTask: self._offer,
            f.StartChild: self._start_child,
            f.RetryChild: self._retry_child,
        }

    def durable(self, decided: list[Decided], rows: list[OutboxRow]) -> None:
        """The coordinator's `deliver`."""
        for one in decided:
            if self._held and one.item.run in self._held:
                self._let_go_on(one)
            is_left = one.hot is not None and one.hot.is_left
            for effect in self._left(one) if is_left else one.local:
                try:
                    self._act(one, effect)
                except Exception as problem:
                    self._could_not_act(one.item.run, effect, problem)
        for row in rows:
            try:
                self.row(row)
            except Exception as problem:  # it stays in the outbox
                log.error("a row could not be delivered", run=row.run, row=row.id, exc_info=problem)

    def row(self, row: OutboxRow) -> None:
        """Something the world has to be told."""
        handler = self._rows.get(type(row.effect))
        if not self._shards.owns(row.run):
            return  # its new owner finds it
        told = relatives.letter(row.run, row.effect) if handler is None else None
        if handler is not None:
            handler(row, row.effect)
        elif told is not None:
            self._coordinator.tell(*told, row.id, row.run)
        else:
            self._outgoing.carry(row)

    def _left(self, one: Decided) -> list[f.Effect]:
        """Of a run that is somebody else's by now: work claimed here begins, work to be stopped here stops."""
        run = one.item.run
        return [
            effect
            for effect in one.local
            if isinstance(effect, f.StopTask)
            or (isinstance(effect, f.RunTask) and (run, effect.token, effect.attempt) in self._claims)
        ]

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """What the others offer is their new owner's to hand out, unless it has begun here."""
        for key in [key for key in self._offered if not is_kept(key[0])]:
            del self._offered[key]
            self.executor.stop(*key)
        self._held = {run: keys for run, keys in self._held.items() if is_kept(run)}

    def report(self, run: RunId, command: c.Command) -> None:
        """What an executor says: a beginning settles the row that offered the work."""
        if self._claims:
            command = self._claims.signed(run, command)
        if isinstance(command, (c.FinishAttempt, c.FailAttempt)):
            if self._progress.has_spoken:
                self._progress.ended(run, command.token, command.attempt)
        elif isinstance(command, (c.StartAttempt, c.ExtendLease)):
            row = self._offered.get((run, command.token, command.attempt))
            told = self._stop_if_refused(run, command, row)
            id, epoch = row.id if row is not None else 0, self._epoch_of(run)
            self._coordinator.put(Item(run, command, future=told, row=id, keeps_row=True, epoch=epoch))
            return
        self._coordinator.put(Item(run, command, epoch=self._epoch_of(run) if self._is_shared else 0))

    def _stop_if_refused(
        self, run: RunId, command: c.StartAttempt | c.ExtendLease, row: OutboxRow | None
    ) -> asyncio.Future[InboxAnswer]:
        """An attempt that may not begin, or has lost its lease, stops: the work is somebody else's, or its run is
        paused."""
        future: asyncio.Future[InboxAnswer] = self._coordinator.future()
        key = (run, command.token, command.attempt)

        def told(answered: asyncio.Future[InboxAnswer]) -> None:
            if answered.cancelled() or self._offered.get(key, row) is not row:
                return  # it was lost and offered anew meanwhile: this is not about that
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
            # Not earlier: until the beginning is durable, recovery finds the row and would offer it again.
            if self._offered.pop(key, None) is not None and rejection is not None and row is not None:
                self._coordinator.settle(row.id)

        future.add_done_callback(told)
        return future

    async def _hold(self, row: OutboxRow, key: Identity) -> None:
        """Nothing begins in a run that is paused; one that was resumed meanwhile is asked again."""
        state = await self._coordinator.state(row.run)
        if self._offered.get(key) is not row:
            return
        if state is not None and state.status is RunStatus.PAUSED:
            self._held.setdefault(row.run, []).append(key)
            return
        del self._offered[key]
        if state is not None and state.status is RunStatus.RUNNING:
            self.row(row)
        else:
            self._coordinator.settle(row.id)

    def _let_go_on(self, one: Decided) -> None:
        """Offers what a pause has kept from beginning, once the run has been resumed."""
        if one.commit is not None and any(isinstance(event, RunResumed) for event in one.commit.events):
            for key in self._held.pop(one.item.run):
                row = self._offered.pop(key, None)
                if row is not None:
                    self.row(row)

    def _act(self, decided: Decided, effect: f.Effect) -> None:
        run = decided.item.run
        kind = type(effect)
        if kind is f.RunTask:
            assert decided.hot is not None
            self._begin(decided.hot.state, effect)  # type: ignore[arg-type]
        elif kind is f.SetTimer:
            self._timers.set(run, effect.timer, effect.due)  # type: ignore[attr-defined]
        elif kind is f.ClearTimer:
            self._timers.clear(run, effect.timer)  # type: ignore[attr-defined]
        else:
            self._stop(run, effect)  # type: ignore[arg-type]

    def _could_not_act(self, run: RunId, effect: f.Effect, problem: Exception) -> None:
        """A defect of ours. What else is durable must happen all the same, and nobody waits for work that cannot
        begin."""
        log.error("an effect could not be carried out", run=run, effect=type(effect).__name__, exc_info=problem)
        if isinstance(effect, f.RunTask):
            text = f"{effect.node!r} could not be begun: {type(problem).__name__}: {problem}"
            self._coordinator.tell(run, c.FailAttempt(effect.token, effect.attempt, Error("TASK_FAILED", text)))

    def _begin(self, state: RunState, effect: f.RunTask) -> bool:
        attempt = self._facts.attempt(state, effect)
        if attempt is None:
            return False
        if self._claims and attempt.identity in self._claims and state.tokens[effect.token].worker is None:
            self._claims.pop(attempt.identity, None)  # of an execution before this one: its lease is over
            self.executor.stop(*attempt.identity)
        self.executor.begin(attempt)
        return True

    def _stop(self, run: RunId, effect: f.StopTask) -> None:
        self.executor.stop(run, effect.token, effect.attempt)
        row = self._offered.pop((run, effect.token, effect.attempt), None)
        if row is not None:
            self._coordinator.settle(row.id)

    def _offer(self, row: OutboxRow, effect: f.RunTask) -> None:
        """Work that may have to wait in line."""
        key = (row.run, effect.token, effect.attempt)
        if key in self._offered:
            return
        self._offered[key] = row

        async def begin() -> None:
            state = await self._coordinator.state(row.run)
            if self._offered.get(key) is not row:
                return
            if self._coordinator.shape is not None:
                self._offer_again(row, effect, state)
                return
            if state is None or not is_on_offer(state, effect) or not self._begin(state, effect):
                del self._offered[key]
                self._coordinator.settle(row.id)

        self._coordinator.spawn(begin())

    def _offer_again(self, row: OutboxRow, effect: f.RunTask, state: RunState | None) -> None:
        """A row of a store that was moved here from one without claims."""
        del self._offered[row.run, effect.token, effect.attempt]
        if state is None or not is_on_offer(state, effect):
            self._coordinator.settle(row.id)
            return
        lost = state.tokens[effect.token].recoveries
        self._coordinator.tell(row.run, c.LoseWorker(effect.token, effect.attempt, lost, graceful=True), row.id)

    def _start_child(self, row: OutboxRow, effect: f.StartChild) -> None:
        command = c.StartRun(
            run=effect.child,
            input=effect.input,
            version=effect.version or 0,
            entity=effect.entity,
            parent=relatives.parent_link(row.run, effect),
            depth=effect.depth,
            depth_max=effect.depth_max,
        )
        told = self._refused_child(row, effect)
        self._coordinator.put(Item(effect.child, command, effect.workflow, told, row.id, True, row.run))

    def _refused_child(self, row: OutboxRow, effect: f.StartChild) -> asyncio.Future[InboxAnswer]:
        """A future that tells the parent when its child could not be started."""
        future: asyncio.Future[InboxAnswer] = self._coordinator.future()

        def told(answered: asyncio.Future[InboxAnswer]) -> None:
            if answered.cancelled() or answered.exception() is not None:
                return
            rejection = answered.result().rejection
            if rejection is not None:
                error = Error(kind=rejection.kind, message=rejection.message)
                ended = c.EndChild(effect.token, effect.child, "failed", error=error)
                self._coordinator.tell(row.run, ended, row.id)  # a crash before that finds the row again

        future.add_done_callback(told)
        return future

    def _retry_child(self, row: OutboxRow, effect: f.RetryChild) -> None:
        """A child that retention has dropped cannot answer: its parent starts a new one."""
        future: asyncio.Future[InboxAnswer] = self._coordinator.future()

        def told(answered: asyncio.Future[InboxAnswer]) -> None:
            if not answered.cancelled() and answered.exception() is None and answered.result().rejection is not None:
                self._coordinator.tell(row.run, relatives.child_is_gone(effect), row.id)

        future.add_done_callback(told)
        command = c.RetryRun(effect.by, effect.levels)
        self._coordinator.put(Item(effect.child, command, None, future, row.id, True, row.run))


def is_on_offer(state: RunState, effect: f.RunTask) -> bool:
    """Whether nobody has begun it: a row may have been read a moment before it was done with."""
    token = state.tokens.get(effect.token)
    return token is not None and token.state is TokenState.DISPATCHED

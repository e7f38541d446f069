"""Carries out the effects of durable decisions: each goes to the handler of its type.

Owns one handler per effect. Promises at-least-once: an outbox row is removed in the transaction of the decision it led
to, or when its receiver has accepted. Carrying an effect out twice is harmless, because dispatches are fenced by
attempt, children by their id, and commands count once. Effects of a run that was handed over or lost meanwhile are left
to its new owner, except for work that was claimed (`handover`). Results of work come back through `own_work`, not here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from treadle.model import commands as c
from treadle.model import effects as f
from treadle.model.errors import Error, Rejection
from treadle.model.ids import RunId
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.coordinate.gathering import Decided, Item
from treadle.runtime.deliver import relatives
from treadle.runtime.deliver.held_letters import HeldLetters
from treadle.runtime.deliver.outgoing import Outgoing
from treadle.runtime.deliver.own_work import OwnWork
from treadle.runtime.deliver.timers import Timers
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.patience import reliably
from treadle.runtime.surroundings.ports import Tracing
from treadle.store.port import InboxAnswer, OutboxRow, RunQuery

log = logger("treadle.delivery")


class Delivery:
    """See the module's docstring."""

    def __init__(
        self,
        coordinator: Coordinator,
        own_work: OwnWork,
        timers: Timers,
        outgoing: Outgoing,
        tracing: Tracing | None = None,
    ) -> None:
        self._tracing = tracing
        self._coordinator = coordinator
        self._shards = coordinator.shards
        self._own_work = own_work
        self._timers = timers
        self._outgoing = outgoing
        self.held = HeldLetters(coordinator.shards.of)
        self._rows: dict[type[f.Effect], Callable[[OutboxRow, Any], None]] = {
            f.RunTask: own_work.offer,
            f.StartChild: self._start_child,
            f.RetryChild: self._retry_child,
            f.CompensateChild: self._compensate_child,
            f.HoldPlace: coordinator.flow.held,
            f.MarkStart: coordinator.flow.marked,
        }

    def hand(self, kind: type[f.Effect], handler: Callable[[OutboxRow, Any], None]) -> None:
        """Rows with effects of this kind go to a handler of their own."""
        self._rows[kind] = handler

    def durable(self, decided: list[Decided], rows: list[OutboxRow]) -> None:
        """Carries out the effects of a durable batch: local ones first, then its rows, in order."""
        for one in decided:
            self._own_work.decided(one)
            is_left = one.hot is not None and one.hot.is_left
            for effect in self._left(one) if is_left else one.local:
                try:
                    self._act(one, effect)
                except Exception as problem:
                    self._could_not_act(one.item.run, effect, problem)
        self._deliver([row for row in rows if not self.held.keeps(row)] if self.held else rows)

    def found(self, row: OutboxRow) -> None:
        """Carries out a row that was found in the outbox."""
        self.held.found(row)
        self.row(row)

    def let_on(self, holds: Mapping[int, int]) -> None:
        """The outbox of shards that were held has been read: letters that waited for this are delivered."""
        self._deliver(self.held.let_on(holds))

    def _deliver(self, rows: list[OutboxRow]) -> None:
        for row in rows:
            try:
                self.row(row)
            except Exception as problem:  # it stays in the outbox
                log.error("a row could not be delivered", run=row.run, row=row.id, exc_info=problem)

    def row(self, row: OutboxRow) -> None:
        """Carries out an outbox row: begins its work, sends its command to a run, or posts it to the outside."""
        handler = self._rows.get(type(row.effect))
        if not self._shards.owns(row.run):
            return  # its new owner delivers it
        told = relatives.letter(row.run, row.effect) if handler is None else None
        if handler is not None:
            handler(row, row.effect)
        elif told is not None:
            self._coordinator.tell(*told, row.id, row.run)
        else:
            self._outgoing.carry(row)

    def _left(self, one: Decided) -> list[f.Effect]:
        """Effects this process carries out although another node owns the run by now: claimed work begins, work
        stops."""
        run = one.item.run
        return [
            effect
            for effect in one.local
            if isinstance(effect, f.StopTask)
            or (isinstance(effect, f.RunTask) and self._own_work.is_claimed(run, effect))
        ]

    def _act(self, decided: Decided, effect: f.Effect) -> None:
        run = decided.item.run
        kind = type(effect)
        if kind is f.RunTask:
            assert decided.hot is not None
            self._own_work.begin(decided.hot.state, effect)  # type: ignore[arg-type]
        elif kind is f.SetTimer:
            self._timers.set(run, effect.timer, effect.due)  # type: ignore[attr-defined]
        elif kind is f.ClearTimer:
            self._timers.clear(run, effect.timer)  # type: ignore[attr-defined]
        else:
            self._own_work.stop(run, effect)  # type: ignore[arg-type]

    def _could_not_act(self, run: RunId, effect: f.Effect, problem: Exception) -> None:
        """Logs an effect that raised, a defect of Treadle, so that the other effects are still carried out. Work that
        could not begin fails its attempt."""
        log.error("an effect could not be carried out", run=run, effect=type(effect).__name__, exc_info=problem)
        if isinstance(effect, f.RunTask):
            text = f"{effect.node!r} could not be begun: {type(problem).__name__}: {problem}"
            self._coordinator.tell(run, c.FailAttempt(effect.token, effect.attempt, Error("TASK_FAILED", text)))

    def _start_child(self, row: OutboxRow, effect: f.StartChild) -> None:
        command = c.StartRun(
            run=effect.child,
            input=effect.input,
            version=effect.version or 0,
            entity=effect.entity,
            parent=relatives.parent_link(row.run, effect),
            depth=effect.depth,
            depth_max=effect.depth_max,
            trace=effect.trace
            if self._tracing is None
            else self._tracing.carried(row.run, effect.trace, effect.token, effect.attempt),
        )
        told = self._refused_child(row, effect)
        self._coordinator.put(Item(effect.child, command, effect.workflow, told, row.id, True, row.run))

    def _refused_child(self, row: OutboxRow, effect: f.StartChild) -> asyncio.Future[InboxAnswer]:
        """A future for the answer to a child's start. If the start is refused, the parent is told that the child
        failed."""
        future: asyncio.Future[InboxAnswer] = self._coordinator.future()

        def told(answered: asyncio.Future[InboxAnswer]) -> None:
            if answered.cancelled() or answered.exception() is not None:
                return
            rejection = answered.result().rejection
            if rejection is not None:
                error = Error(kind=rejection.kind, message=rejection.message)
                ended = c.EndChild(effect.token, effect.child, "failed", error=error)
                self._coordinator.tell(row.run, ended, row.id)  # after a crash the row is delivered again

        future.add_done_callback(told)
        return future

    def _retry_child(self, row: OutboxRow, effect: f.RetryChild) -> None:
        """Asks a child to retry. If that is refused, for instance because retention has deleted the child, the parent
        is told."""

        def refused(_why: Rejection) -> None:
            self._coordinator.tell(row.run, relatives.child_is_gone(effect), row.id)

        self._ask_child(row, effect.child, c.RetryRun(effect.by, effect.levels), refused)

    def _compensate_child(self, row: OutboxRow, effect: f.CompensateChild) -> None:
        """Asks a child to undo its work. If there is no such run, it has become an item of a batch."""

        def refused(why: Rejection) -> None:
            self._coordinator.spawn(self._compensate_batch(row, effect, why))

        self._ask_child(row, effect.child, c.CompensateRun(effect.token), refused)

    async def _compensate_batch(self, row: OutboxRow, effect: f.CompensateChild, why: Rejection) -> None:
        """Asks the batch that the child is an item of. If there is none any more either, the parent is told that it
        cannot be undone."""
        query, store = RunQuery(item=effect.child, limit=1), self._coordinator.store
        found = await reliably(lambda: store.find_runs(query), lambda: self._coordinator.stopped is not None)
        if found:
            self._coordinator.tell(found[0].run, c.CompensateRun(effect.token), row.id, row.run)
            return
        ended = c.EndChild(effect.token, effect.child, "compensation_failed", error=Error(why.kind, why.message))
        self._coordinator.tell(row.run, ended, row.id)

    def _ask_child(
        self, row: OutboxRow, child: RunId, command: c.Command, refused: Callable[[Rejection], None]
    ) -> None:
        """Sends a command of a row to a child. Its row stays if it is refused: the caller settles it."""
        future: asyncio.Future[InboxAnswer] = self._coordinator.future()

        def told(answered: asyncio.Future[InboxAnswer]) -> None:
            if not answered.cancelled() and answered.exception() is None:
                rejection = answered.result().rejection
                if rejection is not None:
                    refused(rejection)

        future.add_done_callback(told)
        self._coordinator.put(Item(child, command, None, future, row.id, True, row.run))

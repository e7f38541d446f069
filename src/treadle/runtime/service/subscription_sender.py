"""Sends events to subscriptions: each one at least once, in order per run, from the outbox (5.4).

Owns what this node sends. Promises: an event that matches is in the outbox with the transaction that made it true; it
is sent until its endpoint has accepted it (2xx), before any later event of its run; a subscription that changes, on
whatever node, is noticed here without a restart; an endpoint that has failed for an hour is paused, which its record,
its deliveries and the log say. Must not know who may subscribe.

Theory of operation
    The coordinator asks for `effects` of every decision: one `Notify` for each subscription that wants an event of it.
    It is committed with the decision, and comes back as an outbox row (`carry`) when that is durable, or from the next
    owner's recovery. Rows of one run and subscription are sent one after the other, all others side by side; how many
    messages one endpoint gets at a time, and whether it is left alone for a while, the courier decides.

    While a subscription is paused, nothing is queued for it, and its rows are dropped. What it has missed is sent by a
    replay, which somebody asks for, or which begins with the first failure when the subscription is put again. A replay
    reads histories, run by run, and keeps how far it got; the owner of the shard that the subscription's name falls
    into carries it out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from treadle.errors import StoreConflict, TreadleError
from treadle.expression.backoff import delay_ms
from treadle.model.definition import Retry
from treadle.model.effects import Effect, Notify
from treadle.model.events import Event
from treadle.model.ids import RunId
from treadle.runtime.access.sealing import Sealing
from treadle.runtime.coordinate.coordinator import Coordinator
from treadle.runtime.deliver.delivery import Delivery
from treadle.runtime.service.records import Changes, Entry, Records, change
from treadle.runtime.service.subscription_messages import about, message
from treadle.runtime.service.subscriptions import (
    LOG,
    PROGRESS,
    SubscriptionProgress,
    SubscriptionRecord,
    SubscriptionReplay,
    SubscriptionState,
    purpose_of,
    read_all,
)
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.ports import Undeliverable
from treadle.store.port import OutboxRow, RunQuery, RunRow

Json = Any
RETRY = Retry(max_attempts=1, backoff="exponential", initial_delay_ms=1_000, max_delay_ms=60_000)
PAGE = 200
KEPT_MS = 7 * 24 * 3_600_000
KEPT_AT_LEAST = 1_000
PRUNE_EVERY_MS = 3_600_000
Line = tuple[RunId, str]

log = logger("treadle.subscriptions")


class Poster(Protocol):
    """Sends one signed message."""

    async def post(self, url: str, secret: str | None, id: str, body: Json) -> None:
        """Returns when the receiver has accepted; raises otherwise. Without a secret the operator's own signs."""


class SubscriptionSender:
    """See the module's docstring."""

    def __init__(
        self,
        coordinator: Coordinator,
        poster: Poster,
        sealing: Callable[[], Awaitable[Sealing]],
        replays: Callable[[RunId], bool],
    ) -> None:
        self._coordinator = coordinator
        self._clock = coordinator.clock
        self._records = Records(coordinator.store)
        self._poster = poster
        self._sealing = sealing
        self._replays = replays
        """Whether this node carries out replays of what has this name."""
        self._known: dict[str, SubscriptionState] = {}
        self._lines: dict[Line, deque[OutboxRow]] = {}
        self._tasks: dict[asyncio.Task[None], RunId | None] = {}
        self._replaying: dict[str, asyncio.Task[None]] = {}
        self._entries: list[Entry] = []
        self._is_writing = False
        self._pruned = 0
        self._closed = False

    def attached(self, delivery: Delivery) -> Callable[[], Awaitable[None]]:
        """Takes the rows of its kind from now on. Returns what to call when subscriptions were changed."""
        delivery.hand(Notify, self.carry)
        return self.refresh

    # What is subscribed

    async def refresh(self) -> None:
        """Subscriptions were changed, or shards have moved."""
        self._known = {state.record.name: state for state in await read_all(self._records)}
        self._coordinator.subscribed = self.effects if self._known else None
        for name, state in self._known.items():
            is_mine = state.progress.replay is not None and self._replays(RunId(f"subscription:{name}"))
            task = self._replaying.get(name)
            if is_mine and not self._closed and (task is None or task.done()):
                self._replaying[name] = self._spawn(self._replay(name), None)

    def effects(self, workflow: str, events: Sequence[Event]) -> list[Effect]:
        """What a decision with these events adds to the outbox."""
        found: list[Effect] = []
        for name, state in self._known.items():
            if state.progress.paused is None:
                wanted = [event.seq for event in events if state.record.takes(event.type, workflow)]
                if wanted:
                    found.append(Notify(name, wanted[0], wanted[-1]))
        return found

    # Rows of the outbox

    def carry(self, row: OutboxRow, effect: Notify) -> None:
        """Sends the events of a row, after the earlier rows of its run and subscription. Returns at once."""
        if self._closed:
            return
        name = (row.run, effect.subscription)
        line = self._lines.get(name)
        if line is not None:
            if all(waiting.id != row.id for waiting in line):
                line.append(row)
            return
        self._lines[name] = deque([row])
        self._spawn(self._work_off(name), row.run)

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Stops sending rows of the other runs: their new owner sends them."""
        for task, run in self._tasks.items():
            if run is not None and not is_kept(run):
                task.cancel()
        self._lines = {line: rows for line, rows in self._lines.items() if is_kept(line[0])}

    async def close(self) -> None:
        """Stops sending; rows stay in the outbox, and the next owner goes on."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _work_off(self, name: Line) -> None:
        line = self._lines[name]
        while line:
            row = line[0]
            effect = row.effect
            assert isinstance(effect, Notify)
            try:
                events = await self._coordinator.store.history(
                    row.run, effect.first - 1, effect.last - effect.first + 1
                )
                state = await self._coordinator.state(row.run)
                workflow = state.graph.workflow_name if state is not None else None
                await self._send(effect.subscription, row.run, workflow, events)
            except TreadleError as problem:
                log.error("events cannot be read", run=row.run, row=row.id, error=str(problem))
            line.popleft()
            self._coordinator.settle(row.id)
        del self._lines[name]

    async def _send(self, name: str, run: RunId, workflow: str | None, events: Sequence[Event]) -> bool:
        """Sends those events that are wanted, each until it is accepted. False: the subscription is gone or paused."""
        for event in events:
            tries = 0
            while True:
                state = self._known.get(name)
                if state is None:
                    return False
                if state.progress.paused is not None:
                    if event.at < state.progress.missed_since(event.at + 1):
                        await self._update(name, partial(SubscriptionProgress.left_out, at=event.at))
                    return False
                if not state.record.takes(event.type, workflow):
                    break
                try:
                    await self._post(state.record, run, workflow, event)
                except (Undeliverable, TreadleError, OSError) as problem:
                    tries += 1
                    await self._failed(name, run, event, str(problem)[:500], tries)
                    await self._pause(delay_ms(RETRY, tries, None))
                else:
                    await self._accepted(name, run, event)
                    break
        return True

    async def _post(self, record: SubscriptionRecord, run: RunId, workflow: str | None, event: Event) -> None:
        secret = None
        if record.sealed is not None:
            secret = (await self._sealing()).open(purpose_of(record.name), record.sealed)
        await self._poster.post(record.url, secret, f"{run}:{event.seq}", message(run, workflow, event))

    # What became of it

    async def _accepted(self, name: str, run: RunId, event: Event) -> None:
        self._note(name, {**about(run, event), "result": "sent"})
        state = self._known.get(name)
        if state is not None and state.progress.failing_since is not None:
            await self._update(name, SubscriptionProgress.accepted)

    async def _failed(self, name: str, run: RunId, event: Event, reason: str, tries: int) -> None:
        now = self._clock.now()
        self._note(name, {**about(run, event), "result": "failed", "detail": reason})
        after = await self._update(name, lambda known: known.failed(event.at, reason, tries, now))
        if after is not None and after.paused == now:
            self._note(name, {"result": "paused", "detail": reason})
            log.warning("a subscription is paused: its endpoint has failed for an hour", subscription=name)

    async def _update(
        self, name: str, changed: Callable[[SubscriptionProgress], SubscriptionProgress]
    ) -> SubscriptionProgress | None:
        """Writes down how a subscription fares; somebody else may do so at the same moment. None: it is gone."""
        while True:
            kept = await self._records.find(PROGRESS, name)
            if kept is None:
                return None
            body = msgspec.to_builtins(changed(msgspec.convert(kept.body, SubscriptionProgress)))
            try:
                await self._records.write(Changes(documents=[change(PROGRESS, name, body, kept.version)]))
            except StoreConflict:
                continue
            state, progress = self._known.get(name), msgspec.convert(body, SubscriptionProgress)
            if state is not None:
                self._known[name] = SubscriptionState(state.record, progress)
            return progress

    def _note(self, name: str, body: Json) -> None:
        """Puts a line into the log of deliveries. Many are written together."""
        self._entries.append(Entry(LOG, name, body, self._clock.now()))
        if not self._is_writing and not self._closed:
            self._is_writing = True
            self._spawn(self._write(), None)

    async def _write(self) -> None:
        try:
            while self._entries:
                entries, self._entries = self._entries, []
                await self._records.write(Changes(entries=entries))
            now = self._clock.now()
            if now - self._pruned >= PRUNE_EVERY_MS:
                self._pruned = now
                await self._records.prune(LOG, now - KEPT_MS, KEPT_AT_LEAST)
        except TreadleError as problem:
            log.warning("deliveries could not be written down", error=str(problem))
        finally:
            self._is_writing = False

    # Replays

    async def _replay(self, name: str) -> None:
        while (state := self._known.get(name)) is not None and state.progress.replay is not None:
            replay = state.progress.replay
            after = RunId(replay.after) if replay.after is not None else None
            rows = await self._coordinator.store.find_runs(RunQuery(after=after, limit=PAGE))
            for row in rows:
                if not await self._replay_run(name, row, replay):
                    return
            done = replace(replay, after=rows[-1].run) if rows else None
            await self._update(name, partial(_moved, replay, done))

    async def _replay_run(self, name: str, row: RunRow, replay: SubscriptionReplay) -> bool:
        if row.changed < replay.since or row.started > replay.until:
            return True
        seq = 0
        while events := await self._coordinator.store.history(row.run, seq, PAGE):
            seq = events[-1].seq
            since = [event for event in events if replay.since <= event.at <= replay.until]
            if not await self._send(name, row.run, row.workflow, since):
                return False
        return True

    def _spawn(self, work: Any, run: RunId | None) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = run
        task.add_done_callback(self._tasks.pop)
        return task

    async def _pause(self, ms: int) -> None:
        future = self._coordinator.future()
        alarm = self._clock.call_at(
            self._clock.now() + ms, lambda: future.set_result(None) if not future.done() else None
        )
        try:
            await future
        finally:
            alarm.cancel()


def _moved(
    before: SubscriptionReplay, after: SubscriptionReplay | None, known: SubscriptionProgress
) -> SubscriptionProgress:
    """The progress when a replay got further. One that was asked for meanwhile begins at its beginning."""
    return replace(known, replay=after) if known.replay == before else known

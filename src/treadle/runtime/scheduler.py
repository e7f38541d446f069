"""Carries out schedules: asks the plan what to do, does it, stores the new state, sleeps until the next time.

Owns the alarms. Promises that an occurrence starts at most one run (its key ensures that, even after a crash) and that
nothing wakes up while nothing is due. Decides nothing: `schedule.plan` does.

A schedule is a document, and so is its state; of the state only the newest version is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from treadle.errors import CommandRefused, EngineStopped
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RUN_OPEN
from treadle.runtime.coordinate.feed import Feed
from treadle.runtime.schedule import plan as p
from treadle.runtime.schedule.definition import KIND, Schedule, hash_of
from treadle.runtime.schedule.definition import tag_of as tag_of
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.patience import reliably
from treadle.runtime.surroundings.ports import Alarm, Clock
from treadle.store.port import Commit, RunQuery, RunRow, Store, StoredDocument
from treadle.store.rows import shard_of

if TYPE_CHECKING:
    from treadle.runtime.client import Client

STATE = "_schedule_state"
AGAIN_MS = 1_000
"""After this long, a turn that no engine could answer is taken again."""

log = logger("treadle.scheduler")


class Scheduler:
    """See the module's docstring."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        client: Client,
        feed: Feed,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        owns: Callable[[str], bool] = lambda _name: True,
    ) -> None:
        self._store = store
        self._clock = clock
        self._client = client
        self._spawn = spawn
        self._owns = owns
        """Whether a schedule is carried out here. Its runs get ids of the same shard: they move with it, and their ends
        are heard where they count."""
        self._schedules: dict[str, StoredDocument] = {}
        self._alarms: dict[str, Alarm] = {}
        self._running: dict[RunId, str] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._closed = False
        self._stop_listening = feed.listen(self._heard)

    async def refresh(self) -> None:
        """Reads the schedules again: one may have been changed, or moved between nodes."""
        known = await self._store.documents(KIND)
        documents = {document.name: document for document in known if self._owns(document.name)}
        for name in self._schedules.keys() - documents.keys():
            self._sleep(name, None)
        changed = [name for name, new in documents.items() if self._schedules.get(name) != new]
        self._schedules = documents
        for name in changed:
            await self._turn(name)

    def close(self) -> None:
        self._closed = True
        self._stop_listening()
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()

    async def _turn(self, name: str) -> None:
        """Until it is done: a turn that a busy store cut short, or that fell into the moment when no engine had the
        shard, would be the schedule's last. Doing it again is harmless, its starts have keys."""
        async with self._turns.setdefault(name, asyncio.Lock()):
            try:
                await reliably(lambda: self._turn_once(name), lambda: self._closed)
            except EngineStopped:
                if not self._closed:
                    self._sleep(name, self._clock.now() + AGAIN_MS)

    async def _turn_once(self, name: str) -> None:
        document = self._schedules.get(name)
        if document is None:
            return
        if not self._owns(name):
            del self._schedules[name]  # if the shard comes back, `refresh` finds the schedule new and takes its turn
            return
        schedule = msgspec.convert(document.body, Schedule)
        kept = await self._store.documents(STATE, name)
        state = self._remembered(document, kept)
        running = await self._runs(name)
        decided = p.plan(schedule, state, [row.run for row in running], self._clock.now())
        keys = {action.key for action in decided.actions if isinstance(action, p.StartOccurrence)}
        begun = {row.run for row in running if row.idempotency_key in keys}
        for action in decided.actions:
            if isinstance(action, p.CancelPrevious) and action.run in begun:
                continue  # started for this very time, before a crash kept that from being remembered
            await self._do(schedule, action)
        body = {"state": msgspec.to_builtins(decided.state), "paused": schedule.paused}
        if not kept or kept[0].body != body:
            await self._store.put_document(STATE, name, hash_of(body), body)
        self._sleep(name, decided.wake)

    def _remembered(self, document: StoredDocument, kept: list[StoredDocument]) -> p.ScheduleState:
        if not kept:
            return p.ScheduleState(self._clock.now())
        state = msgspec.convert(kept[0].body["state"], p.ScheduleState)
        resumed = kept[0].body["paused"] and not document.body.get("paused", False)
        return p.resume(state, self._clock.now()) if resumed else state

    async def _runs(self, name: str) -> list[RunRow]:
        rows = await self._store.find_runs(RunQuery(tag=tag_of(name), statuses=RUN_OPEN))
        for row in rows:
            self._running[row.run] = name
        return rows

    async def _do(self, schedule: Schedule, action: p.Action) -> None:
        try:
            if isinstance(action, p.StartOccurrence):
                run = await self._client.start(
                    schedule.workflow,
                    schedule.input,
                    key=action.key,
                    tags=(tag_of(schedule.name),),
                    run_id=self._id_beside(schedule.name),
                    trigger={"schedule": schedule.name, "due": action.due},
                )
                self._running[run.id] = schedule.name
            elif isinstance(action, p.CancelPrevious):
                await self._client.run(action.run).cancel(action.reason, by="schedule")
            else:
                log.info("occurrences left out", schedule=schedule.name, count=action.count, reason=action.reason)
        except CommandRefused as refused:
            log.warning("a schedule was refused", schedule=schedule.name, error=str(refused))

    def _id_beside(self, name: str) -> RunId:
        """A new run id in the schedule's shard."""
        shards = self._store.shards
        while True:
            run = RunId(self._client.new_run_id())
            if shard_of(run, shards) == shard_of(RunId(name), shards):
                return run

    def _sleep(self, name: str, wake: int | None) -> None:
        alarm = self._alarms.pop(name, None)
        if alarm is not None:
            alarm.cancel()
        if wake is not None:
            self._alarms[name] = self._clock.call_at(wake, lambda: self._spawn(self._turn(name)))

    def _heard(self, newest: Mapping[RunId, Commit]) -> None:
        """Runs of schedules may have ended: the next ones may be waiting for that."""
        for run, commit in newest.items() if self._running else ():
            if commit.status in RUN_ENDED and (name := self._running.pop(run, None)) is not None:
                self._spawn(self._turn(name))

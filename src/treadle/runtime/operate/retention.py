"""Retention: drops finished runs by age and by number, and trims their histories by age.

Owns the choice of runs; the store drops them. Promises that a run is dropped only when it and every run it started have
ended, children together with the run that started them; that it holds some thousand runs at once, however many there
are; that nothing wakes up while nothing can expire; and that there are at most about twice as many runs as the rules
allow, whatever the load. A run may be kept some seconds longer than asked, never shorter.

Theory of operation
    A sweep looks at finished runs in the order of their start. A run cannot have ended before it began, so runs begun
    within the last `age_ms` need no look, and the first of them says when the next sweep is worth while. The number of
    kept runs is counted per workflow from the newest on, and only where runs have ended since the last sweep.
    Sweeps are at least `PAUSE_MS` apart, and five times as long as the last one took; but at most half the shortest
    age. A sweep that left something behind is followed at once, and so is one during which more runs have ended than
    the smallest `count`: runs that come faster than they are dropped would fill the disk.

    Of many nodes the owner of the first shard sweeps for all: a family of runs is spread over shards, and the store
    checks that a run has ended in the transaction that drops it. It does not hear of ends elsewhere, so it sweeps once
    a minute.

    A run's row does not show whether its history was trimmed. Every finished run begun before `_whole_from` has been
    trimmed; that instant is kept in a document, so that an engine does not trim a year again when it starts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from treadle.errors import StoreConflict, StoreUnavailable
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, RUN_OPEN
from treadle.runtime.coordinate.feed import Feed
from treadle.runtime.coordinate.shards import Shards
from treadle.runtime.operate.retention_queries import OVER, RetentionQueries, batched
from treadle.runtime.operate.retention_setting import Keep, KeepRules
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.ports import Alarm, Clock
from treadle.store.port import Commit, Fence, RunQuery, Store
from treadle.store.rows import SHARD

AT_ONCE = 5_000
"""Runs that one sweep drops or trims for one reason; the rest is left to the next sweep."""
PAUSE_MS, AGAIN_MS = 5_000, 60_000
"""Milliseconds between two sweeps at least, and after the store could not be reached."""
SHARE = 5
"""Sweeps take at most one part in so many of the time."""
NAMED_MAX = 50
"""Ended runs whose workflow is looked up one by one; if there are more, every workflow is counted."""
CROWD_MIN = 100
"""Surplus runs that do not trigger a sweep, however small a `count` is."""
KIND, NAME = "_retention", "trimmed"

log = logger("treadle.retention")


class Retention:
    """See the module's docstring."""

    def __init__(
        self,
        store: Store,
        shards: Shards,
        clock: Clock,
        feed: Feed,
        rules: KeepRules,
        workflows: Callable[[], list[str]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._store = store
        self._families = RetentionQueries(store)
        self._shards = shards
        self._clock = clock
        self._rules = rules
        self._workflows = workflows
        self._spawn = spawn
        self._ended: set[RunId] | None = None
        """Runs that ended since the last sweep; None: too many to name, or no sweep yet."""
        self._whole_from = 0
        self._trimmed: dict[RunId, int] = {}
        """Trimmed runs begun since then, and when they began."""
        self._is_known = False
        """Whether `_whole_from` has been read since this node began to sweep."""
        self._sweeping = self._is_behind = False
        self._heard_since = self._earliest = 0
        """Runs that have ended since the last sweep began, as far as this node has heard."""
        self._alarm: Alarm | None = None
        self._due: int | None = None
        self._limits = any(rules.shortest(field) is not None for field in Keep.__struct_fields__)
        self._counts = rules.shortest("count") is not None
        self._stop_listening = feed.listen(self._heard) if self._limits else lambda: None

    async def open(self) -> None:
        """Starts the first sweep in the background."""
        for name in self._rules.of.keys() - self._workflows():
            log.warning("there is a rule for keeping runs of a workflow that is not deployed", workflow=name)
        self.moved()

    def moved(self) -> None:
        """Shards have come or gone: this node may have to sweep now."""
        if self._fence is None:
            self._is_known = False
        elif self._limits and not self._is_known:
            self._wake_at(self._clock.now())

    @property
    def _fence(self) -> Fence | None:
        return self._shards.fences.get(SHARD) if SHARD in self._shards.owned else None

    def close(self) -> None:
        if self._limits:
            self._stop_listening()
        self._limits = False
        if self._alarm is not None:
            self._alarm.cancel()

    # When to sweep

    def _heard(self, newest: Mapping[RunId, Commit]) -> None:
        ended = [run for run, commit in newest.items() if commit.status in RUN_ENDED]
        if not ended or self._fence is None:
            return
        if self._ended is not None:
            named = self._ended.union(ended)
            self._ended = named if len(named) <= NAMED_MAX else None
        self._heard_since += len(ended)
        if self._is_crowded and not self._sweeping:
            self._earliest = 0
        for wake in self._wakes_for_an_end_at(self._clock.now()):
            self._wake_at(wake)

    def _wake_at(self, due: int) -> None:
        due = max(due, self._earliest)
        if not self._limits or (self._due is not None and self._due <= due):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._due = due
        self._alarm = self._clock.call_at(due, self._ring)

    def _ring(self) -> None:
        self._due = self._alarm = None
        if self._limits and not self._sweeping and self._fence is not None:
            self._sweeping = True
            self._spawn(self._sweep())

    async def _sweep(self) -> None:
        begun, ended, watch = self._clock.now(), self._ended, time.monotonic()
        self._ended, self._heard_since, self._is_behind = set(), 0, False
        wakes: list[int | None] = [begun + AGAIN_MS if self._shards.is_shared else None]
        try:
            if not self._is_known:
                ended = None
                await self._remember()
            ended = None if self._shards.is_shared else ended
            wakes += [await self._drop_surplus(ended), await self._drop_old(begun), await self._trim_old(begun)]
        except StoreConflict:  # another node sweeps now
            self._is_known = False
        except StoreUnavailable as problem:
            log.warning("finished runs could not be dropped", error=str(problem))
            wakes, self._ended = [begun + AGAIN_MS], None
        finally:
            self._sweeping = False
        self._earliest = self._clock.now() + self._pause_ms(int((time.monotonic() - watch) * 1_000))
        if self._is_behind and self._shards.is_shared:
            wakes.append(self._earliest)  # it does not hear of ends on other nodes
        if self._ended != set():
            wakes += self._wakes_for_an_end_at(begun)
        if self._alarm is not None:  # set during the sweep, before the pause was known
            self._alarm.cancel()
        wakes.append(self._due)
        self._due = self._alarm = None
        for wake in wakes:
            if wake is not None:
                self._wake_at(wake)

    def _pause_ms(self, took_ms: int) -> int:
        if self._is_behind or self._is_crowded:
            return 0
        ages = [self._rules.shortest(name) for name in ("age_ms", "history_age_ms")]
        return min([max(PAUSE_MS, SHARE * took_ms), *(age // 2 for age in ages if age is not None)])

    @property
    def _is_crowded(self) -> bool:
        """Whether so many runs have ended that a workflow may have twice as many as its `count`."""
        count = self._rules.shortest("count")
        return count is not None and self._heard_since >= max(count, CROWD_MIN)

    async def _remember(self) -> None:
        kept = await self._store.documents(KIND, NAME)
        self._whole_from = kept[0].body["whole_from"] if kept else 0
        self._trimmed.clear()
        self._is_known = True

    def _wakes_for_an_end_at(self, now: int) -> list[int]:
        waits = [self._rules.shortest("age_ms"), self._rules.shortest("history_age_ms"), 0 if self._counts else None]
        return [now + wait for wait in waits if wait is not None]

    # Which runs to drop

    async def _drop_surplus(self, ended: set[RunId] | None) -> int | None:
        """Drops surplus runs; returns when to look again."""
        if not self._counts:
            return None
        names = set(self._workflows())
        if ended is not None:
            names = {row.workflow for run in ended for row in await self._store.find_runs(RunQuery(run=run))}
        wake = None
        for name in sorted(names):
            most, surplus = self._rules[name].count, list[RunId]()
            if most is None:
                continue
            async for row in self._families.finished(RunQuery(workflow=name, newest_first=True)):
                if await self._families.is_root(row):
                    most -= 1
                    surplus += [row.run] if most < 0 else []
                    if len(surplus) == AT_ONCE:
                        break
            wake = await self._drop(surplus) or wake
        if wake is not None:
            self._ended = None  # every workflow is counted again
        return wake

    async def _drop_old(self, now: int) -> int | None:
        """Drops old runs; returns when to look again."""
        shortest = self._rules.shortest("age_ms")
        if shortest is None:
            return None
        wakes, old, seen = await self._next_begun(now, shortest), list[RunId](), set[RunId]()
        async for row in self._families.finished(RunQuery(started_until=now - shortest + 1)):
            if len(old) == AT_ONCE:
                break
            limit = self._rules[row.workflow].age_ms
            seen.add(row.run)
            if limit is None or row.parent in seen or not await self._families.is_root(row):
                continue
            if row.changed + limit > now:
                wakes.append(row.changed + limit)
            else:
                old.append(row.run)
        wakes += filter(None, [await self._drop(old)])
        return min(wakes, default=None)

    async def _trim_old(self, now: int) -> int | None:
        """Trims the histories of runs that ended long enough ago; returns when to look again."""
        shortest = self._rules.shortest("history_age_ms")
        if shortest is None:
            return None
        wakes, old, until = await self._next_begun(now, shortest), dict[RunId, int](), now - shortest + 1
        whole_from = until
        async for page in self._families.pages(RunQuery(started_from=self._whole_from, started_until=until)):
            limits = {row.run: self._rules[row.workflow].history_age_ms for row in page if row.run not in self._trimmed}
            rows = [row for row in page if limits.get(row.run) is not None]
            wanted = await self._families.wanted(rows)
            for row in rows:
                due = row.changed + (limits[row.run] or 0)
                if due <= now and row.run not in wanted and len(old) < AT_ONCE:
                    old[row.run] = row.started
                    continue
                whole_from = min(whole_from, row.started)
                if row.run not in wanted:  # else the end of the run that needs it will be heard
                    wakes.append(max(due, now))
            if len(old) == AT_ONCE:
                self._is_behind, whole_from = True, min(whole_from, page[-1].started)
                break
        for runs in batched(old):
            await self._forget(runs, history=False)
        self._trimmed |= old
        opened = await self._store.find_runs(RunQuery(statuses=RUN_OPEN, limit=1))
        await self._all_trimmed_before(min([whole_from, *(row.started for row in opened)]))
        return min(wakes, default=None)

    async def _all_trimmed_before(self, started: int) -> None:
        if started > self._whole_from:
            self._whole_from = started
            self._trimmed = {run: begun for run, begun in self._trimmed.items() if begun >= started}
            await self._store.put_document(KIND, NAME, str(started), {"whole_from": started})

    async def _next_begun(self, now: int, limit: int) -> list[int]:
        """When the first run that was not looked at may expire."""
        rows = await self._store.find_runs(RunQuery(statuses=OVER, started_from=now - limit + 1, limit=1))
        return [max(row.started + limit, now + 1) for row in rows]

    async def _drop(self, runs: list[RunId]) -> int | None:
        """Drops each run with all runs it started, unless one of those has not ended. Parents go last: if interrupted,
        the rest is found from them. Returns when to go on, if there may be more."""
        dropped = 0
        for roots in batched(runs):
            for part in batched(await self._families.whole(roots)):
                if self._limits:  # not closed
                    await self._forget(part)
                    dropped += len(part)
        self._is_behind = self._is_behind or (len(runs) == AT_ONCE and dropped > 0)
        return self._clock.now() if len(runs) == AT_ONCE else None

    async def _forget(self, runs: list[RunId], history: bool = True) -> None:
        fence = self._fence
        if fence is None:
            raise StoreConflict("LEASE_CONFLICT", "another node drops finished runs now", [SHARD])
        await self._store.forget(runs, fence, history=history)

"""An engine's parts with retention, on a virtual clock and a store that counts what is asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.runtime.cores import Running, chain, running
from tests.runtime.executing import VirtualClock
from treadle.model.ids import RunId
from treadle.runtime.operate import retention as r
from treadle.runtime.operate.retention_setting import Keep, KeepRules
from treadle.store.memory import MemoryStore
from treadle.store.port import RunQuery, RunRow
from treadle.store.sqlite import SqliteStore

DAY = 86_400_000


class Watched:
    """A store that counts what is asked of it."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.looks = 0
        self.dropped: list[tuple[RunId, ...]] = []
        self.faults: list[Exception] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def find_runs(self, query: RunQuery) -> list[RunRow]:
        self.looks += 1
        found: list[RunRow] = await self.inner.find_runs(query)
        return found

    async def forget(self, runs: Any, *fences: Any, history: bool = True) -> None:
        if self.faults:
            raise self.faults.pop()
        self.dropped.append(tuple(runs))
        await self.inner.forget(runs, *fences, history=history)


@asynccontextmanager
async def watched(place: Path | None) -> AsyncIterator[Any]:
    """A store for one test."""
    if place is None:
        yield Watched(MemoryStore())
        return
    store = await SqliteStore.open(place)
    try:
        yield Watched(store)
    finally:
        await store.close()


class Kept:
    """An engine's parts on a virtual clock, with retention."""

    def __init__(self, store: Any, clock: VirtualClock, here: Running, tidy: r.Retention) -> None:
        self.store, self.clock, self.here, self.tidy = store, clock, here, tidy

    async def quiet(self) -> None:
        await self.here.core.coordinator.wait_quiet()

    async def finished(self, workflow: str = "chain", **options: Any) -> str:
        run = await self.here.client.start(workflow, **options)
        await run.wait()
        await self.quiet()
        return str(run.id)

    async def pass_ms(self, ms: int) -> None:
        """Time passes, from one alarm to the next; what each sets off is over before the next rings."""
        await self.quiet()
        until = self.clock.now() + ms
        while (waits := self.clock.pending) and self.clock.now() + waits[0] <= until:
            await self.clock.advance(waits[0])
            await self.quiet()
        await self.clock.advance(until - self.clock.now())
        await self.quiet()

    async def left(self) -> set[str]:
        return {str(row.run) for row in await self.here.client.runs(limit=10_000)}


@asynccontextmanager
async def keeping(store: Any, usual: Keep, *, clock: VirtualClock | None = None, **of: Keep) -> AsyncIterator[Kept]:
    clock = clock or VirtualClock()

    async def nothing() -> dict[str, Any]:
        return {}

    async with running(store, {"a": nothing, "b": nothing}, clock) as here:
        coordinator = here.core.coordinator
        await here.client.deploy(chain("a", "b"))
        await here.client.deploy(chain("a", name="other"))
        tidy = r.Retention(
            store, here.core.shards, clock, coordinator.feed, KeepRules(usual, of), here.core.library.names,
            coordinator.spawn,
        )  # fmt: skip
        await tidy.open()
        await clock.advance(0)
        kept = Kept(store, clock, here, tidy)
        await kept.quiet()
        await kept.pass_ms(r.PAUSE_MS)
        try:
            yield kept
        finally:
            tidy.close()

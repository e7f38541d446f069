"""An engine on a store whose workers claim, in one process, with a clock the test moves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.runtime.cores import calls
from tests.runtime.executing import turns
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.runtime.engine import Engine, EngineSettings
from treadle.runtime.run import Run
from treadle.store.memory_work import QueueMemoryStore
from treadle.store.work import Claimed

HERE = {"q": 4}


class AtWork:
    """A task's function that notes how many of it were at work at once."""

    def __init__(self) -> None:
        self._now = self.most = 0

    async def work(self) -> None:
        self._now += 1
        self.most = max(self.most, self._now)
        await turns(20)
        self._now -= 1


class Hall:
    """An engine on a store whose clock the test moves; workers are played by hand where it has no places."""

    def __init__(self, places: dict[str, int] | None, limits: dict[str, int] | None = None, **functions: Any) -> None:
        self.now = 1_000_000
        self.store = QueueMemoryStore(now=lambda: self.now)
        settings = EngineSettings(queues=places, grace_ms=0, **(limits or {}))  # type: ignore[arg-type]
        self.engine = Engine(self.store, functions=functions, settings=settings)

    async def claim(self, worker: str = "hand", limit: int = 10, ttl_ms: int = 1_000) -> list[Claimed]:
        return await self.store.claim("q", worker, limit, ttl_ms)

    async def begin(self, claimed: Claimed) -> None:
        offer = claimed.offer
        await self.ask(claimed, c.StartAttempt(offer.token, offer.attempt, claimed.holder, recovery=offer.recovery))

    async def finish(self, claimed: Claimed, output: Any = None) -> None:
        offer = claimed.offer
        await self.ask(claimed, c.FinishAttempt(offer.token, offer.attempt, output, worker=claimed.holder))

    async def ask(self, claimed: Claimed, command: c.Command) -> None:
        await self.engine.run(claimed.run).ask(command)

    async def lose(self) -> None:
        """Claims run out, and the owner looks."""
        self.now += 60_000
        await self.engine._queues.sweep.sweep()  # type: ignore[union-attr]
        await self.engine._core.wait_quiet()


@asynccontextmanager
async def hall(
    places: dict[str, int] | None = HERE, limits: dict[str, int] | None = None, **functions: Any
) -> AsyncIterator[Hall]:
    made = Hall(places, limits, **functions)
    async with made.engine:
        yield made


def queued(**node: Any) -> Workflow:
    node = {"queue": "q", **node}
    return load_value({"workflow": "w", "nodes": {"n": calls("work", **node)}}).require()


async def of_kind(run: Run, kind: type[e.Event]) -> list[Any]:
    return [event for event in await run.history() if isinstance(event, kind)]


def nothing() -> None:
    """A task."""

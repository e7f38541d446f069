"""An answer is a promise: it is given when the decision is durable, never before."""

from __future__ import annotations

import asyncio

from tests.runtime.cores import chain, running
from tests.runtime.executing import on_loop, turns
from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.runtime.coordinate.library import Library
from treadle.store.memory import MemoryStore
from treadle.store.port import Batch, Fence, OutboxRow


class SlowStore(MemoryStore):
    """A memory store whose commits of decisions wait until they may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write = asyncio.Event()
        self.waiting = 0

    async def commit(self, batch: Batch, *fences: Fence) -> list[OutboxRow]:
        if batch.commits:
            self.waiting += 1
            await self.may_write.wait()
        return await super().commit(batch, *fences)


async def nothing() -> None:
    return None


@on_loop
async def test_nobody_is_told_of_a_decision_before_it_is_durable() -> None:
    store = SlowStore()
    await Library(store).deploy(chain("f"))
    async with running(store, {"f": nothing}) as here:
        run = RunId("r")
        asked = asyncio.ensure_future(here.core.coordinator.ask(run, c.StartRun(run, version=0), "chain"))
        await turns(50)
        assert store.waiting == 1 and not asked.done() and await store.history(run) == []
        store.may_write.set()
        answer = await asked
        assert answer.rejection is None and await store.history(run)

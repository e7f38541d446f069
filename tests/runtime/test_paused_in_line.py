"""Work that waits in line for a slot or a queue's place while its run is paused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runtime.cores import calls
from tests.runtime.executing import on_loop
from treadle.language import load_value
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine, EngineSettings
from treadle.store.memory import MemoryStore
from treadle.store.memory_work import QueueMemoryStore


@pytest.mark.parametrize("make_store", [MemoryStore, QueueMemoryStore], ids=["own work", "claims"])
@pytest.mark.parametrize("line", [{"concurrency": {"limit": 1}}, {"queue": "q"}], ids=["slot", "queue"])
@on_loop
async def test_work_whose_turn_comes_during_a_pause_begins_when_the_run_goes_on(
    line: dict[str, Any], make_store: type[MemoryStore]
) -> None:
    """Its worker was refused and nobody offered the work again: the run stood still until the engine was restarted."""
    let_go, begun = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await let_go.wait()

    workflow = load_value({"workflow": "w", "nodes": {"n": calls("work", **line)}}).require()
    async with Engine(make_store(), functions={"work": work}, settings=EngineSettings(queues={"q": 1})) as engine:
        first = await engine.start(workflow)
        await begun.wait()
        second = await engine.start(workflow)
        await second.pause()
        let_go.set()
        assert (await first.wait()).status is RunStatus.COMPLETED
        await engine._core.wait_quiet()  # its turn has come, and it may not begin
        await second.resume()
        assert (await asyncio.wait_for(second.wait(), 10)).status is RunStatus.COMPLETED
        assert await engine._core.coordinator.store.outbox(0) == []


@on_loop
async def test_work_of_a_run_that_is_cancelled_in_a_pause_leaves_nothing_behind() -> None:
    let_go, begun = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await let_go.wait()

    workflow = load_value({"workflow": "w", "nodes": {"n": calls("work", concurrency={"limit": 1})}}).require()
    async with Engine(MemoryStore(), functions={"work": work}) as engine:
        first = await engine.start(workflow)
        await begun.wait()
        second = await engine.start(workflow)
        await second.pause()
        let_go.set()
        await first.wait()
        await engine._core.wait_quiet()
        await second.cancel()
        assert (await second.wait()).status is RunStatus.CANCELLED
        await engine._core.wait_quiet()
        assert await engine._core.coordinator.store.outbox(0) == []

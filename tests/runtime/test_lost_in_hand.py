"""Work in line that is given up as lost while this process still has it in hand: it is on offer again, and is done."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.runtime.cores import calls, running
from tests.runtime.executing import VirtualClock, on_loop
from treadle.language import load_value
from treadle.model.commands import LoseWorker
from treadle.model.ids import TokenId
from treadle.model.states import RunStatus
from treadle.store.memory import MemoryStore

RENEWED_MS = 15_000
"""More than a third of an executor's lease of 30 s: work in hand has been renewed."""


class Work:
    """A function that goes on until it may end, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[None] = asyncio.Queue()
        self.may_end = asyncio.Event()

    async def __call__(self) -> None:
        self.begun.put_nowait(None)
        await self.may_end.wait()


@pytest.mark.parametrize("line", [{"concurrency": {"limit": 1}}, {"queue": "q"}], ids=["slot", "queue"])
@on_loop
async def test_work_lost_in_hand_is_begun_again_and_its_result_counts(line: dict[str, Any]) -> None:
    """The first execution kept the second from beginning. Then its renewal, or its result, was refused, and the work
    stood still until the engine was restarted."""
    work, store, clock = Work(), MemoryStore(), VirtualClock()
    workflow = load_value({"workflow": "w", "nodes": {"n": calls("work", **line)}}).require()
    async with running(store, {"work": work.__call__}, clock) as here:
        run = await here.client.start(workflow)
        await work.begun.get()
        here.core.coordinator.tell(run.id, LoseWorker(TokenId(1), 1))
        await work.begun.get()
        await clock.advance(RENEWED_MS)
        work.may_end.set()
        assert (await asyncio.wait_for(run.wait(), 10)).status is RunStatus.COMPLETED
        await here.core.wait_quiet()
        assert await store.outbox(0) == []
        assert work.begun.empty(), "twice is enough"


@pytest.mark.parametrize("line", [{"concurrency": {"limit": 1}}, {"queue": "q"}], ids=["slot", "queue"])
@on_loop
async def test_work_lost_before_its_beginning_is_written_is_done_once_it_is_offered_anew(line: dict[str, Any]) -> None:
    """The offer came while the row of the first one was still kept, and was taken for the same."""
    work, store = Work(), MemoryStore()
    work.may_end.set()
    workflow = load_value({"workflow": "w", "nodes": {"n": calls("work", **line)}}).require()
    async with running(store, {"work": work.__call__}) as here:
        report = here.core.own_work.report

        def report_and_lose(run: Any, command: Any) -> None:
            report(run, command)
            if type(command).__name__ == "StartAttempt" and command.recovery is None and work.begun.empty():
                here.core.coordinator.tell(run, LoseWorker(TokenId(1), 1))

        here.core.executor._report = report_and_lose  # type: ignore[attr-defined]
        run = await here.client.start(workflow)
        assert (await asyncio.wait_for(run.wait(), 10)).status is RunStatus.COMPLETED
        await here.core.wait_quiet()
        assert await store.outbox(0) == []

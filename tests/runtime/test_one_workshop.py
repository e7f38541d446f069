"""An engine's limits hold once, for runs it owns and queue work it claims together."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from tests.runtime.cores import calls
from tests.runtime.executing import on_loop, turns
from tests.runtime.hall import AtWork, hall
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.model.states import RunStatus

EACH = 6


def crowd_of(own: int, queued: int) -> Workflow:
    """So many nodes side by side that the owner of the run executes, and so many that wait in a queue."""
    nodes: dict[str, Any] = {f"own{number}": calls("work") for number in range(own)}
    nodes |= {f"queued{number}": calls("work", queue="q") for number in range(queued)}
    out = [{"from": "start", "to": name} for name in nodes]
    return load_value({"workflow": "crowd", "nodes": {"start": {}, **nodes}, "transitions": out}).require()


class AtWorkInThreads:
    """A task's function that notes how many threads execute it at once, all of them until they may go on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = self.most = 0
        self.go_on = threading.Event()

    def work(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.go_on.wait()
        with self._lock:
            self.now -= 1


@pytest.mark.parametrize("places", [{"q": EACH}, None])
@on_loop
async def test_attempts_of_own_runs_and_of_queues_share_one_limit(places: dict[str, int] | None) -> None:
    at_work = AtWork()
    async with hall(places, {"attempts_max": 3}, work=at_work.work) as here:
        run = await here.engine.start(crowd_of(EACH, EACH))
        assert (await run.wait()).status is RunStatus.COMPLETED
    assert at_work.most == 3


@on_loop
async def test_threads_of_own_runs_and_of_queues_share_one_limit() -> None:
    crowd = AtWorkInThreads()
    async with hall({"q": EACH}, {"threads_max": 2}, work=crowd.work) as here:
        run = await here.engine.start(crowd_of(EACH, EACH))
        while here.engine._queues.claimant.executing < EACH or crowd.now < 2:  # type: ignore[union-attr]
            await turns()
        await turns(50)
        crowd.go_on.set()
        assert (await run.wait()).status is RunStatus.COMPLETED
    assert crowd.most == 2


@on_loop
async def test_an_engine_whose_room_is_full_claims_one_and_leaves_the_rest_to_others() -> None:
    go_on = asyncio.Event()

    async def work() -> None:
        await go_on.wait()

    async with hall({"q": EACH}, {"attempts_max": EACH}, work=work) as here:
        own = await here.engine.start(crowd_of(EACH, 0))
        while here.engine._core.executor.places > 0:
            await turns()
        queued = await here.engine.start(crowd_of(0, EACH))
        while here.engine._queues.claimant.executing == 0:  # type: ignore[union-attr]
            await turns()
        here.engine._queues.claimant.wake()  # type: ignore[union-attr]
        await turns(50)
        assert here.engine._queues.claimant.executing == 1  # type: ignore[union-attr]
        left = await here.claim("another")
        assert len(left) == EACH - 1
        for one in left:
            await here.begin(one)
            await here.finish(one)
        go_on.set()
        assert {(await run.wait()).status for run in (own, queued)} == {RunStatus.COMPLETED}

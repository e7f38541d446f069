"""An operator's retry through real engines: below failed joins, into child runs, across the engines of a database."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import new_database
from tests.runtime.executing import on_loop, turns
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine, EngineSettings, load_value
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.client import Client

PANEL = load_value(
    {
        "workflow": "panel",
        "output": {"votes": "$.state.votes"},
        "nodes": {
            "ask": {},
            "judge": {
                "action": {"kind": "python", "function": "judge"},
                "input_mapping": {"seat": "$._branch.index"},
                "output_mapping": {"state.vote": "$.vote"},
            },
            "decide": {},
        },
        "transitions": [
            {"id": "judges", "from": "ask", "to": "judge", "spawn_count": 3},
            {
                "from": "judge",
                "to": "decide",
                "synchronization": {
                    "sibling_group": "judges",
                    "on_branch_failure": "fail",
                    "merge": {"source": "_branch.output.vote", "target": "state.votes", "strategy": "append"},
                },
            },
        ],
    }
)
CALLER = load_value(
    {
        "workflow": "caller",
        "output": {"votes": "$.nodes.call.output.votes"},
        "nodes": {"call": {"action": {"kind": "workflow_call", "workflow": "panel"}}},
    }
)


class Bench:
    """Three judges; the second one fails once, after the first has voted. Counts who was asked how often."""

    def __init__(self) -> None:
        self.asked: Counter[int] = Counter()
        self._voted = asyncio.Event()

    async def judge(self, seat: int) -> dict[str, str]:
        self.asked[seat] += 1
        if seat == 1 and self.asked[1] == 1:
            await self._voted.wait()
            raise ValueError("out for lunch")
        if seat == 2 and self.asked[2] == 1:
            await asyncio.Event().wait()  # at work until it is told to stop
        if seat == 0:
            self._voted.set()
        return {"vote": f"seat {seat}"}


VOTES = {"votes": ["seat 0", "seat 1", "seat 2"]}


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with new_database() as made:
        yield made


@asynccontextmanager
async def engines(place: str, bench: Bench, count: int = 1) -> AsyncIterator[list[Engine]]:
    """So many engines on one store, each with its share of the shards."""
    settings = EngineSettings(lease_ms=2_000, grace_ms=1_000)
    async with AsyncExitStack() as stack:
        opened = []
        for number in range(count):
            engine = Engine(place, functions={"judge": bench.judge}, settings=settings, name=f"node-{number}")
            opened.append(await stack.enter_async_context(engine))
        while count > 1 and not all(len(engine._core.shards.owned) == 64 // count for engine in opened):
            await turns()
        for workflow in (PANEL, CALLER):
            await opened[0].deploy(workflow)
        yield opened


@on_loop
async def test_a_failed_visit_below_a_failed_join_is_retried_and_the_others_come_back(tmp_path: Path) -> None:
    bench = Bench()
    async with engines(str(tmp_path / "treadle.db"), bench) as [engine]:
        run = await engine.start("panel")
        failed = await run.wait(20)
        assert failed.error is not None and failed.error.kind == "BRANCH_FAILED"
        [visit] = await run.retry()
        assert await run.result(20) == VOTES
        assert bench.asked == {0: 1, 1: 2, 2: 2}, "who had voted is not asked again"
        with pytest.raises(CommandRefused, match="is completed, not failed"):
            await run.retry(visit)
        with pytest.raises(CommandRefused, match="nothing failed unhandled"):
            await run.retry()
        assert (await engine.fsck()).ok


@on_loop
async def test_retrying_a_run_waits_until_its_failed_child_has_brought_it_back(tmp_path: Path) -> None:
    bench = Bench()
    async with engines(str(tmp_path / "treadle.db"), bench) as [engine]:
        run = await engine.start("caller")
        assert (await run.wait(20)).status is RunStatus.FAILED
        await run.retry()
        assert await run.result(20) == VOTES, "the old failure is not taken for the new end"
        assert bench.asked == {0: 1, 1: 2, 2: 2}
        assert (await engine.fsck()).ok


@pytest.mark.parametrize("way", ["store", "server"])
@on_loop
async def test_what_failed_in_an_engine_that_is_gone_is_retried_from_another_process(tmp_path: Path, way: str) -> None:
    bench, place = Bench(), str(tmp_path / "treadle.db")
    async with engines(place, bench) as [engine]:
        run = await engine.start("caller")
        await run.wait(20)
    async with engines(place, bench) as [engine], reached(engine, way, place) as client:
        again = client.run(run.id)
        await again.retry()
        assert await again.result(20) == VOTES
        assert bench.asked == {0: 1, 1: 2, 2: 2}


def id_owned_by(engine: Engine, fits: Callable[[RunId], bool]) -> RunId:
    while True:
        run = Client.new_run_id()
        if engine._core.shards.owns(run) and fits(RunId(run)):
            return run  # type: ignore[return-value]


@on_loop
async def test_a_child_on_another_engine_is_retried_with_its_parent(dsn: str) -> None:
    bench = Bench()
    async with engines(dsn, bench, 2) as [here, there]:
        run_id = id_owned_by(here, lambda run: there._core.shards.owns(RunId(f"{run}.1")))
        run = await there.start("caller", run_id=run_id)
        assert (await run.wait(30)).status is RunStatus.FAILED
        child = there.run(f"{run_id}.1")
        assert await child.status() is RunStatus.FAILED
        await run.retry()
        assert await run.result(30) == VOTES
        assert await child.status() is RunStatus.COMPLETED
        assert bench.asked == {0: 1, 1: 2, 2: 2}


@on_loop
async def test_a_visit_of_a_child_is_retried_and_the_parent_on_another_engine_follows(dsn: str) -> None:
    bench = Bench()
    async with engines(dsn, bench, 2) as [here, there]:
        run_id = id_owned_by(here, lambda run: there._core.shards.owns(RunId(f"{run}.1")))
        run = await here.start("caller", run_id=run_id)
        await run.wait(30)
        events: list[Any] = await run.history()
        child = here.run(f"{run_id}.1")
        await child.retry()
        assert (await child.wait(30)).status is RunStatus.COMPLETED
        while (await run.status()) is not RunStatus.COMPLETED:
            await turns()
        resumed = [event.type for event in await run.history(events[-1].seq)]
        assert resumed[0] == "run.resumed"
        assert await run.result(30) == VOTES

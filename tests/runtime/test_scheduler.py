"""Schedules on a real engine: started at their time, once, remembered over a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.runtime.cores import chain
from tests.runtime.executing import on_loop
from treadle.errors import CommandRefused, DefinitionError
from treadle.runtime.engine import Engine
from treadle.runtime.schedule.definition import Schedule

EVERY_SECOND = Schedule(name="tick", workflow="chain", every_ms=1_000, overlap="allow", input={"n": 1})


async def a() -> dict[str, bool]:
    return {"ok": True}


async def runs_of_tick(engine: Engine, count: int) -> list[str]:
    """Until so many have been started."""
    heard = asyncio.Event()
    stop = engine.listen(heard.set)
    try:
        while len(rows := await engine.runs(tag="schedule:tick")) < count:
            await heard.wait()
            heard.clear()
    finally:
        stop()
    return [row.idempotency_key or "" for row in rows]


@on_loop
async def test_a_schedule_starts_one_run_per_time_also_over_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "treadle.db"
    async with Engine(store, functions={"a": a}) as engine:
        await engine.deploy(chain("a"))
        await engine.put_schedule(EVERY_SECOND)
        first = await runs_of_tick(engine, 1)
    async with Engine(store, functions={"a": a}) as engine:
        keys = await runs_of_tick(engine, 2)
        assert len(set(keys)) == len(keys)
        assert set(first) < set(keys)
        await engine.remove_schedule("tick")
        assert await engine.schedules() == []


@on_loop
async def test_a_bad_schedule_is_refused_with_every_problem(tmp_path: Path) -> None:
    async with Engine(tmp_path / "treadle.db") as engine:
        with pytest.raises(DefinitionError) as refused:
            await engine.put_schedule(Schedule(name="x", workflow="chain", cron="nonsense", timezone="Mars/Olympus"))
        assert len(refused.value.problems) == 2
        with pytest.raises(CommandRefused, match="no workflow"):
            await engine.put_schedule(EVERY_SECOND)
        with pytest.raises(CommandRefused, match="no schedule"):
            await engine.remove_schedule("tick")

"""Engines, clients and handles used before they are open, twice, or after they are closed; values that are not JSON."""

from __future__ import annotations

import asyncio
import gc
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.cores import one
from tests.runtime.executing import on_loop
from tests.runtime.reaching import reached
from treadle import CommandRefused, Engine
from treadle.errors import EngineStopped

WAITS = one("waits", {"kind": "signal", "name": "go"})
AT_ONCE_S = 5.0
"""A store that does not answer is asked for 30 s."""


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return ":memory:" if request.param == "memory" else str(tmp_path / "treadle.db")


@on_loop
async def test_an_engine_that_is_not_open_says_so(place: str) -> None:
    engine = Engine(place)
    for asked in (engine.start(WAITS), engine.runs(), engine.run("r").wait()):
        with pytest.raises(EngineStopped, match=r"not open: use it inside `async with Engine\(…\) as engine:`"):
            await asked


@on_loop
async def test_entering_an_open_engine_is_refused_and_the_first_goes_on(place: str) -> None:
    async with Engine(place) as engine:
        with pytest.raises(EngineStopped, match="open already"):
            async with engine:
                raise AssertionError("it was entered twice")
        run = await engine.start(WAITS)
        await run.signal("go")
        assert await run.result(10) == {}
    async with engine:
        assert engine.is_open, "closed, it may be opened again"


@on_loop
async def test_two_who_enter_one_engine_at_once_get_it_once(place: str) -> None:
    engine = Engine(place)
    entered = await asyncio.gather(engine.__aenter__(), engine.__aenter__(), return_exceptions=True)
    assert sorted(type(one).__name__ for one in entered) == ["Engine", "EngineStopped"]
    assert await engine.runs() == []
    await engine.close()


@on_loop
async def test_waiting_after_the_engine_is_closed_is_refused_at_once(place: str) -> None:
    async with Engine(place) as engine:
        run = await engine.start(WAITS)
        waiting = asyncio.ensure_future(run.wait())
    began = time.monotonic()
    for asked in (waiting, run.wait()):
        with pytest.raises(EngineStopped):
            await asked
    assert time.monotonic() - began < AT_ONCE_S


@pytest.mark.parametrize("way", ["store", "server"])
@on_loop
async def test_waiting_after_the_client_is_closed_is_refused_at_once(tmp_path: Path, way: str) -> None:
    async with Engine(tmp_path / "treadle.db") as engine:
        started = await engine.start(WAITS)
        async with reached(engine, way, tmp_path / "treadle.db") as client:
            run = client.run(started.id)
        began = time.monotonic()
        for asked in (run.wait(), anext(run.events())):
            with pytest.raises(EngineStopped, match="this client was closed"):
                await asked
        assert time.monotonic() - began < AT_ONCE_S


@on_loop
async def test_a_timeout_says_what_was_waited_for(place: str) -> None:
    async with Engine(place) as engine:
        run = await engine.start(WAITS)
        for wait in (run.wait, run.result):
            with pytest.raises(TimeoutError, match=rf"run {run.id} of waits has not ended within 0.01 s; it goes on"):
                await wait(timeout_s=0.01)
        with pytest.raises(TimeoutError, match=rf"run {run.id} has not ended"):
            await engine.run(run.id).wait(0.01)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"box": object()}, "input.box is of type object, which is not JSON"),
        ({"a": [1, {"b": object()}]}, r"input.a\[1\].b is of type object"),
        ({"x": float("nan")}, "input.x is nan, which JSON cannot express"),
        ({"x": 1 << 70}, "input.x is an integer beyond 64 bits"),
        ({(1, 2): 3}, r"input has the key \(1, 2\)"),
    ],
)
@on_loop
async def test_an_input_that_is_not_json_is_refused_with_its_place(value: Any, message: str) -> None:
    async with Engine(":memory:") as engine:
        with pytest.raises(CommandRefused, match=f"BAD_REQUEST: {message}"):
            await engine.start(WAITS, value)
        assert await engine.runs() == []


@on_loop
async def test_what_a_run_is_told_is_json_too() -> None:
    async with Engine(":memory:") as engine:
        run = await engine.start(WAITS, {"when": datetime(2026, 1, 2, tzinfo=UTC)})
        assert (await run.history())[0].input == {"when": "2026-01-02T00:00:00Z"}  # type: ignore[attr-defined]
        with pytest.raises(CommandRefused, match=r"data.box is of type object"):
            await run.signal("go", {"box": object()})
        with pytest.raises(CommandRefused, match=r"data\[0\] is of type object"):
            await run.complete_gate(1, [object()])


@on_loop
async def test_an_engine_in_a_library_leaves_the_collector_of_its_process_alone(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("frozen"))
    before = gc.get_threshold()
    async with Engine(place):
        assert gc.get_threshold() == before and not frozen

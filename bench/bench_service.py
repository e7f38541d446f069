"""The service beside its own engine: what HTTP costs, as ratios within one run, on a SQLite file.

The clients of the service are processes of their own that write ready requests to sockets. Machines with two cores
share them, which the ratios of rates include and those of processor time do not.
Lap by lap the engine is asked in its process and over HTTP, in turns.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench import service_followers, service_lists
from bench.report import Report, Round
from bench.served import Service, bare, served
from bench.settings import AS_SERVED
from treadle.language import load_value
from treadle.runtime.engine import Engine
from treadle.runtime.queue.wanted_work import WorkWanted

NAME = "service"
ONLY_BY_NAME = True
AT_ONCE, STARTS, LONE, CLAIMS, LAPS = 16, 1_500, 200, 300, 5
WAITS = {
    "workflow": "waits",
    "nodes": {"a": {"task": {"steps": [{"ref": "s", "action": {"kind": "wait", "ms": 3_600_000}}]}}},
    "transitions": [],
}
WORKS = {
    "workflow": "works",
    "nodes": {"a": {"queue": "q", "task": {"steps": [{"ref": "s", "action": {"kind": "work", "name": "w"}}]}}},
    "transitions": [],
}


def run(report: Report) -> None:
    asyncio.run(_all(report))
    if os.environ.get("TREADLE_BENCH_RUNS") != "0":
        service_lists.measure(report)


async def _all(report: Report) -> None:
    report.doing("starts")
    async with _serving() as (engine, service):
        await _starts(report, engine, service)
    report.doing("claims")
    async with _serving() as (engine, service):
        await _claims(report, engine, service)
    report.doing("followers")
    await service_followers.measure(report)


@asynccontextmanager
async def _serving() -> AsyncIterator[tuple[Engine, Service]]:
    with tempfile.TemporaryDirectory(prefix="treadle-bench-") as home:
        settings = AS_SERVED.__class__(spare_collector=True, queues={})
        async with Engine(Path(home) / "treadle.db", settings=settings) as engine, served(engine) as service:
            for flow in (WAITS, WORKS):
                await engine.deploy(load_value(flow))
            yield engine, service


async def _starts(report: Report, engine: Engine, service: Service) -> None:
    """Starts in process, over HTTP, and over HTTP with the least that a service could be. Rates depend on what else the
    machine does, and on the clients, who take a part of two cores; processor time is that of the engine's process
    alone, clients not included."""
    rates, times, floors, alone = [], [], [], []
    body = {"workflow": "waits", "input": {"n": 1}}

    async def inside() -> tuple[float, float]:
        clock = time.process_time()
        rate = await _rate(lambda: engine.start("waits", {"n": 1}), STARTS)
        return rate, (time.process_time() - clock) / STARTS * 1e6

    async def outside(asked: Service) -> tuple[float, float]:
        requests = [asked.request("POST", "/api/v1/runs", body)] * STARTS
        clock = time.process_time()
        loaded = await asked.load(requests, AT_ONCE, " 201 ")
        return STARTS / loaded.seconds, (time.process_time() - clock) / STARTS * 1e6

    async with bare(engine, "waits") as least:
        await outside(service)
        for _ in range(LAPS):
            here, http, floor = await inside(), await outside(service), await outside(least)
            rates.append(Round(http[0], here[0]))
            times.append(Round(http[1], here[1]))
            floors.append(Round(http[1], floor[1]))
            lone = statistics.median([await _timed(lambda: engine.start("waits", {"n": 1})) for _ in range(LONE)])
            asked = service.request("POST", "/api/v1/runs", body)
            alone.append(Round((await service.load([asked] * LONE, 1, " 201 ")).percentile(0.5), lone))
    report.rounds("POST /runs, 16 clients, against Engine.start", rates, "runs/s", best=max)
    report.rounds("processor time of the same, against Engine.start", times, "µs", best=min)
    report.rounds("processor time of the same, against a bare application", floors, "µs", best=min)
    report.rounds("one POST /runs, p50, against Engine.start", alone, "ms", best=min)


async def _claims(report: Report, engine: Engine, service: Service) -> None:
    rounds = []
    wanted = WorkWanted(queues=("q",), worker="bench")
    for _ in range(LAPS):
        for _ in range(2 * CLAIMS):
            await engine.start("works", {"n": 1})
        here = await _rate(lambda: engine.tasks.claim(wanted), CLAIMS)
        request = service.request("POST", "/api/v1/tasks/claim", {"queues": ["q"], "worker": "bench"})
        there = await service.load([request] * CLAIMS, AT_ONCE, '"kind":"work"')
        rounds.append(Round(CLAIMS / there.seconds, here))
    report.rounds("POST /tasks/claim, 16 workers, against Client.tasks", rounds, "claims/s", best=max)


async def _rate(act: Callable[[], Awaitable[Any]], count: int) -> float:
    """How many a second, sixteen at a time."""
    began, todo = time.perf_counter(), iter(range(count))

    async def work() -> None:
        for _ in todo:
            assert await act()

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return count / (time.perf_counter() - began)


async def _timed(act: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await act()
    return (time.perf_counter() - began) * 1e3

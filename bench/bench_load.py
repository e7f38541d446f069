"""What a full store costs, on a PostgreSQL that really syncs: while nothing happens, when everything happens at once,
and when one run misbehaves. Claims under 64 claimers are `./dev bench claims`.

    idle        100,000 sleeping runs with 1,000,000 timers: CPU and statements of an engine that owns them all
    avalanche   100,000 timers due at the same moment: how they are let through, and what it costs somebody who starts a
                run meanwhile
    poison      one run that misbehaves beside a crowd that does not: what the crowd notices
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg

from bench.bench_engine import FUNCTIONS, chain
from bench.load_crowd import crowd
from bench.load_poison import POISONS, Neighbours, Poison
from bench.postgres_server import Server, Watch, running_server
from bench.report import Report, peak_mib
from bench.settings import AS_SERVED
from treadle.runtime.engine import Engine
from treadle.store.port import Batch, Fence, OutboxRow
from treadle.store.postgres import PostgresStore

NAME = "load"
ONLY_BY_NAME = True
"""It takes minutes."""
SLEEPERS, TIMERS_EACH = 100_000, 10
IDLE_S = 10.0
AVALANCHE_RUNS, AVALANCHE_IN_MS = 10_000, 60_000
"""So late that everything is there before."""
SLICES, SLICE_S = 24, 1.5


def run(report: Report) -> None:
    with running_server() as server:
        idle(report, server)
        avalanche(report, server)
        poison(report, server)


# Idle


def idle(report: Report, server: Server) -> None:
    report.doing(f"idle: making {SLEEPERS:,} runs")
    for name, runs in (("nobody", 1), ("asleep", SLEEPERS)):
        dsn = server.database(name)
        asyncio.run(crowd(dsn, runs, TIMERS_EACH))
        report.doing(f"idle: {runs:,} runs")
        asyncio.run(_idle(report, server, dsn, runs))
        server.drop(name)


async def _idle(report: Report, server: Server, dsn: str, runs: int) -> None:
    asked: list[str] = []
    watch = await Watch.open(server)
    with listening(asked):
        began = time.perf_counter()
        async with Engine(dsn, functions=FUNCTIONS, settings=AS_SERVED):
            opened = time.perf_counter() - began
            await asyncio.sleep(IDLE_S / 2)  # what opening leaves to do
            asked.clear()
            before, cpu = await watch.spent(), time.process_time()
            await asyncio.sleep(IDLE_S)
            cpu, spent, statements = time.process_time() - cpu, await watch.spent() - before, len(asked)
            memory = memory_mib()
    await watch.close()
    crowded = f"{runs:,} sleeping runs with {runs * TIMERS_EACH:,} timers"
    report.figure(f"idle, {crowded}: engine CPU in {IDLE_S:g} s", cpu * 1e3, "ms")
    report.figure("    server CPU", spent.cpu * 1e3, "ms")
    report.figure("    statements", statements / IDLE_S, "per s")
    report.figure("    log written", spent.wal / IDLE_S, "bytes/s")
    report.figure("    memory of the engine's process", memory, "MiB")
    report.figure("    opening, take-over included", opened, "s")


class listening:
    """Notes every statement of connections opened inside."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    def __enter__(self) -> None:
        self._real = asyncpg.connect

        async def connect(*given: Any, **named: Any) -> asyncpg.Connection:
            connection = await self._real(*given, **named)
            connection.add_query_logger(lambda record: self._asked.append(record.query))
            return connection

        asyncpg.connect = connect

    def __exit__(self, *_exception: object) -> None:
        asyncpg.connect = self._real


# Everything at once


def avalanche(report: Report, server: Server) -> None:
    total = AVALANCHE_RUNS * TIMERS_EACH
    report.doing(f"avalanche: making {total:,} timers")
    dsn = server.database("avalanche")
    asyncio.run(_avalanche(report, server, dsn, total))
    server.drop("avalanche")


async def _avalanche(report: Report, server: Server, dsn: str, total: int) -> None:
    due = await crowd(dsn, AVALANCHE_RUNS, TIMERS_EACH, AVALANCHE_IN_MS)
    connection = await asyncpg.connect(dsn)
    watch = await Watch.open(server)
    commits: list[tuple[int, float]] = []
    with noting(commits):
        async with Engine(dsn, functions=FUNCTIONS, settings=AS_SERVED) as engine:
            await engine.deploy(chain(1))
            quiet = await pings(engine, asyncio.sleep(due / 1e3 - time.time()))
            report.doing("avalanche: now")
            commits.clear()
            before, cpu, began = await watch.spent(), time.process_time(), time.perf_counter()
            late = await pings(engine, _drained(connection))
            seconds, cpu, spent = time.perf_counter() - began, time.process_time() - cpu, await watch.spent() - before
    await connection.close()
    await watch.close()
    rows, took = zip(*commits, strict=True)
    report.figure(f"avalanche of {total:,} timers in {AVALANCHE_RUNS:,} runs: drained", total / seconds, "timers/s")
    report.figure("    largest transaction", max(rows), "decisions")
    report.figure("    typical transaction", statistics.median(rows), "decisions")
    report.figure("    longest commit", max(took) * 1e3, "ms")
    report.figure("    CPU of the engine", cpu / total * 1e6, "µs/timer")
    report.figure("    CPU of the server", spent.cpu / total * 1e6, "µs/timer")
    report.figure("    a one-step run meanwhile, p50, against before", middle(late), "ms", middle(quiet))
    report.figure("    the slowest of them, against before", max(late) * 1e3, "ms", max(quiet) * 1e3)
    report.figure("    peak memory of the process", peak_mib(), "MiB")


async def _drained(connection: asyncpg.Connection) -> None:
    while await connection.fetchval("SELECT EXISTS (SELECT 1 FROM timers)"):
        await asyncio.sleep(0.2)


async def pings(engine: Engine, until: Awaitable[None]) -> list[float]:
    """Seconds of one-step runs, one after the other, until something has happened."""
    times: list[float] = []

    async def ping() -> None:
        while True:
            began = time.perf_counter()
            await (await engine.start("chain1")).wait()
            times.append(time.perf_counter() - began)

    pinging = asyncio.create_task(ping())
    await until
    pinging.cancel()
    with suppress(asyncio.CancelledError):
        await pinging
    return times


class noting:
    """Notes of every commit how many decisions it carried and how long it took."""

    def __init__(self, commits: list[tuple[int, float]]) -> None:
        self._commits = commits

    def __enter__(self) -> None:
        self._real = real = PostgresStore.commit

        async def commit(store: PostgresStore, batch: Batch, *fences: Fence) -> list[OutboxRow]:
            began = time.perf_counter()
            rows = await real(store, batch, *fences)
            self._commits.append((len(batch.commits), time.perf_counter() - began))
            return rows

        setattr(PostgresStore, "commit", commit)  # noqa: B010

    def __exit__(self, *_exception: object) -> None:
        setattr(PostgresStore, "commit", self._real)  # noqa: B010


# One that misbehaves


def poison(report: Report, server: Server) -> None:
    for name, make in POISONS.items():
        report.doing(f"poison: {name}")
        dsn = server.database("poison")
        asyncio.run(_poison(report, dsn, name, make))
        server.drop("poison")


async def _poison(report: Report, dsn: str, name: str, make: Callable[[str], Poison]) -> None:
    """Slices with and without it in turns: with, without, without, with, and so on."""
    speeds: dict[bool, list[float]] = {True: [], False: []}
    costs: dict[bool, list[float]] = {True: [], False: []}
    async with make(dsn) as bad, Neighbours(bad.engine, bad.done) as neighbours:
        await neighbours.watched(SLICE_S)  # warm
        for number in range(SLICES):
            with_it = number % 4 in (0, 3)
            if with_it:
                await bad.begin()
            speed, cost = await neighbours.watched(SLICE_S)
            if with_it:
                await bad.end()
            speeds[with_it].append(speed)
            costs[with_it].append(cost)
    tell(report, f"neighbours of {name}", speeds, "steps/s")
    tell(report, "    the same per CPU second of the engine", costs, "steps/CPU s")
    report.figure("    what it did meanwhile", bad.deeds / (len(speeds[True]) * SLICE_S), "per s")


def tell(report: Report, workload: str, found: dict[bool, list[float]], unit: str) -> None:
    """With it, against without."""
    report.figure(workload, statistics.median(found[True]), unit, statistics.median(found[False]))


def middle(times: Sequence[float]) -> float:
    return statistics.median(times) * 1e3


def memory_mib() -> float:
    """What this process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)

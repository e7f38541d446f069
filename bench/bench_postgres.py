"""W1 to W6 on a PostgreSQL that really syncs, each beside what raw asyncpg does with the same rows in the same run;
how many moves share a transaction; and what more engines cost.

Machines are shared and noisy, so an engine and its floors are played in turns, lap by lap in one process, and a figure
comes twice: of the lap with the typical ratio (the median) and of the best one. Compare ratios.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.bench_engine import FUNCTIONS, W1_STEPS, W2_RUNS, W2_STEPS, W3_SIZES, W4_RUNS, W6_RUNS
from bench.postgres_engine import Asked, Herd, Lap, measured
from bench.postgres_server import Server, running_server
from bench.report import Report, Round
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine, EngineSettings

NAME = "postgres"
LAPS, HERD_LAPS = 11, 5
LEASE_MS = 60_000
"""In W6: far longer than the restart may take. A node that starts again on its machine waits for no lease."""
RESTART_S = 2.0
"""What W6 may take from the second start to the last run's end."""
HERDS = (1, 4)
HERD_RUNS = 1_000
"""Of each engine: more engines have more to do, as a growing installation has."""


class Place:
    """A server, and databases on it that come and go."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._numbers = itertools.count(1)

    @contextmanager
    def database(self) -> Iterator[str]:
        name = f"bench{next(self._numbers)}"
        dsn = self.server.database(name)
        try:
            yield dsn
        finally:
            self.server.drop(name)

    def measured(self, **workload: Any) -> list[Lap]:
        """Laps of a workload on a database of its own, its floors on another."""
        with self.database() as dsn, self.database() as floor:
            return measured(Asked(server=self.server, dsn=dsn, floor_dsn=floor, **workload))


def run(report: Report) -> None:
    with running_server() as server:
        place = Place(server)
        for workload in (w1, w2, w3, w4, w6, more_engines):
            workload(report, place)


def w1(report: Report, place: Place) -> None:
    report.doing("W1: one chain")
    laps = place.measured(steps=W1_STEPS, laps=LAPS, floors=("one_row", "one_by_one"))
    for floor, words in (("one_row", "one bare row per commit"), ("one_by_one", "the same rows, a commit per step")):
        rounds = [Round(lap.seconds / W1_STEPS * 1e3, lap.floors[floor].seconds / lap.rows * 1e3) for lap in laps]
        report.rounds(f"W1 chain of {W1_STEPS}, against {words}", rounds, "ms/step", best=min)
    spent(report, "W1", laps, W1_STEPS)


def w2(report: Report, place: Place) -> None:
    report.doing("W2: many chains")
    moves = W2_RUNS * W2_STEPS
    laps = place.measured(runs=W2_RUNS, steps=W2_STEPS, laps=LAPS, floors=("together",))
    batched(report, f"W2 {W2_RUNS} runs of {W2_STEPS} steps", "together", laps, moves, "steps")
    (lap,) = place.measured(runs=W2_RUNS, steps=W2_STEPS, floors=("one_by_one",))
    report.figure(
        "W2 against a commit per step", moves / lap.seconds, "steps/s", moves / lap.floors["one_by_one"].seconds
    )
    transactions = max(lap.server.writes for lap in laps)
    report.figure("W2 moves per transaction (asked for: 20)", moves / transactions, "moves", 20)
    spent(report, "W2", laps, moves)


def w3(report: Report, place: Place) -> None:
    flat = {}
    for size in W3_SIZES:
        report.doing(f"W3: {size:,} branches")
        laps = place.measured(branches=size, laps=LAPS if size <= W3_SIZES[1] else 2, floors=("branches",))
        batched(report, f"W3 {size:,} branches", "branches", laps, size, "branches")
        flat[size] = min((lap.engine_cpu + lap.server.cpu) / size for lap in laps)
        report.figure(f"W5 peak memory with {size:,} branches", laps[0].peak_mib, "MiB")
        spent(report, f"W3 {size:,}", laps, size)
    ends = W3_SIZES[-1], W3_SIZES[0]
    report.figure(f"W3 CPU per branch, {ends[0]:,} against {ends[1]:,}", flat[ends[0]] / flat[ends[1]], "×")


def w4(report: Report, place: Place) -> None:
    report.doing("W4: idle latency")
    laps = place.measured(runs=W4_RUNS // 10, steps=1, in_turn=True, laps=10, floors=("one_row",))
    rounds = [Round(statistics.median(lap.times) * 1e3, lap.floors["one_row"].seconds / lap.rows * 1e3) for lap in laps]
    report.rounds("W4 one step, p50, against one bare row per commit (it has two)", rounds, "ms", best=min)
    times = sorted(one for lap in laps for one in lap.times)
    report.figure(f"W4 one step, p99 of {len(times)}", times[int(len(times) * 0.99)] * 1e3, "ms")


def w6(report: Report, place: Place) -> None:
    """SIGKILL in the middle, then again from what is there. Both times are those of a process, its start included."""
    report.doing("W6: killed in the middle")
    with tempfile.TemporaryDirectory(prefix="treadle-bench-") as home, place.database() as dsn:
        began = time.perf_counter()
        victim(Path(home), W6_RUNS, dsn).wait()
        whole = time.perf_counter() - began
    with tempfile.TemporaryDirectory(prefix="treadle-bench-") as home, place.database() as dsn:
        journal = Path(home) / "journal"
        killed = victim(Path(home), W6_RUNS, dsn)
        while not journal.exists() or journal.stat().st_size < W6_RUNS * W2_STEPS // 2:
            assert killed.poll() is None, "it ended before it could be killed"
            time.sleep(0.001)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        began = time.perf_counter()
        victim(Path(home), 0, dsn).wait()
        seconds = time.perf_counter() - began
        finished = asyncio.run(finished_of(dsn))
        repeated = journal.stat().st_size - finished * W2_STEPS
    report.figure(f"W6 finished of {W6_RUNS} runs after SIGKILL", finished, "runs", W6_RUNS)
    report.figure("W6 steps repeated", repeated, "steps")
    report.figure("W6 uninterrupted", whole, "s")
    report.figure("W6 restart to done", seconds, "s", RESTART_S)


def victim(home: Path, runs: int, dsn: str) -> subprocess.Popen[bytes]:
    arguments = [str(home), str(runs), str(W2_STEPS), dsn, str(LEASE_MS)]
    return subprocess.Popen([sys.executable, "-m", "bench.victim", *arguments])


async def finished_of(dsn: str) -> int:
    async with Engine(
        dsn, functions=FUNCTIONS, settings=EngineSettings(lease_ms=LEASE_MS, spare_collector=True)
    ) as engine:
        return len(await engine.runs(statuses=(RunStatus.COMPLETED,), limit=10_000))


def more_engines(report: Report, place: Place) -> None:
    """Steps per CPU second, of one engine and of several on one database: of all together, of engines and server."""
    moves = HERD_RUNS * W2_STEPS
    rounds: dict[str, list[Round]] = {"engines and server": [], "engines": [], "server": []}
    speeds: list[Round] = []
    for number in range(HERD_LAPS):
        herds: list[Lap] = []
        for size in HERDS:
            report.doing(f"{size} engines, lap {number + 1}")
            with place.database() as dsn, Herd(size, Asked(server=place.server, dsn=dsn, steps=W2_STEPS)) as herd:
                herds.append(herd.work(HERD_RUNS))
        few, many = (_per_cpu_second(lap, size * moves) for lap, size in zip(herds, HERDS, strict=True))
        for name in rounds:
            rounds[name].append(Round(many[name], few[name]))
        few_speed, many_speed = (size * moves / lap.seconds for lap, size in zip(herds, HERDS, strict=True))
        speeds.append(Round(many_speed, few_speed))
    of = f"{HERDS[-1]} engines against {HERDS[0]}"
    for name, found in rounds.items():
        report.rounds(f"{of}, steps per CPU second of {name}", found, "steps/CPU s", best=max)
    report.rounds(f"{of}, on this machine's cores", speeds, "steps/s", best=max)


def _per_cpu_second(lap: Lap, moves: int) -> dict[str, float]:
    spent = {"engines": lap.engine_cpu, "server": lap.server.cpu}
    return {name: moves / seconds for name, seconds in {**spent, "engines and server": sum(spent.values())}.items()}


def batched(report: Report, workload: str, floor: str, laps: list[Lap], moves: int, unit: str) -> None:
    """Against the batched floor: by the clock, and by the CPU time of all who take part, which others disturb less."""
    rounds = [Round(moves / lap.seconds, moves / lap.floors[floor].seconds) for lap in laps]
    report.rounds(f"{workload}, against the batched floor", rounds, f"{unit}/s", best=max)
    rounds = [Round(moves / (lap.engine_cpu + lap.server.cpu), moves / lap.floors[floor].cpu) for lap in laps]
    report.rounds("    the same per CPU second", rounds, f"{unit}/CPU s", best=max)


def spent(report: Report, workload: str, laps: list[Lap], moves: int) -> None:
    """What a move cost, in the quietest lap of each kind."""
    report.figure(f"{workload} CPU of the engine", min(lap.engine_cpu for lap in laps) / moves * 1e6, "µs/move")
    report.figure(f"{workload} CPU of the server", min(lap.server.cpu for lap in laps) / moves * 1e6, "µs/move")
    report.figure(f"{workload} log written", min(lap.server.wal for lap in laps) / moves, "bytes/move")

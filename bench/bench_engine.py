"""W1 to W6: a durable engine on a SQLite file, every step durable before the next, beside what the bare machine does.

Each figure's floor is measured in the same run on the rows the engine has just written (see `floors`), lap by lap in
turns; a figure comes twice, of the lap with the typical ratio and of the best one. Compare ratios.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.floors import branches, in_shares, one_by_one, steps_of, together
from bench.report import Report, Round, peak_mib
from bench.settings import AS_SERVED
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine

NAME = "engine"
W1_STEPS, W2_RUNS, W2_STEPS, W4_RUNS, W6_RUNS = 200, 1_000, 5, 200, 200
W3_SIZES = (1_000, 10_000, 100_000)
LAPS, LONG_LAPS = 9, 2
"""The second of a workload that takes ten seconds."""


async def step(**_given: Any) -> dict[str, Any]:
    """The step body: a small dict."""
    return {"ok": True, "n": 1}


FUNCTIONS = {"step": step}
CALL = {"task": {"steps": [{"ref": "do", "action": {"kind": "python", "function": "step"}}]}}


def chain(length: int) -> Workflow:
    nodes = [f"n{number}" for number in range(length)]
    edges = [{"from": a, "to": b} for a, b in itertools.pairwise(nodes)]
    return load_value(
        {"workflow": f"chain{length}", "nodes": dict.fromkeys(nodes, CALL), "transitions": edges}
    ).require()


def fan_out(size: int) -> Workflow:
    """Branches joined, their outputs merged in order."""
    branch = {**CALL, "output_mapping": {"output.n": "$.n"}}
    merge = {"source": "_branch.output.n", "target": "state.all", "strategy": "append"}
    return load_value(
        {
            "workflow": f"fan{size}",
            "limits": {"max_tokens_per_run": 2 * size + 10, "max_spawn_count": size},
            "nodes": {"a": {}, "b": branch, "z": {}},
            "transitions": [
                {"id": "t", "from": "a", "to": "b", "spawn_count": size},
                {"from": "b", "to": "z", "synchronization": {"sibling_group": "t", "merge": merge}},
            ],
            "output": {"n": {"cel": "size(state.all)"}},
        }
    ).require()


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="treadle-bench-") as home:
        place = Path(home)
        for number, workload in enumerate((w1, w2, w3, w4, w6)):
            (place / str(number)).mkdir()
            workload(report, place / str(number))


def w1(report: Report, home: Path) -> None:
    report.doing("W1: one chain")
    rounds = []
    for place in laps(home):
        seconds = timed(place, chain(W1_STEPS), lambda engine: runs_of(engine, f"chain{W1_STEPS}", 1))
        floor = one_by_one(place / "floor.db", steps_of(place / "treadle.db"))
        rounds.append(Round(seconds / W1_STEPS * 1e3, floor / W1_STEPS * 1e3))
    report.rounds(f"W1 chain of {W1_STEPS}", rounds, "ms/step", best=min)


def w2(report: Report, home: Path) -> None:
    report.doing("W2: many chains")
    total = W2_RUNS * W2_STEPS
    rounds = []
    for place in laps(home):
        seconds = timed(place, chain(W2_STEPS), lambda engine: runs_of(engine, f"chain{W2_STEPS}", W2_RUNS))
        floor = together(place / "floor.db", steps_of(place / "treadle.db"))
        rounds.append(Round(total / seconds, total / floor))
    report.rounds(f"W2 {W2_RUNS} runs of {W2_STEPS} steps", rounds, "steps/s", best=max)


def w3(report: Report, home: Path) -> None:
    costs = {}
    for size in W3_SIZES:
        report.doing(f"W3: {size:,} branches")
        rounds = []
        for place in laps(home / str(size), LAPS if size <= W3_SIZES[1] else LONG_LAPS):
            seconds = timed(place, fan_out(size), partial(runs_of, workflow=f"fan{size}", count=1))
            floor = branches(place / "floor.db", in_shares(steps_of(place / "treadle.db"), size))
            rounds.append(Round(size / seconds, size / floor))
        costs[size] = statistics.median(1 / one.value for one in rounds)
        report.rounds(f"W3 {size:,} branches", rounds, "branches/s", best=max)
        report.figure(f"W5 peak memory with {size:,} branches", peak_alone(home / f"alone{size}", size), "MiB")
    report.figure(
        f"W3 cost per branch, {W3_SIZES[-1]:,} against {W3_SIZES[0]:,}", costs[W3_SIZES[-1]] / costs[W3_SIZES[0]], "×"
    )


def w4(report: Report, home: Path) -> None:
    report.doing("W4: idle latency")
    times: list[float] = []

    async def ping(engine: Engine) -> None:
        for _ in range(W4_RUNS):
            began = time.perf_counter()
            await (await engine.start("chain1")).wait()
            times.append(time.perf_counter() - began)

    rounds = []
    for place in laps(home):
        before = len(times)
        timed(place, chain(1), ping)
        rows = steps_of(place / "treadle.db")
        floor = one_by_one(place / "floor.db", rows) / len(rows)
        rounds.append(Round(statistics.median(times[before:]) * 1e3, floor * 1e3))
    report.rounds("W4 one step, p50", rounds, "ms", best=min)
    times.sort()
    report.figure(f"W4 one step, p99 of {len(times)}", times[int(len(times) * 0.99)] * 1e3, "ms")


def laps(home: Path, count: int = LAPS) -> Iterator[Path]:
    """A place of its own for each."""
    for number in range(count):
        place = home / str(number)
        place.mkdir(parents=True)
        yield place


def w6(report: Report, home: Path) -> None:
    """SIGKILL in the middle, then again from what is there. Both times are those of a process, its start included."""
    report.doing("W6: killed in the middle")
    whole = uninterrupted(home / "whole")
    place = home / "killed"
    place.mkdir()
    journal = place / "journal"
    victim = subprocess.Popen([sys.executable, "-m", "bench.victim", str(place), str(W6_RUNS), str(W2_STEPS)])
    while not journal.exists() or journal.stat().st_size < W6_RUNS * W2_STEPS // 2:
        time.sleep(0.001)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "bench.victim", str(place), "0", str(W2_STEPS)], check=True)
    seconds = time.perf_counter() - began
    finished, repeated = asyncio.run(aftermath(place, journal))
    report.figure(f"W6 finished of {W6_RUNS} runs after SIGKILL", finished, "runs", W6_RUNS)
    report.figure("W6 steps repeated", repeated, "steps")
    report.figure("W6 restart to done", seconds, "s", whole)


def uninterrupted(place: Path) -> float:
    """Seconds of the same process when nobody kills it."""
    place.mkdir()
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "bench.victim", str(place), str(W6_RUNS), str(W2_STEPS)], check=True)
    return time.perf_counter() - began


async def aftermath(place: Path, journal: Path) -> tuple[int, int]:
    async with Engine(place / "treadle.db", functions=FUNCTIONS, settings=AS_SERVED) as engine:
        finished = len(await engine.runs(statuses=(RunStatus.COMPLETED,), limit=10_000))
        return finished, journal.stat().st_size - finished * W2_STEPS


async def runs_of(engine: Engine, workflow: str, count: int) -> None:
    """So many runs of it, started as fast as possible, to their end."""
    runs = await asyncio.gather(*(engine.start(workflow) for _ in range(count)))
    ended = await asyncio.gather(*(run.wait() for run in runs))
    assert all(one.status is RunStatus.COMPLETED for one in ended), ended[0]


def timed(home: Path, workflow: Workflow, work: Callable[[Engine], Awaitable[None]]) -> float:
    """Seconds of some work on a fresh engine; opening, deploying and closing not counted."""

    async def whole() -> float:
        async with Engine(home / "treadle.db", functions=FUNCTIONS, settings=AS_SERVED) as engine:
            await engine.deploy(workflow)
            began = time.perf_counter()
            await work(engine)
            return time.perf_counter() - began

    return asyncio.run(whole())


def peak_alone(home: Path, size: int) -> float:
    """Peak MiB of a fan-out in a process of its own."""
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "bench.bench_engine", str(home), str(size)], check=True, capture_output=True, text=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    flow = fan_out(int(sys.argv[2]))
    timed(Path(sys.argv[1]), flow, lambda engine: runs_of(engine, flow.workflow, 1))
    print(peak_mib())
    sys.stdout.flush()
    os._exit(0)

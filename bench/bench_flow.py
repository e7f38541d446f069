"""Flow control: what a limit that holds nobody up costs W2, and how a long queue drains, on a SQLite file.

Every ratio is taken within one lap. The drain is that of a workflow with one place: a run ends and the next one starts
in one transaction, so its floor is one bare commit a run. The order is checked, and the memory of the queue is that of
the process before and after the starts.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.bench_engine import CALL, LAPS, W2_RUNS, W2_STEPS, chain, laps, runs_of, timed
from bench.floors import one_by_one, steps_of
from bench.report import Report, Round
from bench.settings import AS_SERVED
from treadle.language import load_value
from treadle.model.definition import Workflow
from treadle.runtime.engine import Engine
from treadle.runtime.run import Run

NAME = "flow"
QUEUED = int(os.environ.get("TREADLE_BENCH_QUEUED", "20000"))
"""100,000 take some minutes."""
KEYS, RATES = 100, 1_000
FLOOR = 500
"""Commits that the floor is measured with."""
GROUP = 1_000
"""Starts that are asked for at once."""
LARGE = 1_000_000


def limited(name: str, **limits: Any) -> Workflow:
    work = {**CALL, "input_mapping": {"n": "$.input.n"}}
    return load_value({"workflow": name, **limits, "nodes": {"work": work}}).require()


def run(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="treadle-bench-") as home:
        beside_w2(report, Path(home) / "w2")
        rate = {"limit": LARGE, "per_ms": 1, "key": "$.r"}
        for name, limits in (
            ("one place", {"concurrency": {"limit": 1}}),
            ("one place for each of 100 keys", {"concurrency": {"limit": 1, "key": "$.k"}}),
            ("one place, rates of 1,000 keys", {"concurrency": {"limit": 1}, "rate": rate}),
        ):
            report.doing(f"drain: {name}")
            place = Path(home) / name.replace(" ", "-")
            place.mkdir()
            asyncio.run(drain(report, name, limited("drain", **limits), place))


def beside_w2(report: Report, home: Path) -> None:
    """W2 with a limit that holds nobody up, beside W2 without one."""
    report.doing("W2 with concurrency")
    plain = chain(W2_STEPS)
    document = {"workflow": "limited", "concurrency": {"limit": LARGE}}
    nodes = dict.fromkeys(plain.nodes, CALL)
    edges = [{"from": a, "to": b} for a, b in zip(list(nodes), list(nodes)[1:], strict=False)]
    with_limit = load_value({**document, "nodes": nodes, "transitions": edges}).require()
    rounds = []
    for place in laps(home, LAPS):
        (place / "plain").mkdir()
        (place / "limited").mkdir()
        limited_s = timed(place / "limited", with_limit, lambda engine: runs_of(engine, "limited", W2_RUNS))
        plain_s = timed(place / "plain", plain, lambda engine: runs_of(engine, f"chain{W2_STEPS}", W2_RUNS))
        total = W2_RUNS * W2_STEPS
        rounds.append(Round(total / limited_s, total / plain_s))
    report.rounds("W2 with `concurrency`, floor: without", rounds, "steps/s", best=max)


async def drain(report: Report, name: str, workflow: Workflow, place: Path) -> None:
    """Queues so many runs, then lets them go."""
    opened = asyncio.Event()
    order: list[int] = []

    async def step(n: int) -> None:
        await opened.wait()
        order.append(n)

    async with Engine(place / "treadle.db", functions={"step": step}, settings=AS_SERVED) as engine:
        await engine.deploy(workflow)
        before = now_mib()
        runs: list[Run] = []
        for at in range(0, QUEUED, GROUP):
            inputs = [{"n": n, "k": n % KEYS, "r": n % RATES} for n in range(at, at + GROUP)]
            runs += await asyncio.gather(*(engine.start(workflow.workflow, given) for given in inputs))
        taken, began, cpu = now_mib() - before, time.perf_counter(), time.process_time()
        opened.set()
        await asyncio.gather(*(run.wait() for run in runs[-KEYS:]))
        while len(order) < QUEUED:
            await runs[-1].wait()
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    assert order == list(range(QUEUED)) or "key" in str(workflow.concurrency), "the queue does not drain in order"
    assert all(order_of_key == sorted(order_of_key) for order_of_key in by_key(order)), "a key does not drain in order"
    floor = one_by_one(place / "floor.db", steps_of(place / "treadle.db")[:FLOOR]) / FLOOR
    title = f"{QUEUED:,} queued, {name}"
    report.figure(f"{title}: drained, floor: one bare commit a run", QUEUED / seconds, "runs/s", 1 / floor)
    report.figure(f"{title}: processor time", cpu / QUEUED * 1e6, "µs/run")
    report.figure(f"{title}: memory of the queue", taken * 1024 / QUEUED, "KiB/run")


def by_key(order: list[int]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for n in order:
        found.setdefault(n % KEYS, []).append(n)
    return list(found.values())


def now_mib() -> float:
    """The memory this process has now."""
    gc.collect()
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0

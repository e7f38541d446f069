"""The kernel on one core: what a visit costs, whether a branch's cost stays flat, and what a lazy fan-out weighs.

Times are CPU time of this process: the machine is shared, and nothing here waits.
"""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

from bench.driver import Driver, compiled
from bench.report import Report, peak_mib

NAME = "kernel"

VISITS_FLOOR = 30_000
"""Visits per second of a five-node chain the project asks for."""
FLATNESS_MAX = 1.5
"""How much dearer a branch may be among 100,000 than among 100."""
LAZY_MIB_MAX = 300

LIMITS = {"max_tokens_per_run": 1_000_000, "max_spawn_count": 200_000}
WORK = {"action": {"kind": "mock"}}


def chain(length: int = 5) -> dict[str, Any]:
    refs = [f"n{i}" for i in range(length)]
    return {
        "workflow": "chain",
        "nodes": {ref: {**WORK, "output_mapping": {f"state.{ref}": "$.v"}} for ref in refs},
        "transitions": [{"from": a, "to": b} for a, b in pairwise(refs)],
    }


def fan_out(lazy: int | None = None) -> dict[str, Any]:
    foreach: dict[str, Any] = {"collection": "input.items", "item_var": "item"}
    if lazy is not None:
        foreach["max_in_flight"] = lazy
    return {
        "workflow": "fan",
        "limits": LIMITS,
        "nodes": {"a": {}, "b": {**WORK, "output_mapping": {"state.v": "$.v"}}, "c": {}},
        "transitions": [
            {"id": "t", "from": "a", "to": "b", "foreach": foreach},
            {
                "from": "b",
                "to": "c",
                "synchronization": {
                    "sibling_group": "t",
                    "merge": {"source": "_branch.output.v", "target": "state.all", "strategy": "append"},
                },
            },
        ],
    }


def run(report: Report) -> None:
    report.progress("chain")
    report.figure("5-node chain, decide + evolve + memory store", chain_speed(), "visits/s", floor=VISITS_FLOOR)
    costs = {}
    for size in (100, 1_000, 10_000, 100_000):
        report.progress(f"{size} siblings")
        costs[size] = branch_cost(size)
        report.figure(f"branch among {size:,} siblings", costs[size] * 1e6, "µs")
    report.figure("branch at 100,000 against 100", costs[100_000] / costs[100], "×", floor=FLATNESS_MAX)
    report.progress("lazy memory")
    report.figure("100,000 siblings, max_in_flight 1,000: peak", lazy_peak_mib(), "MiB", floor=LAZY_MIB_MAX)


def chain_speed(seconds: float = 3.0) -> float:
    """Best of several bursts."""
    graph = compiled(chain())
    best = 0.0
    deadline = time.process_time() + seconds
    while time.process_time() < deadline:
        driver = Driver()
        begin = time.process_time()
        for number in range(500):
            driver.play(graph, f"r{number}", {}, {"v": 1})
        best = max(best, driver.visits / (time.process_time() - begin))
    return best


def branch_cost(size: int) -> float:
    """Seconds per branch, best of a few runs."""
    graph = compiled(fan_out())
    best = float("inf")
    for _ in range(max(2, min(50, 20_000 // size))):
        driver = Driver()
        begin = time.process_time()
        state = driver.play(graph, "r", {"items": list(range(size))}, {"v": 1})
        best = min(best, (time.process_time() - begin) / size)
        assert len(state.context()["state"]["all"]) == size
    return best


def lazy_peak_mib() -> float:
    """In a process of its own: only then is the peak the run's own."""
    code = "from bench.bench_kernel import lazy_run; lazy_run()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(result.stdout)


def lazy_run() -> None:
    graph = compiled(fan_out(lazy=1_000))
    Driver().play(graph, "r", {"items": list(range(100_000))}, {"v": 1})
    print(peak_mib())

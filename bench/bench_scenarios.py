"""How fast workflows are tested: all scenarios of this project, read, compiled and played on one core."""

from __future__ import annotations

import time
from pathlib import Path

from bench.report import Report
from treadle.testing import run_file

NAME = "scenarios"
PER_SECOND_FLOOR = 200
"""Small scenarios per second the project asks for."""


def run(report: Report) -> None:
    files = sorted(Path("tests").rglob("*.scenario.yaml"))
    begin = time.perf_counter()
    played = 0
    for file in files:
        report.progress(file.name)
        results = run_file(file)
        assert all(result.ok for result in results), f"{file}: a scenario does not hold"
        played += len(results)
    report.figure(
        f"{played} scenarios, reading included", played / (time.perf_counter() - begin), "scenarios/s", PER_SECOND_FLOOR
    )

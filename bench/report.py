"""What a bench says: figures, each with a workload, a unit and, where one is known, the floor it stands on.

A bench is a module `bench/bench_<something>.py` with

    NAME = "kernel"
    def run(report: Report) -> None:
        report.figure("chain of 5", visits / seconds, "visits/s", floor=30_000)

`floor` is what the figure is compared with: a target to reach, or what the raw machine does. The ratio
value/floor is worked out here, so every bench means the same by it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path


def peak_mib() -> float:
    """The most memory this process ever had. Not `ru_maxrss`: that begins with what the process had which started this
    one."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024  # type: ignore[index]


@dataclass(frozen=True)
class Figure:
    bench: str
    workload: str
    value: float
    unit: str
    floor: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    def as_json(self) -> str:
        """One line; `floor` and `ratio` only where there is a floor."""
        line: dict[str, str | float] = {
            "bench": self.bench,
            "workload": self.workload,
            "value": short(self.value),
            "unit": self.unit,
        }
        if self.floor is not None:
            line["floor"] = short(self.floor)
        if self.ratio is not None:
            line["ratio"] = short(self.ratio)
        return json.dumps(line)


@dataclass(frozen=True)
class Round:
    """One figure and its floor, of the same minute."""

    value: float
    floor: float

    @property
    def ratio(self) -> float:
        return self.value / self.floor


@dataclass
class Report:
    """Collects the figures of one bench and passes each on as soon as it is known."""

    bench: str
    tell: Callable[[Figure], None] = lambda _figure: None
    progress: Callable[[str], None] = lambda _what: None
    figures: list[Figure] = field(default_factory=list)

    def figure(self, workload: str, value: float, unit: str, floor: float | None = None) -> None:
        figure = Figure(self.bench, workload, value, unit, floor)
        self.figures.append(figure)
        self.tell(figure)

    def rounds(self, workload: str, rounds: Sequence[Round], unit: str, best: Callable[..., Round]) -> None:
        """Machines are noisy: the lap with the typical ratio (the median), and of several the `best` (`min`, `max`)."""
        ordered = sorted(rounds, key=lambda one: one.ratio)
        typical, quickest = ordered[len(ordered) // 2], best(ordered, key=lambda one: one.ratio)
        self.figure(workload, typical.value, unit, typical.floor)
        if len(ordered) > 1:
            self.figure(f"    the best of {len(ordered)} laps", quickest.value, unit, quickest.floor)

    def doing(self, what: str) -> None:
        """Shown while something takes long; never part of the result."""
        self.progress(what)


def short(value: float) -> float:
    """Four significant digits: more would claim a precision no benchmark has."""
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded


def shown(value: float | None) -> str:
    """For people: 30,120 or 0.31 or 0.0021."""
    if value is None:
        return ""
    return f"{short(value):,.0f}" if abs(value) >= 1000 else f"{short(value):g}"

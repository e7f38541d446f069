"""Many seeds, on all cores: fresh ones by number or by time, and what they amount to."""

from __future__ import annotations

import gc
import multiprocessing
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, takewhile
from types import FrameType

from tests.simulator.coverage import Coverage
from tests.simulator.shelves import ShelfName
from tests.simulator.simulate import Outcome, simulate

CHUNK = 25
"""Seeds a process takes at a time: long enough to be worth the message, short enough to stop on time."""
COLLECT_EVERY = 10
"""Seeds between two collections of garbage."""
SEED_SECONDS_MAX = 60
"""A seed takes milliseconds, a crowd half a minute. One that takes this long spins inside a single decision."""
COMPLETED_SHARE_MIN = 0.15
"""A batch in which fewer runs complete is mostly about failing, and proves little about succeeding."""


class Stuck(BaseException):
    """Raised inside a seed that does not come to an end."""


@dataclass(slots=True)
class Batch:
    """What a batch amounts to."""

    seeds: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of all processes together: the machine may be busy with something else."""
    steps: int = 0
    runs: int = 0
    completed_runs: int = 0
    completed_visits: int = 0
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    """(seed, rule, text)"""
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def per_minute(self) -> float:
        """Seeds per minute of one core."""
        return self.seeds / self.cpu_seconds * 60 if self.cpu_seconds else 0.0

    @property
    def is_vacuous(self) -> bool:
        """Whether too little succeeded for the batch to mean anything."""
        return self.seeds >= CHUNK and self.completed_runs < COMPLETED_SHARE_MIN * self.runs

    def take(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.steps += outcome.steps
        self.runs += outcome.runs
        self.completed_runs += outcome.completed_runs
        self.completed_visits += outcome.completed_visits
        self.coverage.add(outcome.coverage)
        if outcome.failure is not None:
            self.failures.append((outcome.seed, outcome.failure.rule, outcome.failure.text))

    def add(self, other: Batch) -> None:
        self.seeds += other.seeds
        self.steps += other.steps
        self.runs += other.runs
        self.completed_runs += other.completed_runs
        self.completed_visits += other.completed_visits
        self.failures += other.failures
        self.cpu_seconds += other.cpu_seconds
        self.coverage.add(other.coverage)


def play(seeds: Iterable[int], store: ShelfName = "memory", without: frozenset[str] = frozenset()) -> Batch:
    """One process's share."""
    batch = Batch()
    began = time.process_time()
    previous = signal.signal(signal.SIGALRM, _give_up)
    gc.disable()  # worlds end whole: collecting while they live costs a fifth of the time and finds nothing
    try:
        for seed in seeds:
            signal.alarm(SEED_SECONDS_MAX)
            if batch.seeds % COLLECT_EVERY == 0:
                gc.collect()
            try:
                batch.take(simulate(seed, without, store))
            except Stuck:
                batch.seeds += 1
                batch.failures.append((seed, "stuck", f"no end after {SEED_SECONDS_MAX} s inside one seed"))
    finally:
        gc.enable()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
    batch.cpu_seconds = time.process_time() - began
    return batch


def _give_up(_number: int, _frame: FrameType | None) -> None:
    raise Stuck


def run(
    first: int,
    *,
    seeds: int | None = None,
    seconds: float | None = None,
    jobs: int = 1,
    store: ShelfName = "memory",
    without: frozenset[str] = frozenset(),
) -> Batch:
    """Seeds from `first` on: so many, or for so long. `without`: features and faults that none of them has."""
    began = time.monotonic()
    total = Batch()
    chunks = _chunks(first, seeds)
    if seconds is not None:
        chunks = takewhile(lambda _chunk: time.monotonic() - began < seconds, chunks)
    if jobs == 1:
        for chunk in chunks:
            total.add(play(chunk, store, without))
    else:
        with multiprocessing.get_context("spawn").Pool(jobs) as pool:
            for part in _in_flight(pool, chunks, jobs * 2, store, without):
                total.add(part)
    total.seconds = time.monotonic() - began
    return total


def _in_flight(
    pool: multiprocessing.pool.Pool, chunks: Iterator[range], width: int, store: ShelfName, without: frozenset[str]
) -> Iterator[Batch]:
    """Results as they come, never more than `width` chunks ahead: a pool's own queue would run past the deadline."""
    waiting = []
    for chunk in chunks:
        waiting.append(pool.apply_async(play, (chunk, store, without)))
        if len(waiting) >= width:
            yield waiting.pop(0).get()
    for result in waiting:
        yield result.get()


def _chunks(first: int, seeds: int | None) -> Iterator[range]:
    for begin in count(first, CHUNK):
        left = CHUNK if seeds is None else min(CHUNK, first + seeds - begin)
        if left <= 0:
            return
        yield range(begin, begin + left)

"""Virtual time: processes as generators, one heap, one clock.

A process yields how many milliseconds it waits before its next step. Between two steps of one process any other may
act, its host may die or stand still, and time passes; inside a step nothing does. So every `yield` in the simulator
is a place where a crash can happen, and there are no others.

A *host* is a machine that processes live on: when it dies they are gone, when it stalls they all wait. What happens at
one instant happens in an order drawn from the seed.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator
from itertools import count

from treadle.testing.simulator.draw import Draw

Process = Generator[int, None, None]


class Host:
    """A machine. Its `life` grows with every restart: processes of an earlier life never act again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.life = 0
        self.up = True
        self.stalled_until = 0

    def die(self) -> None:
        """Everything in memory is gone."""
        self.life += 1
        self.up = False
        self.stalled_until = 0

    def about_to_step(self) -> bool:
        """Asked before every step of its processes; False: it has just died instead."""
        return True


class Schedule:
    """The clock and the heap."""

    def __init__(self, draw: Draw, now: int) -> None:
        self.now = now
        self.steps = 0
        self._draw = draw
        self._order = count()
        self._heap: list[tuple[int, float, int, Process, Host | None, int]] = []

    def spawn(self, process: Process, host: Host | None = None, after_ms: int = 0) -> None:
        """Let a process begin, on a host or nowhere in particular."""
        self._push(self.now + after_ms, process, host, host.life if host is not None else 0)

    def _push(self, at: int, process: Process, host: Host | None, life: int) -> None:
        heapq.heappush(self._heap, (at, self._draw.share(), next(self._order), process, host, life))

    def run_until(self, end: int, steps_max: int) -> bool:
        """Let everything happen up to `end`. False: there were too many steps, somebody spins."""
        heap = self._heap
        while heap and heap[0][0] <= end:
            if self.steps >= steps_max:
                return False
            at, _, _, process, host, life = heapq.heappop(heap)
            self.now = max(self.now, at)
            if host is not None:
                if host.life != life:
                    process.close()
                    continue
                if host.stalled_until > self.now:
                    self._push(host.stalled_until, process, host, life)
                    continue
                if not host.about_to_step():
                    process.close()
                    continue
            self.steps += 1
            try:
                wait = process.send(None)
            except StopIteration:
                continue
            self._push(self.now + wait, process, host, life)
        self.now = max(self.now, end)
        return True

"""Virtual time: machines with an event loop each, one clock, one order.

Owns when anything happens. One thing is done at a time: a ready callback of one machine, chosen at random among the
machines that have any; on one machine the order is asyncio's own. Time passes only when nobody has anything left to do.
Before every callback its machine may die or stand still, so between any two steps of production code anything may
happen that can happen to a process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulator.draw import Draw
from tests.simulator.logs import ERRORS
from treadle.testing.world.loop import VirtualLoop

BURST_MAX = 6
"""Callbacks a machine does in a row at most, before another may be chosen."""
NEVER = float("inf")


class Host:
    """A machine. `boot` starts its process, `die` ends it: everything in its memory is gone."""

    def __init__(self, name: str, schedule: Schedule) -> None:
        self.name = name
        self.schedule = schedule
        self.loop: VirtualLoop | None = None
        self.stalled_until = 0.0
        self.cut_off_until = 0.0
        """Until then its leases cannot be renewed."""
        schedule.hosts.append(self)

    @property
    def is_up(self) -> bool:
        return self.loop is not None

    def boot(self, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A new process begins with this."""
        assert self.loop is None, f"{self.name} is up"
        self.loop = loop = VirtualLoop(self.schedule.time)  # type: ignore[abstract]
        self.stalled_until = 0.0
        loop.call_soon(lambda: self.spawn(main()))

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Something more for its loop to do."""
        assert self.loop is not None, f"{self.name} is down"
        self.loop.create_task(work).add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.schedule.problem = self.schedule.problem or problem

    def die(self) -> None:
        """Without another word."""
        assert self.loop is not None, f"{self.name} is down"
        self.loop.close()
        self.schedule.fallen.append(self.loop)
        self.loop = None

    def stand_still(self, ms: int) -> None:
        """Does nothing for so long, then goes on as if nothing had happened."""
        self.stalled_until = self.schedule.time() + ms / 1_000

    def about_to_step(self) -> bool:
        """Asked before every callback; False: it has died or stands still instead."""
        return True


class Schedule:
    """See the module's docstring. Instants are milliseconds since 1970; `time` is what event loops go by."""

    def __init__(self, draw: Draw, begin: int) -> None:
        self.steps = 0
        self.hosts: list[Host] = []
        self.problem: BaseException | None = None
        """The first thing that went wrong on any machine, and that no production code took care of."""
        self.fallen: list[VirtualLoop] = []
        """Of processes that have died."""
        self._draw = draw
        self._begin = begin
        self._elapsed_s = 0.0

    def time(self) -> float:
        return self._elapsed_s

    @property
    def now(self) -> int:
        return self._begin + int(self._elapsed_s * 1_000 + 1e-6)

    def run_for(self, ms: int, steps_max: int) -> bool:
        """Lets everything happen that happens within so long. False: there were too many steps, somebody spins."""
        end = self._elapsed_s + ms / 1_000
        while self.steps < steps_max and self.problem is None and not ERRORS:
            now = self._elapsed_s
            ready = [host for host in self.hosts if host.loop and host.loop.ready and host.stalled_until <= now]
            if ready:
                self._go_on(ready[0] if len(ready) == 1 else self._draw.pick(ready))
            elif (due := self._next_due()) > end:
                self._elapsed_s = end
                return True
            else:
                self._wait_until(max(now, due))
        return False

    def _next_due(self) -> float:
        """When anything happens next, while nothing is ready."""
        next_due = NEVER
        for host in self.hosts:
            if host.loop is not None:
                due = self._elapsed_s if host.loop.ready else host.loop.next_due
                if due is not None:
                    next_due = min(next_due, max(due, host.stalled_until))
        return next_due

    def _wait_until(self, now: float) -> None:
        self._elapsed_s = now
        for host in self.hosts:
            if host.loop is not None and host.stalled_until <= now:
                host.loop.ring()

    def _go_on(self, host: Host) -> None:
        """Some callbacks of one machine in a row."""
        assert host.loop is not None
        self.steps += host.loop.do(self._draw.between(1, BURST_MAX), host.about_to_step)

    def close(self) -> None:
        """The world has ended."""
        for host in self.hosts:
            if host.loop is not None:
                host.loop.close()
                self.fallen.append(host.loop)
        for loop in self.fallen:
            loop.clear_away()

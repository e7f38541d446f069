"""The workshop of a process: its room for attempts, threads, processes and coroutines, each with one limit.

Owns the limits. Promises that they hold for the whole process: an engine that claims queue work has two executors, one
for its own runs and one for claims, and both use the same workshop. Attempts of both wait for room in one line, first
come, first served. Must not know runs, queues or reports.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from treadle.actions.registry import Registry
from treadle.runtime.execute.processes import Processes
from treadle.runtime.execute.slots import Line
from treadle.runtime.execute.stoppable import Coroutines
from treadle.runtime.execute.threads import Threads
from treadle.runtime.surroundings.ports import Clock

CORES = os.cpu_count() or 1
ATTEMPTS_MAX = 1_000
"""Most attempts are coroutines that wait for a network: some 10 kB each, and as many sockets as a process may usually
open. Attempts that wait for a thread, a process or their next try count too."""
THREADS_MAX = 2 * CORES + 16
"""Threads are for blocking I/O. Threads that compute share one interpreter lock: more than a few only cost."""
PROCESSES_MAX = CORES
"""Processes are for computing: one per core."""


class Workshop:
    """See the module's docstring. Made on the event loop it serves. Its maker closes it, after its executors."""

    def __init__(
        self,
        registry: Registry,
        clock: Clock,
        *,
        attempts_max: int = ATTEMPTS_MAX,
        threads_max: int = THREADS_MAX,
        processes_max: int = PROCESSES_MAX,
        name: str = "local",
        tracebacks: bool = True,
    ) -> None:
        self.loop = loop = asyncio.get_running_loop()
        self.clock = clock
        self.registry = registry
        self.tracebacks = tracebacks
        self.enter_trace: Callable[[dict[str, str]], None] | None = None
        """Called in the context of a traced attempt before it begins, with `AttemptFacts.trace`."""
        self.room: Line[Any] = Line(attempts_max)
        """Places for attempts of all executors."""
        self.coroutines = Coroutines(loop)
        self.threads = Threads(loop, threads_max, name)
        self.processes = Processes(loop, processes_max, name)

    async def close(self) -> None:
        """Called when no executor works here any more. Ends threads and processes; a thread that does not return
        stays."""
        self.coroutines.close()
        self.threads.close()
        await self.processes.close()

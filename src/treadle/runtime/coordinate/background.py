"""Background tasks of a coordinator, and the futures of callers that wait until the coordinator is quiet.

Owns the tasks. Promises that a task that fails is logged and stops nothing else. Must not know what the tasks do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from treadle.runtime.surroundings.logs import logger

log = logger("treadle.coordinator")


class Background:
    """See the module's docstring. Made on the event loop it serves."""

    def __init__(self, is_idle: Callable[[], bool], is_over: Callable[[], bool]) -> None:
        self._is_idle = is_idle
        """Returns whether the coordinator itself has nothing to do; background tasks are counted here."""
        self._is_over = is_over
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.waiting: list[asyncio.Future[None]] = []
        """Futures of callers of `wait_quiet`."""

    @property
    def is_quiet(self) -> bool:
        return not self._tasks and self._is_idle()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)

    async def wait_quiet(self) -> None:
        while not self.is_quiet and not self._is_over():
            quiet: asyncio.Future[None] = self._loop.create_future()
            self.waiting.append(quiet)
            await quiet

    def look(self) -> None:
        """Wakes the callers of `wait_quiet` if the coordinator is quiet, or has stopped."""
        if self.waiting and (self.is_quiet or self._is_over()):
            for quiet in self.waiting:
                if not quiet.done():
                    quiet.set_result(None)
            self.waiting.clear()

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and (problem := task.exception()) is not None and not self._is_over():
            log.error("a background step failed", error=repr(problem), exc_info=problem)
        self.look()

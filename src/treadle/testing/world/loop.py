"""An asyncio event loop on a virtual clock: runs the production runtime without waiting.

Owns the ready and the due callbacks of one machine of a virtual world. Promises that nothing happens by itself: `do`
runs the next ready callbacks, the owner of the clock says when time passes, and the order is the one asyncio promises
(first ready, first run). No selector, no threads: work for a thread pool runs in place. Must not know the code that
runs on it, nor the real clock.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Stuck(Exception):
    """Nothing is ready although something is awaited: it would wait for ever."""


class VirtualLoop(asyncio.AbstractEventLoop):
    """See the module's docstring. `clock` gives the time in seconds; without one the loop has its own, which jumps to
    the next timer whenever nothing is ready."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._now_s = 0.0
        self._keeps_time = clock is None
        if clock is not None:
            self.time = clock  # type: ignore[method-assign]
        self.ready: deque[asyncio.Handle] = deque()
        self.problems: list[dict[str, Any]] = []
        """Messages asyncio would have logged: exceptions that were never retrieved."""
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = count()
        self._is_closed = False
        self._left: set[asyncio.Task[Any]] = set()

    # The clock's side

    @property
    def next_due(self) -> float | None:
        """When the next timer is due."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
        return timers[0][0] if timers else None

    def ring(self) -> None:
        """Makes every timer ready that is due by now."""
        now, timers = self.time(), self._timers
        while timers and timers[0][0] <= now:
            handle = heappop(timers)[2]
            if not handle.cancelled():
                self.ready.append(handle)

    def do(self, most: int, goes_on: Callable[[], bool]) -> int:
        """Runs up to `limit` ready callbacks, as long as `goes_on` before each of them. Returns how many."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            for done in range(most):
                if not self.ready or not goes_on():
                    return done
                handle = self.ready.popleft()
                if not handle.cancelled():
                    handle._run()
            return most
        finally:
            events._set_running_loop(outer)

    def run_until_complete(self, future: Any) -> Any:
        """The result of an awaitable. Raises LoopStuck if it waits for something that does not come from this loop."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            awaited: asyncio.Future[Any] = asyncio.ensure_future(future, loop=self)
            ready = self.ready
            while not awaited.done():
                if not ready and not self._jump():
                    raise Stuck("nothing is ready, and somebody still waits")
                handle = ready.popleft()
                if not handle.cancelled():
                    handle._run()
        finally:
            events._set_running_loop(outer)
        return awaited.result()

    def time(self) -> float:
        """Moves time forward, on a loop with a clock of its own."""
        return self._now_s

    def _jump(self) -> bool:
        """Moves time to the next timer; False if there is none, or the clock is not the loop's own."""
        due = self.next_due
        if due is None or not self._keeps_time:
            return False
        self._now_s = max(self._now_s, due)
        self.ring()
        return True

    def close(self) -> None:
        """Stops everything: work under way stays where it is, as in a killed process."""
        self._is_closed = True
        self._left = asyncio.all_tasks(self)
        self.ready.clear()
        self._timers.clear()

    def clear_away(self) -> None:
        """Ends the work that was under way when the loop was closed. Left to the garbage collector, it would end in the
        middle of other work, and CPython 3.11 crashes on coroutines that are collected inside `asyncio.timeout`."""
        outer = events._get_running_loop()
        events._set_running_loop(self)
        try:
            for task in self._left:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with suppress(Exception):  # an `await` in a `finally`, which is never answered
                    task.get_coro().close()
        finally:
            events._set_running_loop(outer)
        self._left = set()

    # asyncio's side

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self._is_closed:
            self.ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self._is_closed:
            heappush(self._timers, (when, next(self._order), handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancels a timer; its entry leaves the heap when it comes to the top."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, work: Coroutine[Any, Any, T], **named: Any) -> asyncio.Task[T]:  # type: ignore[override]
        return asyncio.Task(work, loop=self, **named)

    def run_in_executor(self, executor: Any, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:  # type: ignore[override]
        del executor  # the order of threads is not deterministic
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(work(*arguments))
        except Exception as problem:
            done.set_exception(problem)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self._is_closed:  # unfinished work after a crash is no mistake
            self.problems.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self._is_closed

    def is_closed(self) -> bool:
        return self._is_closed

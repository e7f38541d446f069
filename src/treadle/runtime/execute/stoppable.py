"""An effort: one try of one action that takes time, and can be stopped. This file: the word, and async efforts.

Owns coroutines of actions. Promises, as every place where efforts are made (`threads`, `processes`) does:
 1. `begun` is called once, when the work really begins: an action's timeout does not count time in line.
 2. `ended` is called once, on the event loop, never before the effort has been returned to who asked for it; what ends
    by itself says so from inside its task, which saves a turn of the loop.
 3. After `cancel` it is called as soon as the work has ended; for work that cannot be stopped, at once.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Struct

from treadle.actions.current import CURRENT, CurrentAttempt
from treadle.actions.failure import error_of, is_interrupt
from treadle.actions.protocol import Done, Failed, failed


class Stoppable(Protocol):
    """See the module's docstring."""

    def cancel(self) -> None:
        """Stops the work as well as it can be stopped."""


Begun = Callable[[], None]
"""None in its place: nobody wants to know."""
Ended = Callable[[Stoppable, Done | Failed], None]

ABANDONED = failed("the attempt was stopped")
"""What a cancelled effort ends with; nobody looks at it."""


class Coroutines:
    """Where async actions run: every one in a task of its own, since `asyncio.timeout` and its like need one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._leaving: set[asyncio.Task[None]] = set()
        """Those told to stop. The loop holds tasks only weakly, and whoever had the effort may have lost patience."""

    def begin(self, work: Awaitable[Any], current: CurrentAttempt, begun: Begun | None, ended: Ended) -> Stoppable:
        """Begins at once."""
        effort = _Awaited(work, current, ended, self._leaving)
        effort.task = self._loop.create_task(effort.run())
        if begun is not None:
            begun()
        return effort

    def close(self) -> None:
        """Cancels once more what has swallowed its cancellation."""
        for task in self._leaving:
            task.cancel()


class _Awaited(Struct, eq=False):
    _work: Awaitable[Any]
    _current: CurrentAttempt
    _ended: Ended | None
    _leaving: set[asyncio.Task[None]]
    task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        CURRENT.set(self._current)
        try:
            answer = await self._work
            if type(answer) is not Done:
                answer = checked(answer)
        except asyncio.CancelledError:
            self._end(failed("the action's coroutine was cancelled, but not by the engine"))
            raise
        except BaseException as problem:  # user code that exits must not take the engine with it, nor hang its token
            if is_interrupt(problem) or (isinstance(problem, GeneratorExit) and not self._is_stepping()):
                raise
            answer = Failed(error_of(problem))
        self._end(answer)

    def _is_stepping(self) -> bool:
        """False: nobody runs the task any more, and its coroutine is being closed."""
        try:
            return asyncio.current_task() is self.task
        except RuntimeError:  # no loop runs here
            return False

    def cancel(self) -> None:
        self._current.cancelled.set()
        assert self.task is not None, "it has begun"
        self._leaving.add(self.task)
        self.task.add_done_callback(self._cancelled)  # here and not in `begin`: a callback costs every attempt 2 µs
        self.task.cancel()

    def _cancelled(self, task: asyncio.Task[None]) -> None:
        """The task is over; if it did not say so itself it never had its first step."""
        self._leaving.discard(task)
        if self._ended is None:
            return
        if inspect.iscoroutine(self._work):
            self._work.close()  # it would be reported as never awaited
        self._end(ABANDONED)

    def _end(self, answer: Done | Failed) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(self, answer)


def checked(reply: Any) -> Done | Failed:
    """What an action came to; anything else is a mistake of its kind, and said so."""
    if isinstance(reply, (Done, Failed)):
        return reply
    return failed(f"an action answers with Done or Failed, this one with {type(reply).__name__}: {reply!r:.200}")

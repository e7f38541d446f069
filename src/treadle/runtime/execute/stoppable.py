"""Stoppable work: one try of one action that takes time and can be stopped. Here: the protocol, and coroutines.

Owns the coroutines of actions. Promises, like the other places that run stoppable work (`threads`, `processes`):
 1. `begun` is called once, when the work really begins: time in line does not count towards an action's timeout.
 2. `ended` is called once, on the event loop, and never before `begin` has returned. Work that ends by itself calls it
    from inside its task, which saves a turn of the loop.
 3. After `cancel`, `ended` is called as soon as the work has ended; at once for work that cannot be stopped.
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
        """Stops the work as far as it can be stopped."""


Begun = Callable[[], None]
"""Called when the work begins; None if nobody needs to know."""
Ended = Callable[[Stoppable, Done | Failed], None]

ABANDONED = failed("the attempt was stopped")
"""The answer of cancelled work; it is not looked at."""


class Coroutines:
    """Runs async actions, each in a task of its own, because `asyncio.timeout` and its like need one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._leaving: set[asyncio.Task[None]] = set()
        """Tasks that were told to stop. The loop holds tasks only weakly, and the attempt may have given up waiting."""

    def begin(self, work: Awaitable[Any], current: CurrentAttempt, begun: Begun | None, ended: Ended) -> Stoppable:
        """Begins at once."""
        effort = _Awaited(work, current, ended, self._leaving)
        effort.task = self._loop.create_task(effort.run())
        if begun is not None:
            begun()
        return effort

    def close(self) -> None:
        """Cancels tasks again that have swallowed their cancellation."""
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
        except BaseException as problem:  # user code that exits must neither end the engine nor leave its token hanging
            if is_interrupt(problem) or (isinstance(problem, GeneratorExit) and not self._is_stepping()):
                raise
            answer = Failed(error_of(problem))
        self._end(answer)

    def _is_stepping(self) -> bool:
        """False if the task is no longer run and its coroutine is being closed."""
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
        """The task is over. If it has not called `ended` itself, it never had its first step."""
        self._leaving.discard(task)
        if self._ended is None:
            return
        if inspect.iscoroutine(self._work):
            self._work.close()  # else Python warns that it was never awaited
        self._end(ABANDONED)

    def _end(self, answer: Done | Failed) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(self, answer)


def checked(reply: Any) -> Done | Failed:
    """The answer of an action; a reply of another type is a mistake of its kind and becomes a failure."""
    if isinstance(reply, (Done, Failed)):
        return reply
    return failed(f"an action answers with Done or Failed, this one with {type(reply).__name__}: {reply!r:.200}")

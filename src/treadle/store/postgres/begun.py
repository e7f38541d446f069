"""A coroutine that begins at once, not in the next turn of the loop.

Owns its first step. `asyncio.create_task` puts a new task behind everything that is ready; a commit would be sent when
all the tasks have run that the commit before it has woken, and the server would have nothing to do meanwhile. Here the
first step, to the first wait, is taken by the caller. Promises what a task promises: a result or an exception, and that
who cancels it is heard where it waits. (Python 3.12 can do so itself.)
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # documented, for those who write tasks
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def begun(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """A task that has taken its first step."""
    loop = asyncio.get_running_loop()
    stepped = _Stepped(work)
    task = loop.create_task(stepped)
    around = asyncio.current_task(loop)
    if around is not None:
        _leave_task(loop, around)
    _enter_task(loop, task)  # a timeout in its first step is about the task, not about who calls
    try:
        stepped.begin()
    finally:
        _leave_task(loop, task)
        if around is not None:
            _enter_task(loop, around)
    return task


class _Stepped(Coroutine[Any, Any, T]):
    """What its task sees: the first step gives what was waited for then."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._waits_for: Any = None
        self._end: BaseException | None = None
        """Of work that has waited for nothing: a StopIteration with its result, or what went wrong."""

    def begin(self) -> None:
        try:
            self._waits_for = self._work.send(None)
        except BaseException as end:
            self._end = end

    def send(self, value: Any) -> Any:
        if self._end is not None:
            raise self._end
        if self._waits_for is None:
            return self._work.send(value)
        waits_for, self._waits_for = self._waits_for, None
        return waits_for

    def throw(self, problem: Any, *_old_form: Any) -> Any:
        self._waits_for = None
        if self._end is not None:
            raise problem
        return self._work.throw(problem)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, T]:
        raise TypeError("only a task can go on with it")

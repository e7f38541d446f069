"""A coroutine that begins at once, not in the next turn of the loop.

`asyncio.create_task` puts a new task behind everything that is ready. A commit would be sent only after all tasks that
the commit before it has woken, and the server would be idle meanwhile. Here the caller runs the first step, up to the
first wait. Promises what a task promises: a result or an exception, and that a cancellation is raised where it waits.
(Python 3.12 can do this itself.)
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
    _enter_task(loop, task)  # a timeout in its first step concerns the new task, not the caller
    try:
        stepped.begin()
    finally:
        _leave_task(loop, task)
        if around is not None:
            _enter_task(loop, around)
    return task


class _Stepped(Coroutine[Any, Any, T]):
    """The coroutine as its task sees it: the first step yields what the caller's step was waiting for."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self._work = work
        self._waits_for: Any = None
        self._end: BaseException | None = None
        """The end of a coroutine that did not wait: StopIteration with its result, or its exception."""

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

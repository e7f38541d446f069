"""Blocking work in threads.

Owns a bounded pool of daemon threads. Waiting work stays on the event loop, so that it can be withdrawn and its timeout
has not begun. Known limit: a thread cannot be killed. Cancelled work ends for its attempt at once and its result is
dropped, but it keeps its thread until it returns; `actions/current.py` says how such work can notice.

Not `concurrent.futures`: its threads are joined when the interpreter exits, and one that hangs would keep a closed
engine's process alive for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from threading import Thread
from typing import Any

from treadle.actions.current import CURRENT, CurrentAttempt
from treadle.actions.failure import error_of
from treadle.actions.protocol import Done, Failed
from treadle.runtime.execute.slots import Line
from treadle.runtime.execute.stoppable import ABANDONED, Begun, Ended, Stoppable, checked


class Threads:
    """See the module's docstring. Threads are started when they are first needed, and stay."""

    def __init__(self, loop: asyncio.AbstractEventLoop, threads_max: int, name: str) -> None:
        self._loop = loop
        self._name = name
        self._line: Line[_Job] = Line(threads_max)
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._started = 0

    @property
    def busy(self) -> int:
        """Busy threads, including those whose result is no longer wanted."""
        return self._line.held

    def begin(self, work: Callable[[], Any], current: CurrentAttempt, begun: Begun | None, ended: Ended) -> Stoppable:
        """Begins when a thread is free, in the context of the caller."""
        job = _Job(self, work, current, begun, ended)
        if self._line.enter(job):
            self._hand_out(job)
        return job

    def close(self) -> None:
        """Ends the idle threads. Busy ones end when they return, or with the process."""
        for _ in range(self._started):
            self._jobs.put(None)

    def withdraw(self, job: _Job) -> None:
        """Takes a job out of the line before it has begun."""
        self._line.withdraw(job)

    def _hand_out(self, job: _Job) -> None:
        if self._started < self._line.held:
            self._started += 1
            Thread(target=self._serve, name=f"{self._name}-{self._started}", daemon=True).start()
        if job.begun is not None:
            job.begun()
        self._jobs.put(job)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            answer = job.perform()
            try:
                self._loop.call_soon_threadsafe(self._returned, job, answer)
            except RuntimeError:  # the loop is closed: nobody is left to tell
                return
            del job, answer  # an idle thread must not keep the last result alive

    def _returned(self, job: _Job, answer: Done | Failed) -> None:
        self._line.leave()
        for next_job in self._line.turns():
            self._hand_out(next_job)
        job.end(answer)


class _Job:
    __slots__ = ("_context", "_current", "_ended", "_pool", "_work", "begun")

    def __init__(
        self, pool: Threads, work: Callable[[], Any], current: CurrentAttempt, begun: Begun | None, ended: Ended
    ) -> None:
        self._pool = pool
        self._work = work
        self._current = current
        self._context: Context = copy_context()
        self._ended: Ended | None = ended
        self.begun = begun

    def perform(self) -> Done | Failed:
        """Runs in the thread. Every exception becomes an answer."""
        try:
            self._context.run(CURRENT.set, self._current)
            return checked(self._context.run(self._work))
        except BaseException as problem:
            return Failed(error_of(problem))

    def cancel(self) -> None:
        self._current.cancelled.set()
        self._pool.withdraw(self)
        self.end(ABANDONED)

    def end(self, answer: Done | Failed) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(self, answer)

"""The two threads that speak to SQLite, and how the event loop hands them work.

Owns the hand-off: a job is a function of a connection and the future somebody awaits. Promises that a job runs once,
that its outcome reaches its future on its own loop, and that a thread without jobs sleeps without a timeout: an idle
store wakes nobody. Must not know what a job does.

    loop ── put ──► SimpleQueue ──► writer: BEGIN IMMEDIATE, job, job, job, COMMIT ── call_soon_threadsafe ──► loop
                                       each after the first that shares a transaction inside a savepoint

A hand-off there and back costs 35 to 90 µs beside a sync of 150 to 400 µs; a step's packing 6 µs and its statements
30 µs (`bench/bench_store.py`). Packing happens on the caller's side: here it would fight the loop for the interpreter,
which SQLite lets go of while it works.

Invariants
    1. A write job's effects are durable before its future has a result.
    2. A job that raises has written nothing, and the jobs that share its transaction are not touched by it.
    3. If COMMIT raises, every job of that transaction learns that the outcome is unknown. Nothing is tried again here.
    4. After a failed sync or a damaged page the connection is not used again (`faults.is_final`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import apsw

from treadle.errors import StoreUnavailable
from treadle.store.sqlite.faults import is_final, unavailable

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


class Misfit(Exception):
    """A job found that the file is not as it expected. What exactly is asked once its writes are undone."""

    def __init__(self, explain: Callable[[apsw.Connection], Exception]) -> None:
        super().__init__("does not fit")
        self.explain = explain


SHARED_MAX = 256
"""Jobs in one transaction. An engine's batch is one job; many come only from a crowd of requests."""


class Job(Generic[T]):
    """Something to do on a connection, and who waits for it."""

    __slots__ = ("_failure", "_future", "_loop", "_result", "work")

    def __init__(self, work: Work[T]) -> None:
        self.work = work
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()
        self._result: T | None = None
        self._failure: BaseException | None = None

    def succeeded(self, result: T) -> None:
        self._result = result

    def failed(self, failure: BaseException) -> None:
        self._failure = failure

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def tell(self) -> None:
        """From the thread: the outcome is final."""
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:
            return  # the loop is closed, nobody waits any more

    def _settle(self) -> None:
        if self._future.done():
            return  # whoever waited was cancelled
        if self._failure is not None:
            self._future.set_exception(self._failure)
        else:
            self._future.set_result(self._result)  # type: ignore[arg-type]

    async def outcome(self) -> T:
        return await self._future


class Reader:
    """One connection, one thread, job after job."""

    def __init__(self, connection: apsw.Connection, path: str, name: str) -> None:
        self._connection = connection
        self._path = path
        self._queue: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    async def do(self, work: Work[T]) -> T:
        """The result of `work`, which runs on the thread."""
        if self._closed:
            raise StoreUnavailable(f"{self._path}: the store is closed")
        job = Job(work)
        self._queue.put(job)
        return await job.outcome()

    async def close(self) -> None:
        """Does what has been asked, then closes the connection."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    def _loop(self) -> None:
        last = False
        while not last:
            jobs, last = self._take()
            if jobs:
                self._run(jobs)
        with suppress(apsw.Error):  # no room to tidy up: the log keeps what was committed, the next opening finds it
            self._connection.close()

    def _take(self) -> tuple[list[Job[Any]], bool]:
        """Everything that waits, at least one; and whether it was the last."""
        jobs: list[Job[Any]] = []
        while True:
            job = self._queue.get()
            if job is None:
                return jobs, True
            jobs.append(job)
            if len(jobs) == SHARED_MAX or self._queue.empty():
                return jobs, False

    def _run(self, jobs: list[Job[Any]]) -> None:
        for job in jobs:
            try:
                job.succeeded(job.work(self._connection))
            except BaseException as problem:
                job.failed(self._translated(problem))
            job.tell()

    def _translated(self, problem: BaseException, outcome_unknown: bool = False) -> BaseException:
        if isinstance(problem, apsw.Error):
            return unavailable(problem, self._path, outcome_unknown=outcome_unknown)
        return problem


class Writer(Reader):
    """The only connection of this process that writes: whatever waits shares one transaction."""

    def __init__(self, connection: apsw.Connection, path: str, name: str) -> None:
        self._broken: StoreUnavailable | None = None
        super().__init__(connection, path, name)

    def _run(self, jobs: list[Job[Any]]) -> None:
        if self._broken is not None:
            self._fail(jobs, self._broken)
        else:
            self._transact(jobs)
        for job in jobs:
            job.tell()

    def _transact(self, jobs: list[Job[Any]]) -> None:
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._attempt(job, alone=len(jobs) == 1)
        except apsw.Error as problem:
            # The transaction is gone or has to go: nothing of any job has happened.
            self._roll_back(problem)
            self._fail(jobs, self._translated(problem))
            return
        if not self._connection.in_transaction:
            return  # a single job that failed
        try:
            execute("COMMIT")
        except apsw.Error as problem:
            self._roll_back(problem)
            self._fail(jobs, self._translated(problem, outcome_unknown=True))

    def _attempt(self, job: Job[Any], alone: bool) -> None:
        """One job. What is wrong with the job stays with it, what is wrong with the file is raised."""
        execute = self._connection.execute
        if not alone:
            execute("SAVEPOINT job")
        try:
            job.succeeded(job.work(self._connection))
        except BaseException as problem:
            if isinstance(problem, apsw.Error) and self._translated(problem) is not problem:
                raise
            execute("ROLLBACK" if alone else "ROLLBACK TO job")
            job.failed(problem.explain(self._connection) if isinstance(problem, Misfit) else problem)
        if not alone:
            execute("RELEASE job")

    def _roll_back(self, problem: apsw.Error | None = None) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error as worse:
            problem = problem or worse
        if problem is not None and is_final(problem):
            text = f"{self._path}: not used again after: {problem}; restart the engine"
            self._broken = StoreUnavailable(text, final=True)

    @staticmethod
    def _fail(jobs: list[Job[Any]], failure: BaseException) -> None:
        for job in jobs:
            if not job.has_failed:
                job.failed(failure)

"""The two threads that use SQLite, and the hand-off of work from the event loop.

Owns the hand-off: a job is a function of a connection, and a future for its result. Promises that a job runs once, that
its outcome reaches its future on its own loop, and that a thread without jobs sleeps without a timeout: an idle store
uses no CPU. Must not know what a job does.

    loop ── put ──► SimpleQueue ──► writer: BEGIN IMMEDIATE, job, job, job, COMMIT ── call_soon_threadsafe ──► loop
                                       each after the first that shares a transaction inside a savepoint

A step's packing costs 6 µs and its statements 30 µs (`bench/bench_store.py`). Packing happens on the caller's side: on
the thread it would fight the loop for the interpreter, which SQLite lets go of while it works.

Brief work of a lone caller skips the hand-off (`Writer.at_once`, decision 0009): two threads that sleep in turns cost a
chain 100 to 200 µs a step beside a sync of 250, more than everything else it does. The loop then waits for the sync
itself, so it is done only while no other job waits for the writer and the disk has been quick recently.

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
from time import perf_counter
from typing import Any, Generic, TypeVar

import apsw

from treadle.errors import StoreUnavailable
from treadle.store.sqlite.faults import damaged_text, is_final, unavailable

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]


class JobMisfit(Exception):
    """A job found that the file is not as it expected. `explain` finds the reason once its writes are undone."""

    def __init__(self, explain: Callable[[apsw.Connection], Exception]) -> None:
        super().__init__("does not fit")
        self.explain = explain


SHARED_MAX = 256
"""Jobs in one transaction. An engine's batch is one job; many come only from a crowd of requests."""
QUICK_S = 0.002
"""If recent commits took longer, the event loop does not wait for the disk: other tasks on the loop must not notice.
Longer than a sync of an SSD (0.1 to 0.5 ms), shorter than a timer or a socket would notice."""
RECENT = 8
"""Number of recent commits in the moving average of their duration."""
WAL_PAGES = 1_000
"""Pages of the log from which a checkpoint carries it over into the file. Not within a commit, as SQLite would do it by
itself: so no commit waits for it."""


class Job(Generic[T]):
    """A function to run on a connection, and the future for its result."""

    __slots__ = ("_failure", "_loop", "_result", "future", "work")

    def __init__(self, work: Work[T], loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self._loop = loop
        self.future: asyncio.Future[T] = loop.create_future()
        self._result: T | None = None
        self._failure: BaseException | None = None

    def succeeded(self, result: T) -> None:
        self._result = result

    def failed(self, failure: BaseException) -> None:
        self._failure = failure

    @property
    def has_failed(self) -> bool:
        return self._failure is not None

    def tell(self, told: Callable[[], None]) -> None:
        """Called by the thread when the outcome is final. `told` is called on the loop."""
        try:
            self._loop.call_soon_threadsafe(self._settle_and, told)
        except RuntimeError:
            return  # the loop is closed: nothing waits any more

    def _settle_and(self, told: Callable[[], None]) -> None:
        told()
        self.settle()

    def settle(self) -> None:
        """On the loop: sets the future."""
        if self.future.done():
            return  # the waiting task was cancelled
        if self._failure is not None:
            self.future.set_exception(self._failure)
        else:
            self.future.set_result(self._result)  # type: ignore[arg-type]


class Reader:
    """One connection, one thread, job after job."""

    def __init__(self, connection: apsw.Connection, path: str, name: str, callers: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._path = path
        self._callers = callers
        self._queue: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._pending = 0
        """Jobs whose outcome has not reached the loop. Counted on the loop alone: at 0 the thread sleeps."""
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Work[T]) -> asyncio.Future[T]:
        """The result of `work`, which runs on the thread."""
        self._check_open()
        job = Job(work, self._callers)
        self._pending += 1
        self._queue.put(job)
        return job.future

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self._path}: the store is closed")

    def _told(self) -> None:
        """On the loop: the thread is done with a job."""
        self._pending -= 1

    async def close(self) -> None:
        """Finishes all jobs, then closes the connection."""
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
        with suppress(
            apsw.Error
        ):  # no room for a checkpoint: the log keeps the commits, and the next opening replays it
            self._connection.close()

    def _take(self) -> tuple[list[Job[Any]], bool]:
        """All jobs that wait, at least one; and whether the thread must end after them."""
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
            job.tell(self._told)

    def _translated(self, problem: BaseException, outcome_unknown: bool = False) -> BaseException:
        if isinstance(problem, apsw.Error):
            return unavailable(problem, self._path, outcome_unknown=outcome_unknown)
        return damaged_text(problem, self._path) if isinstance(problem, UnicodeDecodeError) else problem


class Writer(Reader):
    """The only connection of this process that writes: all jobs that wait share one transaction."""

    def __init__(self, connection: apsw.Connection, path: str, name: str, callers: asyncio.AbstractEventLoop) -> None:
        self._broken: StoreUnavailable | None = None
        self._pace_s = 0.0
        """Moving average of the duration of recent transactions."""
        self._log_pages = 0
        connection.set_wal_hook(self._grown)  # SQLite's own checkpoints are off: they run within a commit
        super().__init__(connection, path, name, callers)

    def at_once(self, work: Work[T]) -> asyncio.Future[T]:
        """Like `do`, for brief work: on the calling thread if that is quick; then the returned future is done."""
        self._check_open()
        if self._pending or self._pace_s > QUICK_S:
            return self.do(work)
        job = Job(work, self._callers)
        self._transact_or_fail([job])
        job.settle()
        self._carry_over()
        return job.future

    def _told(self) -> None:
        super()._told()
        self._carry_over()

    def _grown(self, _connection: apsw.Connection, _schema: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _carry_over(self) -> None:
        """Queues a checkpoint when the log is long enough. No job waits for it."""
        if self._log_pages >= WAL_PAGES and not self._closed:
            self._log_pages = 0
            self.do(carry_over)

    def _run(self, jobs: list[Job[Any]]) -> None:
        writing = [job for job in jobs if job.work is not carry_over]
        if writing:
            self._transact_or_fail(writing)
        for job in writing:
            job.tell(self._told)
        for job in jobs:
            if job.work is carry_over:
                self._carry(job)

    def _carry(self, job: Job[Any]) -> None:
        """Runs a checkpoint. A failure belongs to no job and is retried, unless the disk cannot be trusted any more.
        Not at once, which would keep both threads busy while the disk is full, but after the next transaction."""
        if self._broken is None:
            try:
                job.work(self._connection)
            except apsw.Error as problem:
                self._roll_back(problem)
        job.tell(super()._told)

    def _transact_or_fail(self, jobs: list[Job[Any]]) -> None:
        if self._broken is not None:
            self._fail(jobs, self._broken)
            return
        began = perf_counter()
        self._transact(jobs)
        self._pace_s += (perf_counter() - began - self._pace_s) / RECENT

    def _transact(self, jobs: list[Job[Any]]) -> None:
        execute = self._connection.execute
        try:
            execute("BEGIN IMMEDIATE")
            for job in jobs:
                self._attempt(job, alone=len(jobs) == 1)
        except apsw.Error as problem:
            # The transaction is undone, or must be: no job has had an effect.
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
        """Runs one job. An error of the job goes to its future, an error of the file is raised."""
        execute = self._connection.execute
        if not alone:
            execute("SAVEPOINT job")
        try:
            job.succeeded(job.work(self._connection))
        except BaseException as problem:
            if isinstance(problem, apsw.Error) and self._translated(problem) is not problem:
                raise
            execute("ROLLBACK" if alone else "ROLLBACK TO job")
            job.failed(problem.explain(self._connection) if isinstance(problem, JobMisfit) else problem)
        if not alone:
            execute("RELEASE job")

    def _roll_back(self, problem: apsw.Error | None = None) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error as worse:
            problem = problem or worse
        if isinstance(problem, apsw.FullError):
            self._log_pages = WAL_PAGES  # after a checkpoint the log begins anew, which needs less room than growing it
        if problem is not None and is_final(problem):
            text = f"{self._path}: not used again after: {problem}; restart the engine"
            self._broken = StoreUnavailable(text, final=True)

    @staticmethod
    def _fail(jobs: list[Job[Any]], failure: BaseException) -> None:
        for job in jobs:
            if not job.has_failed:
                job.failed(failure)


def carry_over(connection: apsw.Connection) -> None:
    """A checkpoint: copies the log's pages into the file, except those that a reader may still need."""
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)

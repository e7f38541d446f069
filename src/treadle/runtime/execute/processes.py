"""Work in processes, each of which can be killed alone.

    event loop                  thread, one per worker          worker process
    begin ──► Line ──► Worker ─── job ───► pickle, send ───────► process_worker.serve
    ended ◄──────────────────── answer ◄── wait for pipe or death ◄─┘
    cancel ─── SIGTERM, SIGKILL ──────────────────────────────────► dead: noticed, and replaced

Owns the worker processes. Promises:
 1. The process of cancelled work is dead when `ended` is called. SIGTERM first, SIGKILL `TERM_S` later.
 2. A process that dies under its work is noticed at once: a retryable WORKER_LOST that says how it died.
 3. Nothing blocks the event loop: the worker's thread starts, pickles, sends and waits.
 4. Workers are never forked from this process: they must not inherit the lock of the store, nor its threads.

Not `concurrent.futures`: it cannot kill one process, and a worker's death breaks the whole pool.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from treadle.actions.current import CurrentAttempt
from treadle.actions.protocol import Done, Failed, failed
from treadle.runtime.execute.process_ends import lost, stillborn
from treadle.runtime.execute.process_worker import READY, TAKEN, serve
from treadle.runtime.execute.slots import Line
from treadle.runtime.execute.stoppable import ABANDONED, Begun, Ended, Stoppable, checked

TERM_S = 0.5
"""Seconds between SIGTERM and SIGKILL: enough to remove a temporary file, too short to notice when a run is
cancelled."""
TAKERS = 3
"""Processes a job is offered to if each is found dead. More in a row are no accident."""
CLOSE_S = 5.0
"""Seconds that `close` waits for killed processes. Only a stuck operating system takes longer."""

_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_BIRTHS = Lock()
"""`Process.start` and `join` reap each other's children; only one thread at a time may."""


class Processes:
    """See the module's docstring. Workers are started when they are first needed, and stay."""

    def __init__(self, loop: asyncio.AbstractEventLoop, processes_max: int, name: str) -> None:
        self._loop = loop
        self._name = name
        self._line: Line[_Job] = Line(processes_max)
        self._idle: list[_Worker] = []
        self._workers: set[_Worker] = set()
        self._leaving: set[asyncio.Future[None]] = set()
        self._hired = 0

    def begin(self, work: Callable[[], Any], current: CurrentAttempt, begun: Begun | None, ended: Ended) -> Stoppable:
        """Begins when a worker is free."""
        job = _Job(self, work, current, begun, ended)
        if self._line.enter(job):
            self._hand_out(job)
        return job

    def returned(self, worker: _Worker, job: _Job, answer: Done | Failed) -> None:
        """Called on the loop when a worker's thread has an answer."""
        if worker.doomed or worker.spent:
            self._retire(worker)
        else:
            self._idle.append(worker)
        self._line.leave()
        for next_job in self._line.turns():
            self._hand_out(next_job)
        job.worker = None
        job.end(answer)

    def withdraw(self, job: _Job) -> None:
        """Takes a job out of the line before it has begun."""
        self._line.withdraw(job)

    def renew(self) -> None:
        """Starts new processes for later jobs; jobs in hand end in their old process."""
        for worker in self._workers:
            worker.spent = True
        while self._idle:
            self._retire(self._idle.pop())

    async def close(self) -> None:
        """Kills every worker and waits until all are gone."""
        for worker in tuple(self._workers):
            self._retire(worker)
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=CLOSE_S)

    def _retire(self, worker: _Worker) -> None:
        if worker in self._workers:
            self._workers.remove(worker)
            gone = worker.close()
            self._leaving.add(gone)
            gone.add_done_callback(self._leaving.discard)

    def _hand_out(self, job: _Job) -> None:
        if self._idle:
            worker = self._idle.pop()
        else:
            self._hired += 1
            worker = _Worker(self._loop, self, f"{self._name}-{self._hired}")
            self._workers.add(worker)
        job.worker = worker
        if job.begun is not None:
            job.begun()
        worker.take(job)


class _Job:
    __slots__ = ("_ended", "_pool", "begun", "facts", "work", "worker")

    def __init__(
        self, pool: Processes, work: Callable[[], Any], current: CurrentAttempt, begun: Begun | None, ended: Ended
    ) -> None:
        self._pool = pool
        self._ended: Ended | None = ended
        self.work = work
        self.facts = current.facts.portable()
        self.begun = begun
        self.worker: _Worker | None = None

    def cancel(self) -> None:
        if self.worker is not None:
            self.worker.kill()
        else:
            self._pool.withdraw(self)
            self.end(ABANDONED)

    def end(self, answer: Done | Failed) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended(self, answer)


class _Worker:
    """A process and the thread that talks to it. A process that dies idle is replaced. A worker whose process was to be
    killed is retired with it, so that a signal meant for one job cannot hit the next."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: Processes, name: str) -> None:
        self._loop = loop
        self._pool = pool
        self._name = name
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = Lock()  # guards the next two: the thread starts the process, the loop kills it
        self._process: BaseProcess | None = None
        self.doomed = False
        self.spent = False
        """It takes no further job."""
        self._pipe: Connection | None = None
        self._last_shot: asyncio.TimerHandle | None = None
        self._gone: asyncio.Future[None] = loop.create_future()
        Thread(target=self._serve, name=name, daemon=True).start()

    # On the event loop.

    def take(self, job: _Job) -> None:
        self._jobs.put(job)

    def kill(self) -> None:
        """Kills the process, even one that is only being started: SIGTERM, then SIGKILL."""
        self._signal(BaseProcess.terminate)
        if self._last_shot is None:
            self._last_shot = self._loop.call_later(TERM_S, self._signal, BaseProcess.kill)

    def close(self) -> asyncio.Future[None]:
        """Kills the process at once. The future is done when process and thread are gone."""
        if self._last_shot is not None:
            self._last_shot.cancel()
        self._signal(BaseProcess.kill)
        self._jobs.put(None)
        return self._gone

    def _signal(self, send: Callable[[BaseProcess], None]) -> None:
        with self._lock:
            self.doomed = True
            if self._process is not None:
                send(self._process)

    # In the thread.

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            answer = self._performed(job)
            if not self._tell(self._pool.returned, self, job, answer):
                break
            del job, answer  # an idle thread must not keep the last result alive
        self._bury()
        self._tell(self._gone.set_result, None)

    def _tell(self, what: Callable[..., object], *args: Any) -> bool:
        try:
            self._loop.call_soon_threadsafe(what, *args)
        except RuntimeError:  # the loop is closed: nobody is left to tell
            return False
        return True

    def _performed(self, job: _Job) -> Done | Failed:
        try:
            packed = pickle.dumps((job.work, job.facts))
        except BaseException as problem:  # pickling may run code of the input's class
            return failed(
                f"the work cannot be sent to a process: {problem}. A function with `process: true` must be defined at "
                "the top level of a module, and its input must be data."
            )
        for _ in range(TAKERS):
            pipe = self._ready_pipe()
            if pipe is None:
                return stillborn(self._bury())
            if self._is_taken(pipe, packed):
                answer = self._received(pipe)
                return lost(self._bury()) if answer is None else _unpacked(answer)
            code = self._bury()
            if self.doomed:
                break
        return lost(code)

    def _is_taken(self, pipe: Connection, packed: bytes) -> bool:
        """False if the process died, perhaps while it was idle, before it took the job: the job has not begun, and
        another process may do it. The pipe to a dead process may look well for a moment."""
        try:
            pipe.send_bytes(packed)
        except OSError:
            return False
        return self._received(pipe) == TAKEN

    def _ready_pipe(self) -> Connection | None:
        """The pipe to a living process, started if need be; None if a new one died before it was ready."""
        if self._process is not None and self._pipe is not None and not wait([self._process.sentinel], 0):
            return self._pipe
        self._bury()
        self._pipe, theirs = _context().Pipe()
        process = _context().Process(target=serve, args=(theirs,), name=self._name, daemon=True)
        with theirs, _BIRTHS:
            process.start()
        with self._lock:
            self._process = process
            if self.doomed:
                process.kill()
        return self._pipe if self._received(self._pipe) == READY else None

    def _received(self, pipe: Connection) -> bytes | None:
        """The next message, or None if the process dies first."""
        assert self._process is not None
        wait([pipe, self._process.sentinel])
        try:
            return pipe.recv_bytes() if pipe.poll() else None  # it may have answered before it died
        except (EOFError, OSError):
            return None

    def _bury(self) -> int | None:
        """Ends the process if there is one; returns its exit code."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return None
        with _BIRTHS:
            process.kill()
            process.join(CLOSE_S)
            return process.exitcode


def _unpacked(answer: bytes) -> Done | Failed:
    try:
        return checked(pickle.loads(answer))
    except Exception as problem:
        return failed(f"the answer of a worker process cannot be read: {type(problem).__name__}: {problem}")


def _context() -> Any:
    """The start method, never `fork`. The fork server imports the worker's modules once for all workers."""
    context = multiprocessing.get_context(_METHOD)
    context.set_forkserver_preload(["treadle.runtime.execute.process_worker"])
    return context

"""The main loop of a worker process: the other end of `processes`.

Promises an answer for every job that does not end the process, and to die with its parent: the parent's attempts are
recovered and run again elsewhere, so a surviving worker would run them twice. Known limit: C code that never releases
the interpreter lock delays this until it returns. Must stay cheap to import: every new worker process pays for it.
"""

from __future__ import annotations

import os
import pickle
import signal
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from threading import Thread

from treadle.actions.current import CURRENT, CurrentAttempt
from treadle.actions.failure import error_of
from treadle.actions.protocol import Done, Failed, failed

READY = b"ready"
TAKEN = b"taken"
"""Sent when a job has arrived and is about to begin: a process that dies before has done nothing of it."""


def serve(jobs: Connection) -> None:
    """Takes jobs and sends answers until the other side is closed."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches every process of the terminal; the engine decides which stop
    Thread(target=_die_with_parent, daemon=True).start()
    jobs.send_bytes(READY)
    while True:
        try:
            job = jobs.recv_bytes()
        except EOFError:
            return
        jobs.send_bytes(TAKEN)
        jobs.send_bytes(_packed(_performed(job)))


def _performed(job: bytes) -> Done | Failed:
    try:
        work, facts = pickle.loads(job)
    except BaseException as problem:  # unpickling imports and runs the author's module
        return failed(
            f"the work cannot be found again in a worker process: {type(problem).__name__}: {problem}. "
            "A function with `process: true` must be defined in a module that can be imported."
        )
    CURRENT.set(CurrentAttempt(facts))
    try:
        answer: Done | Failed = work()
    except BaseException as problem:  # Ctrl-C does not come here: see `serve`
        return Failed(error_of(problem))
    return answer


def _packed(answer: Done | Failed) -> bytes:
    try:
        return pickle.dumps(answer)
    except BaseException as problem:
        text = f"the result cannot be sent back from its process: {type(problem).__name__}: {problem}"
        return pickle.dumps(failed(text))


def _die_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

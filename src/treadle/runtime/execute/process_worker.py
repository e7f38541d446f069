"""The far side of `processes`: what a worker process does all its life.

Promises an answer for every job that does not end the process, and to die with its parent: the parent's attempts are
recovered and run again elsewhere, so a survivor would be a twin. Known limit: C code that never lets go of the
interpreter lock delays that until it does. Must stay cheap to import: every new worker process pays for it.
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
"""A job has arrived and is about to begin: a process that dies before it says so has done nothing of it."""


def serve(jobs: Connection) -> None:
    """Jobs in, answers out, until the other side is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the engine decides who stops
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
    except BaseException as problem:  # importing runs somebody's module
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

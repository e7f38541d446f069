"""What the tortured workflows do: small functions that leave a line in the work journal each time they are executed.

Owns the journal of this process's executions. An execution is written down before its result can be reported, so the
journal has every execution whose result counts.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from pathlib import Path
from typing import Any

from tests.torture.journal import Journal
from treadle.actions.failure import Retryable, TaskFailure
from treadle.actions.protocol import AttemptFacts
from treadle.model.ids import attempt_name
from treadle.tasks.decorator import task

Json = Any

ENGINE = f"{os.getpid()}"
_journal: Journal | None = None
_executions = itertools.count(1)


def begin(path: str | Path, engine: str) -> None:
    """From now on executions are written down, in this engine's name."""
    global _journal, ENGINE
    _journal = Journal(path)
    ENGINE = engine


def _note(facts: AttemptFacts, what: str) -> str:
    """The name of this execution: what it gives says so, and so does the journal."""
    by = f"{ENGINE}/{next(_executions)}"
    if _journal is not None:
        key = attempt_name(facts.run, facts.token, facts.attempt)
        _journal.say(key=key, run=facts.run, node=facts.node, engine=ENGINE, what=what, by=by)
    return by


@task
async def add(facts: AttemptFacts, n: int, by: int, ms: int = 0) -> Json:
    """n + by, after a while."""
    execution = _note(facts, "add")
    if ms:
        await asyncio.sleep(ms / 1000)
    return {"n": n + by, "by": execution}


@task
async def occupy(facts: AttemptFacts, ms: int = 0) -> Json:
    """Takes that long, and writes down when it began and when it ended."""
    execution = _note(facts, "begin")
    await asyncio.sleep(ms / 1000)
    if _journal is not None:
        _journal.say(run=facts.run, engine=ENGINE, what="end", by=execution)
    return {"by": execution}


@task
def square(facts: AttemptFacts, n: int) -> Json:
    """In a thread, as blocking work is."""
    execution = _note(facts, "square")
    threading.Event().wait(n % 7 / 1000)  # not `time.sleep`, which libfaketime breaks
    return {"n": n * n, "by": execution}


@task
async def tally(facts: AttemptFacts, sum: int, count: int, last: int) -> Json:
    execution = _note(facts, "tally")
    return {"sum": sum + last, "count": count + 1, "by": execution}


@task
async def flaky(facts: AttemptFacts, n: int) -> Json:
    """Every visit needs three attempts."""
    execution = _note(facts, "flaky")
    if facts.attempt < 3:
        raise Retryable(f"attempt {facts.attempt}")
    return {"n": n + facts.attempt, "by": execution}


@task
async def book(facts: AttemptFacts, what: str, fail: bool = False) -> Json:
    """A step of the saga; the last one fails when told to."""
    execution = _note(facts, f"book {what}")
    if fail:
        raise TaskFailure(f"no {what}", kind="REFUSED")
    return {"booked": what, "by": execution}


@task
async def undo(facts: AttemptFacts, what: str) -> Json:
    execution = _note(facts, f"undo {what}")
    return {"undone": what, "by": execution}

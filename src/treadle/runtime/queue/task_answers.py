"""The history of one claim: what it was begun with, and whether an answer is the one that was accepted.

Reads events only; decides nothing. Used when an answer was refused: a worker that did not hear its first answer sends
it again, and is told that it was accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.expression.values import json_equal
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.runtime.execute.task import TaskOutcome
from treadle.runtime.queue.task_id import TaskId

Json = Any


def was_accepted(events: Sequence[e.Event], id: TaskId, outcome: TaskOutcome) -> bool:
    """Whether this outcome of this claim is what the run has recorded. `events`: those behind `id.seq`."""
    is_mine = False
    for event in events:
        if getattr(event, "token", None) != id.token:
            continue
        if isinstance(event, e.TokenStarted):
            is_mine = (event.worker, event.attempt) == (id.holder, id.attempt)
        elif is_mine and (verdict := _same(event, outcome)) is not None:
            return verdict
    return False


def _same(event: e.Event, outcome: TaskOutcome) -> bool | None:
    """Whether an event records this outcome; None: it records no outcome at all."""
    if isinstance(event, e.TokenCompleted):
        return outcome.error is None and json_equal(event.output, outcome.output)
    if isinstance(event, e.TokenWaiting):  # it waits for its siblings; its output is not stored twice
        return outcome.error is None and json_equal(event.output, outcome.output)
    if isinstance(event, e.CallbackReceived):  # the run was paused
        if event.error is not None or outcome.error is not None:
            return _alike(event.error, outcome.error)
        return json_equal(event.output, outcome.output)
    if isinstance(event, e.TokenFailed | e.TokenRetryScheduled):
        return _alike(event.error, outcome.error)
    if isinstance(event, e.TokenTimedOut | e.TokenCancelled | e.TokenDispatched):
        return False
    return None


def _alike(kept: Error | None, given: Error | None) -> bool:
    if kept is None or given is None:
        return False
    return (kept.kind, kept.message) == (given.kind, given.message)


def input_of(events: Sequence[e.Event], id: TaskId) -> Json:
    """The input with which the attempt was dispatched."""
    found: Json = None
    for event in events:
        if isinstance(event, e.TokenDispatched) and (event.token, event.attempt) == (id.token, id.attempt):
            found = event.input
    return found

"""The states of a token, a run, a gate and an external task, and why a token waits. Stored strings: never renamed."""

from __future__ import annotations

from enum import StrEnum


class TokenState(StrEnum):
    """The state of a visit (2.9)."""

    CREATED = "created"
    PENDING = "pending"
    DISPATCHED = "dispatched"
    EXECUTING = "executing"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


class Waiting(StrEnum):
    """The reason for which a token waits (2.7)."""

    SIBLINGS = "siblings"
    TIMER = "timer"
    HUMAN = "human"
    SIGNAL = "signal"
    SUBWORKFLOW = "subworkflow"
    EXTERNAL = "external"
    QUEUE = "queue"
    TRIGGER = "trigger"
    MUTEX = "mutex"


class RunStatus(StrEnum):
    """The status of a run (2.9)."""

    CREATED = "created"
    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"
    COMPENSATION_FAILED = "compensation_failed"


RUN_ENDED = frozenset(
    {
        RunStatus.COMPLETED,
        RunStatus.FAILED,
        RunStatus.CANCELLED,
        RunStatus.TIMED_OUT,
        RunStatus.COMPENSATED,
        RunStatus.COMPENSATION_FAILED,
    }
)
RUN_OPEN = tuple(status for status in RunStatus if status not in RUN_ENDED)
"""The statuses of runs that may still do something by themselves."""


class GateState(StrEnum):
    """The state of a human task."""

    OPEN = "open"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CLOSED = "closed"


class ExternalState(StrEnum):
    """The state of work handed to a webhook worker or offered on a queue."""

    OFFERED = "offered"
    CLAIMED = "claimed"
    ANSWERED = "answered"
    CLOSED = "closed"


class Mode(StrEnum):
    """Whether a token moves the run forward or undoes a visit."""

    FORWARD = "forward"
    COMPENSATION = "compensation"

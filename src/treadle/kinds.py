"""Names for authors of functions and of kinds of action: failing on purpose, the current attempt, the protocol."""

from treadle.actions.current import CurrentAttempt, current_attempt, spend
from treadle.actions.failure import Retryable, TaskFailure
from treadle.actions.protocol import ActionKind, AttemptFacts, Call, Done, Failed, Later, Reply, Work, failed
from treadle.actions.registry import Registry

__all__ = [
    "ActionKind",
    "AttemptFacts",
    "Call",
    "CurrentAttempt",
    "Done",
    "Failed",
    "Later",
    "Registry",
    "Reply",
    "Retryable",
    "TaskFailure",
    "Work",
    "current_attempt",
    "failed",
    "spend",
]

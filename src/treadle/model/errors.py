"""What went wrong, as data: the error a token or run fails with, and the refusal a command gets. Kinds are closed
(2.14)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

KINDS = frozenset(
    [
        "NO_MATCHING_TRANSITION",
        "INVALID_TRANSITION",
        "INVALID_COLLECTION",
        "INVALID_SPAWN_COUNT",
        "SYNC_TIMEOUT",
        "QUORUM_UNREACHABLE",
        "MIN_SUCCESS_NOT_MET",
        "NO_SUCCESSFUL_BRANCH",
        "BRANCH_FAILED",
        "MERGE_TYPE",
        "SCHEMA",
        "JOIN_MISMATCH",
        "LIMIT_EXCEEDED",
        "TASK_FAILED",
        "WORKER_LOST",
        "TASK_TIMEOUT",
        "WORKFLOW_TIMEOUT",
        "SUBWORKFLOW_FAILED",
        "NOT_FOUND",
        "INVALID_STATE",
        "DUPLICATE",
        "LATE_RESULT",
        "LEASE_CONFLICT",
        "STALE_VERSION",
        "DEADLOCK",
        "BAD_REQUEST",
    ]
)
"""The engine's own kinds. A task may fail with a kind of its own (a business error); the engine never invents
others."""


class Error(Struct, frozen=True, omit_defaults=True):
    """Why a token, a fan-in or a run failed."""

    kind: str
    message: str
    node: str | None = None
    path: str | None = None
    attempts: int = 0
    retryable: bool = False
    details: Any = None

    def as_json(self) -> dict[str, Any]:
        """The shape an author sees as `_last_error` and inside `{"_error": …}`."""
        return {
            "kind": self.kind,
            "message": self.message,
            "node": self.node,
            "path": self.path,
            "attempts": self.attempts,
            "retryable": self.retryable,
        }


class Rejection(Struct, frozen=True):
    """A command was refused. Data, not an exception: the caller answers it, nothing has changed."""

    kind: str
    message: str

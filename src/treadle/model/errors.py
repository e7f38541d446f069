"""Errors as data: the error a token or run fails with, and the refusal a command gets. Kinds are closed (2.14)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from treadle.model.ids import RunId

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
        "FORBIDDEN",
    ]
)
"""The engine's own kinds. A task may fail with a kind of its own (a business error); the engine never invents
others."""


class Cause(Struct, frozen=True, omit_defaults=True):
    """A failure that caused another: of a branch behind a fan-in's, of a child run behind a call's."""

    kind: str
    message: str
    node: str | None = None
    path: str | None = None
    branch: int | None = None
    """Index of the branch that failed with it."""
    run: RunId | None = None
    """The child run it happened in."""
    workflow: str | None = None
    causes: tuple[Cause, ...] = ()
    more_causes: int = 0

    def as_json(self) -> dict[str, Any]:
        """The JSON that authors see in `causes`: fields that do not apply are left out."""
        found: dict[str, Any] = {"kind": self.kind, "message": self.message, "node": self.node, "path": self.path}
        if self.branch is not None:
            found["branch"] = self.branch
        if self.run is not None:
            found["run"] = self.run
            found["workflow"] = self.workflow
        return {**found, **_behind(self.causes, self.more_causes)}


def _behind(causes: tuple[Cause, ...], more: int) -> dict[str, Any]:
    if not causes:
        return {}
    found: dict[str, Any] = {"causes": [cause.as_json() for cause in causes]}
    if more:
        found["more_causes"] = more
    return found


class Error(Struct, frozen=True, omit_defaults=True):
    """The error a token, a fan-in or a run failed with."""

    kind: str
    message: str
    node: str | None = None
    path: str | None = None
    attempts: int = 0
    retryable: bool = False
    details: Any = None
    causes: tuple[Cause, ...] = ()
    """Of a fan-in: the errors of its first three failed branches. Of a call: the error of the child run."""
    more_causes: int = 0
    """Failed branches beyond those in `causes`."""
    traceback: str | None = None
    """The traceback of the function that raised it, for people. Kept in the event of the failed attempt alone;
    expressions do not see it."""

    def briefly(self) -> Error:
        """The same error without its traceback: everything but the event of the failed attempt uses this one."""
        return self if self.traceback is None else replace(self, traceback=None)

    def as_json(self) -> dict[str, Any]:
        """The JSON that authors see as `_last_error` and inside `{"_error": …}`; `causes` only where there are any."""
        return {
            "kind": self.kind,
            "message": self.message,
            "node": self.node,
            "path": self.path,
            "attempts": self.attempts,
            "retryable": self.retryable,
            **_behind(self.causes, self.more_causes),
        }


class FieldProblem(Struct, frozen=True):
    """One value that does not fit its schema."""

    place: str
    """Where it is, as a path: `$.items[0].price`."""
    message: str


class Rejection(Struct, frozen=True, omit_defaults=True):
    """A command was refused. Data, not an exception: the caller answers it, nothing has changed."""

    kind: str
    message: str
    problems: tuple[FieldProblem, ...] = ()
    """Of SCHEMA: every field that is wrong."""
    retry_after_ms: int | None = None
    """Of RATE_LIMITED: when the next start has room."""

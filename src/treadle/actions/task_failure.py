"""The exceptions with which a function fails its task in a way of its own. `failure` gives both names on; this module
exists so that `secrets` can raise them without importing the code that describes exceptions.
"""

from __future__ import annotations

from typing import Any

from treadle.errors import TreadleError


class TaskFailure(TreadleError):
    """Raised by a function to fail with an error kind of its own; conditions see it in `_last_error.kind`."""

    retryable = False

    def __init__(self, message: str, *, kind: str = "TASK_FAILED", details: Any = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.details = details


class Retryable(TaskFailure):
    """The same, but trying again may help: action and node retries apply."""

    retryable = True

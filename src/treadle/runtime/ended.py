"""The end of a run: as data, and as the exception of `Run.result`."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.errors import TreadleError
from treadle.model.errors import Error
from treadle.model.ids import RunId
from treadle.model.states import RunStatus

Json = Any


class RunFailed(TreadleError):
    """`Run.result` of a run that did not complete."""

    def __init__(self, run: RunId, status: RunStatus, error: Error | None, traceback: str | None = None) -> None:
        why = f"{error.kind}: {error.message}" if error else ""
        super().__init__(f"run {run} is {status}" + (f": {why}" if why else ""))
        self.run = run
        self.status = status
        self.error = error
        self.causes = error.causes if error is not None else ()
        """The errors of its branches or its child run, if they made it fail."""
        if traceback is not None:
            self.add_note(traceback)


class Ended(Struct, frozen=True):
    """How a run ended."""

    run: RunId
    status: RunStatus
    output: Json = None
    error: Error | None = None
    traceback: str | None = None
    """Of the function that raised the error, where it is kept."""

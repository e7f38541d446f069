"""Every exception Treadle raises, and nothing else.

    TreadleError
    ├── DefinitionError        a workflow cannot be deployed: all its problems at once
    ├── ExpressionError        a condition, mapping or schema does not compile
    ├── PathSyntax             a path cannot be read (also a ValueError)
    ├── EvaluationError        a computed value has no value for this data
    │   └── DataTooLarge       it would read more data than an operator allows
    ├── InvalidTransition      a change of state that the lifecycle table does not have
    ├── StoreConflict          a store refused to write: somebody else was first
    ├── StoreUnavailable       a store cannot be read or written now; what a write came to may be unknown
    │   └── StoreGoneBack      the database that answers lacks what this process has seen in it
    ├── StoreDamaged           what a store has kept is not what was written; other runs are not affected
    ├── StorePlaceError        a store cannot be kept where it was asked to be
    │   └── MoveRefused        it can be used, but not be moved like this
    ├── PositionGone           events behind a position of a stream were forgotten and cannot be followed
    ├── EngineStopped          an engine that was asked something has stopped
    ├── OwnedElsewhere         another process coordinates this store
    ├── CommandRefused         a run refused what it was asked; `kind` says why
    ├── ScenarioError          a scenario file cannot be run as written
    └── SettingsInvalid        `treadle.toml`, a variable or a flag has settings that cannot be used

What goes wrong *inside a run* is not an exception: it is an event, and the kernel returns it as data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.model.errors import FieldProblem


class TreadleError(Exception):
    """The root: catch this to catch everything Treadle raises on purpose."""


class DefinitionError(TreadleError):
    """A definition with problems; `problems` holds every one of them, each printable."""

    def __init__(self, problems: Sequence[object]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class ExpressionError(TreadleError):
    """Something an author wrote does not compile; `where` is a place inside it: `conditions[1].left`."""

    def __init__(self, message: str, where: str = "", code: str = "CONDITION_SYNTAX") -> None:
        super().__init__(f"{where}: {message}" if where else message)
        self.message = message
        self.where = where
        self.code = code


class PathSyntax(TreadleError, ValueError):
    """A path that cannot be read, and the position (from 0) where reading stopped."""

    def __init__(self, message: str, text: str, position: int) -> None:
        super().__init__(f"{message} at position {position} of {text[:80]!r}")
        self.message = message
        self.position = position


class EvaluationError(TreadleError):
    """An expression that compiled has no value for this data: a missing key, unlike types, a limit."""

    kind = "TASK_FAILED"
    """Of the error that a token fails with for it."""


class DataTooLarge(EvaluationError):
    """The data of an expression is larger than an evaluation may read (`engine.cel_bytes_max`). Not the same as having
    no value: what depends on the answer fails."""

    kind = "LIMIT_EXCEEDED"


class InvalidTransition(TreadleError):
    """A state change that is not a row of the lifecycle table."""

    def __init__(self, from_: str, to: str) -> None:
        super().__init__(f"INVALID_TRANSITION: {from_} → {to} is not a legal change of state")
        self.from_ = from_
        self.to = to


class StoreConflict(TreadleError):
    """A store refused to write because somebody else was first. Nothing of the transaction has happened."""

    def __init__(self, kind: str, message: str, shards: Sequence[int] = ()) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        """STALE_VERSION, LEASE_CONFLICT or DUPLICATE."""
        self.shards = tuple(shards)
        """Of a LEASE_CONFLICT: the shards whose lease is not, or no longer, that of the fence."""


class StoreUnavailable(TreadleError):
    """A store cannot be read or written now: disk full, connection lost. Whether the last write happened may be
    unknown: look before you repeat what is not idempotent. `final`: no other try will help before a person does."""

    def __init__(self, message: str, *, outcome_unknown: bool = False, final: bool = False) -> None:
        super().__init__(f"{message}; whether the last write happened is unknown" if outcome_unknown else message)
        self.outcome_unknown = outcome_unknown
        """False: nothing of it has happened."""
        self.final = final


class StoreGoneBack(StoreUnavailable):
    """The database that answers lacks what this process has already seen in it: an old primary that came back after a
    failover, or an older copy in its place. Nothing is read or written there. Another try helps once the right one
    answers."""


class StoreDamaged(TreadleError):
    """A row of a store does not match its checksum: a disk or a memory has changed it. `run` is the run it belongs to,
    if any, `where` the row. That run cannot go on; the others can."""

    def __init__(self, place: str, where: str, run: str | None = None) -> None:
        whose = f"run {run}: " if run is not None else ""
        super().__init__(
            f"{whose}{place} is damaged ({where}): its checksum does not match. Keep a copy of it, check the disk, and"
            " restore a backup; `treadle fsck` lists all that is damaged"
        )
        self.place = place
        self.where = where
        self.run = run


class PositionGone(TreadleError):
    """A position in the stream of all events cannot be continued: what comes behind it is not kept any more, or the
    store is another one. Begin at the beginning, or now."""


class StorePlaceError(TreadleError):
    """A store cannot be kept at `path`: what is wrong there, and what to do about it."""

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path = path
        self.problem = problem
        self.remedy = remedy


class MoveRefused(StorePlaceError):
    """A move, or its undoing, does not fit what is there: a target that is not empty, nothing to undo. Nothing has
    changed."""


class EngineStopped(TreadleError):
    """The engine has stopped or lost its store before it could answer; whether the command counts is unknown. `run`: a
    start is kept, and this is the id the run will have. `request`: the command is kept under this id, and
    `Client.request(id)` says what became of it."""

    def __init__(self, message: str, *, run: str | None = None, request: str | None = None) -> None:
        super().__init__(message)
        self.run = run
        self.request = request


class OwnedElsewhere(TreadleError):
    """Another process coordinates this store; `owner` describes it. Commands still reach it through the inbox."""

    def __init__(self, place: str, owner: str) -> None:
        super().__init__(f"{place} is coordinated by {owner}: connect to it, or wait until it has stopped")
        self.place = place
        self.owner = owner


class CommandRefused(TreadleError):
    """A run refused a command. Nothing has changed."""

    def __init__(
        self, kind: str, message: str, problems: Sequence[FieldProblem] = (), retry_after_ms: int | None = None
    ) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message
        self.problems = tuple(problems)
        """Of SCHEMA: every field that is wrong, if they are known one by one."""
        self.retry_after_ms = retry_after_ms
        """Of RATE_LIMITED: how long the limit of the workflow allows no further start, if that is known."""


class ScenarioError(TreadleError):
    """A scenario that cannot be run as written: the mistake is in the file, not in the workflow."""


class SettingsInvalid(TreadleError):
    """Settings of a project that cannot be used. The message names every wrong one and where it is written."""

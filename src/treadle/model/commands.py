"""Commands: everything that can be asked of a run. Their names are imperatives; each may be delivered twice and counts
once.

A command names visits by token id. Callers that use addresses (`judge[2]`) resolve them first.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from treadle.model.errors import Error
from treadle.model.ids import RecordId, RunId, TimerId, TokenId
from treadle.model.references import EntityRef, ParentLink
from treadle.model.requests import AnyRequest

Json = Any


class Command(Struct, tag_field="command", omit_defaults=True, frozen=True, gc=False):
    """A command to one run."""


class StartRun(Command, tag="start_run", frozen=True):
    run: RunId
    input: Json = None
    version: int = 1
    entity: EntityRef | None = None
    parent: ParentLink | None = None
    depth: int = 0
    depth_max: int | None = None
    """The root run's nesting limit; None: this run is the root."""
    idempotency_key: str | None = None
    trigger: Json = None
    seed: int = 0
    tags: tuple[str, ...] = ()
    """Words by which people find the run."""


class StartAttempt(Command, tag="start_attempt", frozen=True):
    """A worker has begun an attempt. From a queue the command carries the worker's name and lease."""

    token: TokenId
    attempt: int
    worker: str | None = None
    lease_until: int | None = None
    recovery: int | None = None
    """How many losses of this attempt the claimed offer knew of: an older offer is not begun. None: unfenced."""


class ExtendLease(Command, tag="extend_lease", frozen=True):
    token: TokenId
    attempt: int
    worker: str
    lease_until: int


class ReportProgress(Command, tag="report_progress", frozen=True):
    """An attempt reports something before it has ended: text as it streams."""

    token: TokenId
    attempt: int
    part: int
    """Counted from 1 in one execution. A repeated delivery is recognised by it."""
    name: str
    data: Json = None


class FinishAttempt(Command, tag="finish_attempt", frozen=True):
    token: TokenId
    attempt: int
    output: Json = None
    requests: tuple[AnyRequest, ...] = ()
    tries: int = 0
    worker: str | None = None


class FailAttempt(Command, tag="fail_attempt", frozen=True):
    token: TokenId
    attempt: int
    error: Error
    """Requests the attempt made before it failed are dropped with it."""
    tries: int = 0
    worker: str | None = None


class LoseWorker(Command, tag="lose_worker", frozen=True):
    """The worker that executed this attempt is gone without an answer."""

    token: TokenId
    attempt: int
    recovery: int | None = None
    """How many losses of this attempt the sender knew of. A repeated delivery is recognised by it. None: unfenced."""
    graceful: bool = False
    """The worker was stopped in good order, with its engine: the loss does not count against the work."""


class FireTimer(Command, tag="fire_timer", frozen=True):
    timer: TimerId


class SendSignal(Command, tag="send_signal", frozen=True):
    name: str
    key: Json = None
    data: Json = None
    id: str | None = None
    """The command's own id. A repeated delivery is recognised by it."""


class CompleteGate(Command, tag="complete_gate", frozen=True):
    token: TokenId
    data: Json = None
    by: str | None = None
    force: bool = False
    """Do it even if somebody else has claimed the task; the history says so."""


class ClaimGate(Command, tag="claim_gate", frozen=True):
    token: TokenId
    by: str


class ReleaseGate(Command, tag="release_gate", frozen=True):
    """The person who has claimed a human task gives it back."""

    token: TokenId
    by: str
    force: bool = False


class DelegateGate(Command, tag="delegate_gate", frozen=True):
    """Hand a human task to somebody else."""

    token: TokenId
    to: str
    by: str
    force: bool = False


class ReceiveCallback(Command, tag="receive_callback", frozen=True):
    token: TokenId
    attempt: int
    output: Json = None
    error: Error | None = None


class EndChild(Command, tag="end_child", frozen=True):
    token: TokenId
    child: RunId
    status: str
    output: Json = None
    error: Error | None = None
    compensable: bool = False
    life: int = 0
    """How often the child has been reopened: its end after a retry is another one than its first."""
    levels: int = 0
    """As `ReopenCall.levels`, for an end that overtakes the news of the reopening."""


class CancelRun(Command, tag="cancel_run", frozen=True):
    by: str = "operator"
    reason: str | None = None


class CancelGroup(Command, tag="cancel_group", frozen=True):
    group: str
    join: Literal["fire", "drop"] = "fire"
    by: str = "operator"


class CancelToken(Command, tag="cancel_token", frozen=True):
    token: TokenId
    by: str = "operator"
    reason: str | None = None


class RetryToken(Command, tag="retry_token", frozen=True):
    token: TokenId
    by: str = "operator"
    attempt: int | None = None
    """The attempt that failed. A repeated delivery is recognised by it. None: any."""


class RetryRun(Command, tag="retry_run", frozen=True):
    """Retry all visits whose failure nothing has handled, together; failed children first."""

    by: str = "operator"
    levels: int = 0
    """Set by the parent: how many runs outwards are retried as a whole. The child reports back whether it could."""


class ReopenCall(Command, tag="reopen_call", frozen=True):
    """A child that had failed was reopened: the visit that called it waits for it again."""

    token: TokenId
    child: RunId
    life: int
    """How often the child has been reopened. A repeated delivery is recognised by it."""
    levels: int = 0
    """More than 0: the whole run is retried, not just this call."""
    by: str = "operator"


class RefuseCall(Command, tag="refuse_call", frozen=True):
    """A child cannot be retried, although its parent is: the visit that called it starts a new one."""

    token: TokenId
    child: RunId
    levels: int = 1
    """As `ReopenCall.levels`."""
    by: str = "operator"


class PauseRun(Command, tag="pause_run", frozen=True):
    by: str = "operator"
    reason: str | None = None


class ResumeRun(Command, tag="resume_run", frozen=True):
    by: str = "operator"


class ExtendTimeout(Command, tag="extend_timeout", frozen=True):
    ms: int
    by: str = "operator"


class AbortRun(Command, tag="abort_run", frozen=True):
    by: str = "operator"


class SkipCompensation(Command, tag="skip_compensation", frozen=True):
    record: RecordId
    by: str = "operator"


class RetryCompensation(Command, tag="retry_compensation", frozen=True):
    record: RecordId
    by: str = "operator"


class CompensateRun(Command, tag="compensate_run", frozen=True):
    """A parent undoes this completed child."""

    token: TokenId


class AddSiblings(Command, tag="add_siblings", frozen=True):
    group: str
    items: list[Json] | None = None
    count: int | None = None
    id: str | None = None


class CloseGroup(Command, tag="close_group", frozen=True):
    group: str
    by: str = "operator"

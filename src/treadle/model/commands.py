"""Commands: everything that can be asked of a run. Their names are imperatives; each may be delivered twice and counts
once.

A command names visits by token id. Callers that use addresses (`judge[2]`) resolve them first.
"""

from __future__ import annotations

from typing import Any, Literal

from treadle.model.change_commands import EditRun as EditRun
from treadle.model.change_commands import ForkChanges as ForkChanges
from treadle.model.change_commands import JumpToken as JumpToken
from treadle.model.change_commands import SetInput as SetInput
from treadle.model.change_commands import SkipToken as SkipToken
from treadle.model.command import Command as Command
from treadle.model.errors import Error
from treadle.model.ids import RecordId, RunId, TimerId, TokenId
from treadle.model.references import EntityRef, NodeOutput, ParentLink, Person
from treadle.model.requests import AnyRequest
from treadle.model.spending import Ask, Spending

Json = Any


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
    trace: dict[str, str] | None = None
    """The caller's trace context: see `RunStarted.trace`."""

    queued: str | None = None
    """Why the run has to wait before it starts (6.7); None: it starts now. The coordinator sets this field and those
    below when it has decided about the start's admission."""
    due: int | None = None
    priority: int = 0
    refused: Error | None = None
    """The run starts only to fail with this error (`on_limit: fail`)."""


class JoinBatch(Command, tag="join_batch", frozen=True):
    """A further start becomes an item of a queued batch (6.7)."""

    start: StartRun


class AdmitRun(Command, tag="admit_run", frozen=True):
    """A queued run may start (6.7)."""

    refused: Error | None = None
    """It starts only to fail with this error."""


class ForkRun(StartRun, tag="fork_run", frozen=True):
    """Start a run that has the past of another one up to a point (6.3): after event `at`, before the work of a `visit`,
    or before that of the first visit of a `node`. None of them: as the other run is now. It is sent to the new run;
    fields of `StartRun` that a fork inherits stay empty."""

    origin: RunId = RunId("")
    at: int | None = None
    visit: TokenId | None = None
    node: str | None = None
    changes: ForkChanges = ForkChanges()
    inherit_compensation: bool = False
    by: str = "operator"


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
    """Counted from 1 in one execution. A repeated delivery is recognised by it. 0: the next one."""
    name: str
    data: Json = None
    worker: str | None = None  # the worker of a queue: refused unless it has the work


class FinishAttempt(Command, tag="finish_attempt", frozen=True):
    token: TokenId
    attempt: int
    output: Json = None
    requests: tuple[AnyRequest, ...] = ()
    tries: int = 0
    worker: str | None = None
    spent: Json = None  # what the attempt has used up, {cost, usage}: kept as its progress


class FailAttempt(Command, tag="fail_attempt", frozen=True):
    token: TokenId
    attempt: int
    error: Error
    """Requests the attempt made before it failed are dropped with it."""
    tries: int = 0
    worker: str | None = None
    spent: Json = None  # as `FinishAttempt.spent`


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
    awaited: bool = False
    """Refused unless something waits for it now: a signal to every run that waits is kept by none."""


class CompleteGate(Command, tag="complete_gate", frozen=True):
    token: TokenId
    data: Json = None
    by: str | None = None
    force: bool = False
    """Do it even if somebody else has claimed the task; the history says so."""
    person: Person | None = None
    """`by`, if somebody has checked their identity: only people who were asked may answer then. None: the caller holds
    the store, and `by` is their word."""
    comment: str | None = None


class ClaimGate(Command, tag="claim_gate", frozen=True):
    token: TokenId
    by: str
    person: Person | None = None


class ReleaseGate(Command, tag="release_gate", frozen=True):
    """The person who has claimed a human task gives it back."""

    token: TokenId
    by: str
    force: bool = False
    person: Person | None = None


class DelegateGate(Command, tag="delegate_gate", frozen=True):
    """Hand a human task to somebody else."""

    token: TokenId
    to: str
    by: str
    force: bool = False
    person: Person | None = None


class CommentGate(Command, tag="comment_gate", frozen=True):
    """Say something about a human task, without answering it."""

    token: TokenId
    text: str
    by: str | None = None
    attachments: tuple[str, ...] = ()
    """Names of artifacts of the run."""
    id: str | None = None
    """The command's own id. A repeated delivery is recognised by it."""


class KeepArtifact(Command, tag="keep_artifact", frozen=True):
    """A person adds an artifact to the run. Its content is in the store already."""

    name: str
    digest: str
    size: int
    content_type: str | None = None
    by: str | None = None


class ReceiveCallback(Command, tag="receive_callback", frozen=True):
    token: TokenId
    attempt: int
    output: Json = None
    error: Error | None = None
    unusable: str | None = None
    """Why the answer cannot be used, if its body was not what a callback must be."""
    spent: Json = None  # as `FinishAttempt.spent`


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
    spent: Spending | None = None
    """Everything the child and its children have spent, if the parent has asked to be told."""


class ReportSpending(Command, tag="report_spending", frozen=True):
    """A child run below a budget reports what it has spent so far, and perhaps asks whether it may begin another
    attempt. Without an answer it waits."""

    token: TokenId
    child: RunId
    spent: Spending
    ask: Ask | None = None


class AllowAttempt(Command, tag="allow_attempt", frozen=True):
    """The parent's answer to such a question. Without one: look again, because the budget may allow more now."""

    ask: Ask | None = None


class RaiseBudget(Command, tag="raise_budget", frozen=True):
    """Add to the limits of the run's budget, and let a run go on that stands still because of it."""

    cost: float = 0
    tokens: int = 0
    visits: int = 0
    elapsed_ms: int = 0
    by: str = "operator"
    id: str | None = None
    """The command's own id. A repeated delivery is recognised by it."""


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
    strict: bool = False
    """Refused where it would change nothing; otherwise that is accepted without an event."""


class ResumeRun(Command, tag="resume_run", frozen=True):
    by: str = "operator"
    strict: bool = False
    """Refused where it would change nothing; otherwise that is accepted without an event."""


class ExtendTimeout(Command, tag="extend_timeout", frozen=True):
    ms: int
    by: str = "operator"


class AbortRun(Command, tag="abort_run", frozen=True):
    by: str = "operator"
    strict: bool = False
    """Refused unless the run is paused; otherwise a running one is cancelled, too."""


class SkipCompensation(Command, tag="skip_compensation", frozen=True):
    record: RecordId
    by: str = "operator"


class RetryCompensation(Command, tag="retry_compensation", frozen=True):
    record: RecordId
    by: str = "operator"


class CompensateRun(Command, tag="compensate_run", frozen=True):
    """A parent undoes this completed child."""

    token: TokenId


class MigrateRun(Command, tag="migrate_run", frozen=True):
    """Go on under another version of the workflow (6.5). Refused with everything that is in the way."""

    to: int
    nodes: dict[str, str] = {}
    """Nodes of the run's version and those that take their place in the other one."""
    dry_run: bool = False
    """Only say what is in the way; nothing changes."""
    by: str = "operator"
    outputs: tuple[NodeOutput, ...] = ()
    """Outputs that the other version reads and this one has not kept. The coordinator fills them in."""
    seq: int = 0
    """The last event when they were read from the history; 0: they were not."""


class AddSiblings(Command, tag="add_siblings", frozen=True):
    group: str
    items: list[Json] | None = None
    count: int | None = None
    id: str | None = None


class CloseGroup(Command, tag="close_group", frozen=True):
    group: str
    by: str = "operator"


class MoveEntity(Command, tag="move_entity", frozen=True):
    """A person moves the run's entity to a node or to a section."""

    node: str | None = None
    section: str | None = None
    by: str = "operator"
    reason: str | None = None

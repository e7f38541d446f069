"""Effects: everything the runtime is asked to do. They become outbox rows in the transaction that decided them.

Carrying one out twice does no harm: a dispatch carries its key, a timer its id, a child its run id.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from treadle.model.errors import Error
from treadle.model.ids import RecordId, RunId, TimerId, TokenId
from treadle.model.references import EntityRef
from treadle.model.spending import Ask, Spending

Json = Any


class Effect(Struct, tag_field="effect", omit_defaults=True, frozen=True, gc=False):
    """Something one run asks of the runtime."""


class Slot(Struct, frozen=True, omit_defaults=True):
    """A limit across runs: at most `limit` attempts with this name and key execute at the same time."""

    name: str
    limit: int
    key: Json = None


class RunTask(Effect, tag="run_task", frozen=True):
    """Execute one attempt of a node's task (or of its compensation) in this engine or on a queue's worker."""

    token: TokenId
    attempt: int
    node: str
    input: Json
    queue: str | None = None
    record: RecordId | None = None
    """If set: run the node's `compensate` task instead."""
    slot: Slot | None = None
    """If set: wait for a free place, then send StartAttempt and execute."""


class StopTask(Effect, tag="stop_task", frozen=True):
    token: TokenId
    attempt: int


class SetTimer(Effect, tag="set_timer", frozen=True):
    timer: TimerId
    due: int


class ClearTimer(Effect, tag="clear_timer", frozen=True):
    timer: TimerId


class OpenGate(Effect, tag="open_gate", frozen=True):
    token: TokenId
    node: str
    title: str | None = None
    """The title of a run's own gate (`RUN_GATE`), which no `gate.opened` describes."""


class MovedGate(Struct, frozen=True):
    """The parts of an open gate that never change, with the node that a migration has given its visit."""

    node: str
    opened: int
    title: str | None = None
    assign: Json = None
    due: int | None = None


class NoteGate(Effect, tag="note_claim", frozen=True):
    """The parts of an open gate that change and that lists show, as they are now."""

    token: TokenId
    by: str | None = None
    """The person who has claimed it; None: nobody."""
    escalated: Json = None
    """The people it was escalated to."""
    reminded: int = 0
    """Reminders sent."""
    commented: int = 0
    """Comments made."""
    answered: int = 0
    """Answers of a quorum so far."""
    moved: MovedGate | None = None
    """None: its node is as before."""


class CloseGate(Effect, tag="close_gate", frozen=True):
    token: TokenId


class RemindGate(Effect, tag="remind_gate", frozen=True):
    token: TokenId


class EscalateGate(Effect, tag="escalate_gate", frozen=True):
    token: TokenId


class CallWebhook(Effect, tag="call_webhook", frozen=True):
    """A signed POST; afterwards the token waits for the callback."""

    token: TokenId
    attempt: int
    node: str
    input: Json


class Notify(Effect, tag="notify", frozen=True):
    """Events of this decision that a subscription wants: those of its types from the first to the last number."""

    subscription: str
    first: int
    last: int


class NoteVersion(Effect, tag="note_version", frozen=True):
    """The run's version from now on, as the `run.migrated` of the same decision says: its row is found by it."""

    version: int


class NoteItem(Effect, tag="note_item", frozen=True):
    """A start has become an item of the run, which is a batch (6.7): the same start again, or another one with the same
    key, finds the run for as long as it is kept."""

    start: RunId
    """The run that the start had asked for. There is no such run."""
    workflow: str
    key: str | None = None


class NoteMove(Effect, tag="note_move", frozen=True):
    """A move of the run's entity, as the `entity.moved` of the same decision says: for its journey and its position,
    which are kept apart from histories and outlive the run."""

    seq: int
    """Of the event."""
    at: int
    """The time of the event, or of the run's move before it if the clock has gone back: moves of a run are in order."""
    workflow: str
    entity: EntityRef
    """Type and id as they were when the run started. With the first move of a run also name and attributes."""
    event: str
    node: str | None = None
    edge: str | None = None
    progress: float | None = None
    section: str | None = None
    completed_as: str | None = None
    set_type: str | None = None
    by: str | None = None
    reason: str | None = None


class HoldPlace(Effect, tag="hold_place", frozen=True):
    """The run has a place in the book of its workflow (6.7): it is live or queued. Its row stays in the outbox until
    the run has ended, and a new owner reads the book from these rows."""

    workflow: str
    version: int
    keys: tuple[str, str, str, str]
    """The values of its keys as JSON texts: concurrency, rate, the key between which turns are taken, and the key of
    its debounce or batch."""
    priority: int = 0
    why: str = ""
    """Why it was queued; empty: it has started."""
    due: int | None = None
    """It waits for further starts of its flurry or batch until then; None: it does not, or not any more."""
    since: int = 0
    """When the first start of its flurry came."""


class MarkStart(Effect, tag="mark_start", frozen=True):
    """A run has started under a rate (6.7). Its row stays in the outbox until the start counts no longer."""

    workflow: str
    key: str
    at: int
    until: int
    """When it counts no longer."""
    level: int | None = None
    """Of a rate with `burst`: the bucket after this start, in parts of 1 / `per_ms`."""


class StartChild(Effect, tag="start_child", frozen=True):
    token: TokenId
    child: RunId
    workflow: str
    input: Json
    depth: int
    depth_max: int
    version: int | None = None
    inherit_artifacts: bool = False
    entity: EntityRef | None = None
    catches: bool = False
    """The caller goes on with the child's failure as a result (`on_failure: catch`)."""
    attempt: int = 1
    """The attempt of the visit that calls it."""
    trace: dict[str, str] | None = None
    """The trace context of the calling run: see `RunStarted.trace`."""
    budgeted: bool = False
    """A budget of the calling run, or of one above it, counts what the child spends."""


class CancelChild(Effect, tag="cancel_child", frozen=True):
    child: RunId


class RetryChild(Effect, tag="retry_child", frozen=True):
    """The run is retried as a whole: first its failed child, which answers `child_reopened` or `child_refused`."""

    child: RunId
    token: TokenId
    by: str
    levels: int


class ChildReopened(Effect, tag="child_reopened", frozen=True):
    """This run had failed and was reopened: its parent waits for it again."""

    parent: RunId
    token: TokenId
    life: int
    levels: int
    by: str


class ChildRefused(Effect, tag="child_refused", frozen=True):
    """This run cannot be retried, although its parent has asked for it."""

    parent: RunId
    token: TokenId
    levels: int
    by: str


class CompensateChild(Effect, tag="compensate_child", frozen=True):
    child: RunId
    token: TokenId


class NotifyParent(Effect, tag="notify_parent", frozen=True):
    parent: RunId
    token: TokenId
    status: str
    output: Json = None
    error: Error | None = None
    compensable: bool = False
    life: int = 0
    levels: int = 0
    child: RunId | None = None
    """The run that the parent has called, if its start became an item of this one (a batch)."""
    spent: Spending | None = None


class TellSpending(Effect, tag="tell_spending", frozen=True):
    """This run is below a budget: its parent is told what it has spent, and perhaps asked for another attempt."""

    parent: RunId
    token: TokenId
    spent: Spending
    ask: Ask | None = None


class PermitChild(Effect, tag="permit_child", frozen=True):
    """A child below a budget may begin an attempt; without one it looks again at what it may begin."""

    child: RunId
    ask: Ask | None = None


class DeliverSignal(Effect, tag="deliver_signal", frozen=True):
    run: RunId
    name: str
    id: str
    key: Json = None
    data: Json = None


class Publish(Effect, tag="publish", frozen=True):
    """An `emit` for outgoing webhooks."""

    type: str
    data: Json = None


class OfferWork(Effect, tag="offer_work", frozen=True):
    """A `RunTask` that may have to wait for a worker, on a store that many workers share. It carries everything they
    need to execute it, so that no worker has to fold the run. The runtime makes it of a `RunTask`; the kernel never
    does."""

    token: TokenId
    attempt: int
    node: str
    input: Json
    queue: str
    """"" is the engines' own queue: work without a queue that observes a limit across runs."""
    key: str
    """Work with the same key shares its turns and its limits."""
    workflow: str
    version: int
    path: str
    recovery: int = 0
    """How often the attempt's worker was lost before: tells this offer from earlier ones of the same attempt."""
    priority: int = 1
    """Smaller priorities go first, as with transitions."""
    branch: Json = None
    slot: Slot | None = None
    retries: int = 0
    """How often an operator has retried the visit: part of its idempotency key."""
    about: Json = None
    """`_run`, where the task may read it."""
    trace: dict[str, str] | None = None
    """The trace context of the attempt, for everything the worker sends; None if runs are not traced."""

    def task(self) -> RunTask:
        """The `RunTask` it was made of."""
        return RunTask(self.token, self.attempt, self.node, self.input, queue=self.queue or None, slot=self.slot)


class WithdrawWork(Effect, tag="withdraw_work", frozen=True):
    """The visit's offer is over: it was answered, or is wanted no longer."""

    token: TokenId


class HoldWork(Effect, tag="hold_work", frozen=True):
    """Forbids claiming any offer of the run, or allows it again."""

    held: bool

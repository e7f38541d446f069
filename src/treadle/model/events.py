"""Events: everything that can have happened in a run (2.17). The set is closed; the tags are stored and never change.

History is the truth: `kernel.evolve` folds these records into the run's state. So each carries everything its change of
state needs, and beyond that it says *why*. `seq` is gap-free within a run, `at` is milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Any

from msgspec import field

from treadle.model.budget_events import BudgetExceeded as BudgetExceeded
from treadle.model.budget_events import BudgetRaised as BudgetRaised
from treadle.model.budget_events import BudgetWarned as BudgetWarned
from treadle.model.change_events import RunForked as RunForked
from treadle.model.change_events import TokenInputSet as TokenInputSet
from treadle.model.change_events import TokenJumped as TokenJumped
from treadle.model.change_events import TokenSkipped as TokenSkipped
from treadle.model.errors import Error
from treadle.model.event import Event as Event
from treadle.model.flow_events import RunQueued as RunQueued
from treadle.model.ids import ArrivalId, Frame, Frames, GroupId, RecordId, RunId, TokenId
from treadle.model.references import EntityRef, ParentLink
from treadle.model.spending import Spending
from treadle.model.states import Mode, Waiting
from treadle.model.wait_events import CallbackReceived as CallbackReceived
from treadle.model.wait_events import CallbackRefused as CallbackRefused
from treadle.model.wait_events import ChildEnded as ChildEnded
from treadle.model.wait_events import ChildStarted as ChildStarted
from treadle.model.wait_events import GateAnswered as GateAnswered
from treadle.model.wait_events import GateClaimed as GateClaimed
from treadle.model.wait_events import GateCommented as GateCommented
from treadle.model.wait_events import GateCompleted as GateCompleted
from treadle.model.wait_events import GateDelegated as GateDelegated
from treadle.model.wait_events import GateEscalated as GateEscalated
from treadle.model.wait_events import GateExpired as GateExpired
from treadle.model.wait_events import GateOpened as GateOpened
from treadle.model.wait_events import GateReleased as GateReleased
from treadle.model.wait_events import GateReminded as GateReminded
from treadle.model.wait_events import SignalReceived as SignalReceived
from treadle.model.wait_events import SignalTaken as SignalTaken
from treadle.model.wait_events import TimerFired as TimerFired
from treadle.model.wait_events import TimerSet as TimerSet

Json = Any
Write = tuple[tuple[str | int, ...], Json]
"""(path beginning with "state", "output" or "nodes", value)."""


class RunStarted(Event, tag="run.started"):
    run: RunId
    workflow: str
    version: int
    hash: str
    input: Json
    entity: EntityRef | None = None
    parent: ParentLink | None = None
    depth: int = 0
    depth_max: int = 10
    idempotency_key: str | None = None
    trigger: Json = None
    seed: int = 0
    """The seed of the run's jitter; everything random about a run follows from it."""
    tags: tuple[str, ...] = ()
    trace: dict[str, str] | None = None
    """The caller's trace context, as the headers of W3C Trace Context: `traceparent` and perhaps `tracestate`."""

    priority: int = 0
    """Its rank among queued runs, handed on to its queue work (6.7)."""


Beginning = RunStarted | RunQueued
"""The first event of a history."""


class RunCompleted(Event, tag="run.completed"):
    output: Json


class RunFailed(Event, tag="run.failed"):
    error: Error
    own: bool = False
    """The run failed by itself, not with a visit or fan-in: its deadline, a deadlock, a limit. Visits it cancels do not
    come back (6.2)."""


class RunCancelled(Event, tag="run.cancelled"):
    by: str
    reason: str | None = None


class RunTimedOut(Event, tag="run.timed_out"):
    error: Error


class RunPaused(Event, tag="run.paused"):
    by: str
    reason: str | None = None


class RunResumed(Event, tag="run.resumed"):
    by: str
    shift_ms: int = 0
    """How long the run's timers were frozen: every due time moves by so much."""
    deadline: int | None = None
    """A new run deadline, when an operator extended it."""
    reopened: bool = False
    """The run had failed and an operator retries one of its tokens."""
    levels: int = 0
    """Of a reopened child: how many runs outwards are retried as a whole with it."""


class RunMigrated(Event, tag="run.migrated"):
    """The run goes on under another version of its workflow (6.5)."""

    from_: int = field(name="from")
    to: int
    nodes: dict[str, str]
    """Nodes of the old version and those of the new one that take their place; all others keep their names."""
    by: str = "operator"


class RunCompensating(Event, tag="run.compensating"):
    cause: str
    """failed | cancelled | parent"""


class RunCompensated(Event, tag="run.compensated"):
    pass


class RunCompensationFailed(Event, tag="run.compensation_failed"):
    error: Error


class TokenCreated(Event, tag="token.created"):
    token: TokenId
    node: str
    path: str
    frames: Frames = ()
    via: str | None = None
    """The transition taken; None for a start node. The visit behind a join has the transition of its last arrival."""
    origin: TokenId | None = None
    """The visit this one came from."""
    why: str | None = None
    """The condition that chose the transition, in words."""
    mode: Mode = Mode.FORWARD
    record: RecordId | None = None
    """Of a compensation token: the record it undoes."""
    output: Json = None
    """The output a canvas collector's visit begins with."""
    last_error: Error | None = None
    """The failure that this token handles, by a failure transition."""
    loops: dict[str, int] | None = None
    """How often each `loop` transition was taken on the way here."""
    holds: str | None = None
    """A mutex the visit takes over from the one before: the critical section goes on (A4)."""
    merged: list[str] | None = None
    """Of the visit behind a node join: every transition that has delivered, because their mappings apply."""


class TokenDispatched(Event, tag="token.dispatched"):
    token: TokenId
    attempt: int
    input: Json
    queue: str | None = None
    recovery: int = 0
    """How many times this attempt's worker was lost before."""
    forgiven: bool = False
    """The worker was stopped in good order this time: the loss does not count against the work."""


class TokenStarted(Event, tag="token.started"):
    token: TokenId
    attempt: int
    worker: str | None = None
    input: Json = None
    """Given when the visit was not dispatched: a pass-through or suspending node."""
    lease_until: int | None = None


class TokenWaiting(Event, tag="token.waiting"):
    token: TokenId
    reason: Waiting
    until: int | None = None
    awaiting: int | None = None
    output: Json = None
    """The output of a visit that has executed and waits for siblings."""
    detail: Json = None
    """What would resume the visit: {signal, key}, {join, group}, {child}, {mutex, held_by}, {claimed_by}, …"""
    tries: int = 0
    """Task retries inside the attempt, of a visit that has executed."""
    arrival: int | None = None
    """With token 0: this arrival, which an operator's retry brings back, waits at its join again."""


class TokenResumed(Event, tag="token.resumed"):
    token: TokenId
    by: str | None = None


class TokenProgress(Event, tag="token.progress"):
    """An attempt reports something while it is at work: text of a model as it comes, or how far it is. A history of an
    older Treadle has `custom` events with a `part` instead."""

    token: TokenId
    attempt: int
    name: str
    data: Json = None
    part: int = 0
    """The number of this report within one execution of the attempt."""
    spent: Spending | None = None
    """The amount it counts against a budget: of the attempt, or of the child run the visit waits for."""


class TokenCompleted(Event, tag="token.completed"):
    token: TokenId
    output: Json = None
    """Empty for a visit that waited for siblings: its `token.waiting` has the output, which is not stored twice."""
    tries: int = 0
    """Task retries inside the attempt."""


class TokenFailed(Event, tag="token.failed"):
    token: TokenId
    error: Error
    retry_count: int = 0
    fails: Frame | None = None
    """The branch that fails with it, when no transition handles the failure."""
    unhandled: bool = False
    """Nothing handles it: the run fails, now or when the other tokens have finished."""


class TokenTimedOut(Event, tag="token.timed_out"):
    token: TokenId
    error: Error
    timeout_at: int = 0
    fails: Frame | None = None
    unhandled: bool = False
    because: int = 0
    """As `TokenCancelled.because`, for a visit that waited at a join whose clock ran out."""


class TokenCancelled(Event, tag="token.cancelled"):
    token: TokenId
    """0: an arrival that stands alone, without a visit of its own."""
    by: str
    reason: str | None = None
    arrival: int | None = None
    because: int = 0
    """The failure that took it down: the sequence number of its event, or -1 for the run's own. An operator's retry of
    that failure brings it back (6.2). 0: it was cancelled for another reason."""


class TokenRetryScheduled(Event, tag="token.retry_scheduled"):
    """The same token tries again: after a backoff (`due`), or at once because an operator said so (`by`)."""

    token: TokenId
    attempt: int
    due: int
    error: Error | None = None
    by: str | None = None
    tries: int = 0


class GroupOpened(Event, tag="group.opened"):
    group: GroupId
    names: list[str]
    """The names of the group: `name:x`, `transition:t`, `node:n`."""
    origin: TokenId
    node: str
    path: str
    frames: Frames
    total: int
    transitions: list[str]
    items: list[Json] | None = None
    item_var: str | None = None
    replicated: bool = False
    open: bool = False
    max_in_flight: int | None = None
    ordinal: int = 0
    """Ordinal of its first token within the dispatch, for the path."""
    shared: bool = False
    """Canvas splitter: each branch holds one token per transition."""
    loops: dict[str, int] | None = None
    bounds: list[int] = []
    """Of a group made by several transitions: the branch index at which each one's share ends."""
    last_error: Error | None = None
    """The failure that its branches handle."""


class GroupGrew(Event, tag="group.grew"):
    group: GroupId
    total: int
    items: list[Json] | None = None
    command: str | None = None


class GroupClosed(Event, tag="group.closed"):
    group: GroupId
    by: str | None = None
    withdrawn: bool = False
    """The group was cancelled: branches that have not begun never will."""
    because: int = 0
    """As `TokenCancelled.because`: the group goes on when that failure is retried."""


class FanOutEmpty(Event, tag="fan_out.empty"):
    transition: str
    node: str
    group: GroupId | None = None


class JoinArrived(Event, tag="join.arrived"):
    arrival: ArrivalId
    token: TokenId
    target: str
    via: str
    path: str
    frames: Frames = ()
    group: GroupId | None = None
    """None at a node join, which is kept per item."""
    item: Frame | None = None
    value: Json = None
    """Its contribution to the merge."""
    loops: dict[str, int] | None = None
    absorbed: bool = False
    """The join had fired already, so the arrival ends here."""
    rearmed: bool = False
    """A counting node join begins a new round with this arrival (A8)."""


class JoinFired(Event, tag="join.fired"):
    target: str
    group: GroupId | None = None
    item: Frame | None = None
    arrivals: list[ArrivalId] = []
    arrived: int = 0
    failed: int = 0
    total: int = 0
    writes: list[Write] = []
    rest: str | None = None
    """What happens to the branches still live: on_early_complete."""
    why: str | None = None
    scope: Frame | None = None
    """Of a node join: the scope of `writes`. A group's join writes the scope around the group."""


class JoinFailed(Event, tag="join.failed"):
    target: str
    error: Error
    group: GroupId | None = None
    item: Frame | None = None
    fails: Frame | None = None
    """The branch of an enclosing group that fails with it, when no transition handles the failure."""
    unhandled: bool = False
    remembers: bool = False
    """Everything it takes down says so (`because`), so that it can be reopened. Version 0.1 did not note that."""


class JoinReopened(Event, tag="join.reopened"):
    """An operator retries what made the fan-in fail, or what took its branch down: it waits again."""

    target: str
    group: GroupId | None = None
    item: Frame | None = None
    failure: int = 0
    """The sequence number of the `join.failed` that this takes back; 0 for a join that only went down with another
    failure."""
    by: str | None = None


class JoinDead(Event, tag="join.dead"):
    target: str
    group: GroupId | None = None
    item: Frame | None = None
    because: int = 0
    """As `TokenCancelled.because`: the branch around it went down with that failure."""


class JoinMismatch(Event, tag="join.mismatch"):
    token: TokenId
    transition: str
    wanted: str


class ContextUpdated(Event, tag="context.updated"):
    writes: list[Write]
    scope: Frame | None = None
    """The branch whose overlay is written; None is the run's own scope."""
    token: TokenId | None = None
    streamed: bool = False
    branch: Frame | None = None
    """The branch of a group without a join that writes this scope beside its siblings."""
    armed: dict[str, bool] | None = None
    """A `when` trigger of the token whose condition has changed."""
    by: str | None = None
    """The operator who has edited the run's data; None: the run has written it itself."""
    reason: str | None = None


class ContextConflict(Event, tag="context.conflict"):
    path: list[str | int]
    by: str
    """The branch index or the node whose value won."""


class ConditionUnevaluable(Event, tag="condition.unevaluable"):
    transition: str
    reason: str
    token: TokenId | None = None
    part: str = "condition"
    """The part of the transition: condition, when, key or strategy. `output` of the run has no transition."""
    group: GroupId | None = None
    """Of a join's strategy: the group of the join."""


class ResultIgnored(Event, tag="result.ignored"):
    token: TokenId
    attempt: int
    reason: str
    spent: Spending | None = None
    """The amount it has cost all the same."""


class CompensationRecorded(Event, tag="compensation.recorded"):
    record: RecordId
    token: TokenId
    node: str
    path: str
    frames: Frames = ()
    input: Json = None
    output: Json = None
    child: RunId | None = None


class CompensationStarted(Event, tag="compensation.started"):
    record: RecordId
    node: str
    child: RunId | None = None


class CompensationCompleted(Event, tag="compensation.completed"):
    record: RecordId


class CompensationFailed(Event, tag="compensation.failed"):
    record: RecordId
    error: Error


class CompensationSkipped(Event, tag="compensation.skipped"):
    record: RecordId
    by: str


class EntityMoved(Event, tag="entity.moved"):
    event: str
    """The kind of move: entered | arrived | departed | moved | completed | left."""
    node: str | None = None
    edge: str | None = None
    progress: float | None = None
    section: str | None = None
    completed_as: str | None = None
    entity_type: str | None = None
    token: TokenId | None = None
    by: str | None = None
    """The person who has moved it by hand; None: the run has."""
    reason: str | None = None


class ArtifactWritten(Event, tag="artifact.written"):
    token: TokenId
    """The visit that has stored it; 0: a person has added it."""
    name: str
    digest: str
    size: int
    content_type: str | None = None
    by: str | None = None
    """The person who has added it."""


class Custom(Event, tag="custom"):
    """From `emit`; its full type is `custom.<name>`."""

    name: str
    data: Json = None
    token: TokenId | None = None
    part: int = 0
    """The number of this report within the attempt, counted while it is at work; 0 when it came with the result."""

    @property
    def type(self) -> str:
        return f"custom.{self.name}"


WARNINGS = frozenset({"join.mismatch", "context.conflict", "condition.unevaluable"})
"""Event types that report a likely mistake and change nothing."""

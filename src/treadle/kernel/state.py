"""The state of one run: the fold of its history, and what the kernel decides on.

Owns the shapes; `evolve` alone changes them. Only live things are kept: an ended visit leaves one byte (`ended`), and
a failed one stays while an operator may still retry it. Everything is found by id in O(1); groups keep counters, so
that no decision scans tokens.

A *unit* is anything a join may wait for: a live token (its id), an arrival held at a join (minus its id), or the cursor
of a group still to be spawned (see `units`). A visit that waits for siblings is there as its arrivals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Struct

from treadle.expression.paths import Path
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.budget_state import BudgetState
from treadle.kernel.gate_state import GateQuestion, GivenAnswer
from treadle.kernel.group_state import Arrival, Failure, Group, NodeJoinState
from treadle.kernel.position import Position
from treadle.kernel.scope import Scope
from treadle.kernel.signal_lines import Lines
from treadle.model.errors import Error
from treadle.model.events import RunQueued
from treadle.model.ids import ArrivalId, Frame, Frames, GroupId, RecordId, RunId, TimerId, TokenId
from treadle.model.references import EntityRef, ParentLink
from treadle.model.requests import AnyRequest
from treadle.model.states import ExternalState, GateState, Mode, RunStatus, TokenState, Waiting

Json = Any


class Token(Struct, gc=False):
    """A live visit, or a failed one that may be retried."""

    id: TokenId
    node: str
    path: str
    frames: Frames
    state: TokenState = TokenState.CREATED
    via: str | None = None
    origin: TokenId | None = None
    mode: Mode = Mode.FORWARD
    record: RecordId | None = None
    output: Json = None
    last_error: Error | None = None
    loops: dict[str, int] | None = None
    merged: list[str] | None = None
    version: int = 0
    attempt: int = 0
    """The attempt of the node's retry. Every answer carries it, so that a late answer is refused."""
    attempts: int = 0
    """Node attempts and task retries together (2.16)."""
    recoveries: int = 0  # how often its worker was lost in this attempt
    worker: str | None = None
    lost: str | None = None  # the worker before, in this attempt: its result counts until another one begins
    input: Json = None
    waiting: Waiting | None = None
    detail: Json = None
    arrivals: tuple[ArrivalId, ...] = ()
    held: bool = False
    """The visit has executed and stands at joins, as its arrivals, no longer at its node."""
    timers: tuple[TimerId, ...] = ()
    external: ExternalState | None = None
    gate: GateState | None = None
    asked: GateQuestion | None = None
    child: RunId | None = None
    error: Error | None = None
    when: dict[str, bool | None] | None = None
    """Armed `when` triggers and whether each held last time; None: it could not be evaluated."""
    mutex: str | None = None  # the one it holds
    progress: tuple[int, int, int] = (0, 0, 0)
    """The newest part it has reported while at work: (attempt, recoveries, part)."""
    forgiven: int = 0
    """How many of the recoveries do not count against the work, because the worker was stopped in good order."""
    retries: int = 0
    """How often an operator has retried it; part of its idempotency key."""
    failure: int = 0
    """Of a failed visit: the key of its failure in the run's `failures`."""
    called: RunId | None = None
    """The child its latest attempt has started, even if that has ended."""
    workflow: str | None = None
    life: int = 0
    """The workflow of that child, and how often the child has been reopened since."""
    under: tuple[int, str] | None = None
    """The version and node that its attempt was begun under, if the run was migrated since: the attempt ends under that
    definition (6.5). None: those of the run."""
    given: tuple[Json] | None = None
    """The input that an operator has set for further attempts; None: it is mapped."""


class Fallen(Struct):
    """A visit that went down with a failure, as it was. An operator's retry of the failure brings it back."""

    token: Token
    because: int
    arrivals: tuple[Arrival, ...]
    """Its arrivals at joins, with their values."""


class Timer(Struct):
    """A durable timer."""

    id: TimerId
    due: int
    purpose: str
    token: TokenId | None = None
    group: GroupId | None = None
    target: str | None = None


class Signal(Struct):
    """A signal that is not taken yet."""

    id: int
    name: str
    key: Json
    data: Json
    at: int
    seq: int


class MutexState(Struct):
    """The visits that hold a mutex, and those that wait for it in order of arrival."""

    holders: dict[TokenId, None] = {}
    queue: list[TokenId] = []


class Stopped(Struct):
    """An attempt told to stop whose result may still arrive. `child` is the run it waited for: a visit that is retried
    calls another one, whose end is not this attempt's."""

    attempt: int
    node: str
    path: str
    frames: Frames
    input: Json
    mode: Mode
    child: RunId | None = None


class Deferred(Struct):
    """An answer that came while the run was paused."""

    kind: Literal["gate", "quorum", "callback", "child", "result"]
    token: TokenId
    output: Json = None
    error: Error | None = None
    tries: int = 0
    requests: tuple[AnyRequest, ...] = ()
    status: str | None = None
    child: RunId | None = None
    compensable: bool = False
    seq: int = 0
    """The sequence number of its event."""
    inherited: bool = False
    """It came before the run was forked, for work of the other run: nothing is undone for it here."""


class Record(Struct):
    """A completed visit that can be undone."""

    id: RecordId
    token: TokenId
    node: str
    path: str
    frames: Frames
    input: Json
    output: Json
    child: RunId | None
    status: Literal["recorded", "running", "completed", "failed", "skipped", "inherited"] = "recorded"
    """`inherited`: a fork has it from the run it was forked from, and does not undo it."""


_NO_RUN = RunId("")


@dataclass(slots=True)
class RunState:
    """The fold of a run's history. See the module's docstring."""

    graph: ExecutionGraph = field(compare=False, repr=False)
    run: RunId = _NO_RUN
    version: int = 0
    status: RunStatus = RunStatus.CREATED
    seq: int = 0
    started_at: int = 0
    seed: int = 0
    input: Json = None
    output: Json = None
    error: Error | None = None
    unhandled: dict[int, Error] = field(default_factory=dict)
    """Errors that nothing has handled, by the sequence number of their failure, in order. They make the run fail."""
    failures: dict[int, Failure] = field(default_factory=dict)
    """Failures that an operator's retry could take back, by the sequence number of their event; -1 is the run's own."""
    fallen: dict[TokenId, Fallen] = field(default_factory=dict)
    """Visits that went down with one of these failures."""
    fallen_arrivals: dict[ArrivalId, Arrival] = field(default_factory=dict)
    """Arrivals that went down without a visit."""
    own_failure: bool = False
    """The run has failed by its own deadline, a deadlock or a limit, not with a visit."""
    life: int = 0
    """How often it has been reopened."""
    levels: int = 0
    """`RunResumed.levels` of the latest reopening."""
    time_left: int | None = None
    """Of a failed run: the time left until its deadline, which stands still (6.2)."""
    parent: ParentLink | None = None
    depth: int = 0
    depth_max: int = 10
    idempotency_key: str | None = None
    tags: tuple[str, ...] = ()
    trace: dict[str, str] | None = None
    priority: int = 0
    """Its rank among queued runs (6.7)."""
    queued: RunQueued | None = None
    """While it waits for its start: the event that says with what it will start."""
    stands: RunStatus | None = None
    """Of a fork that waits for its start: the status it has at its point, and will go on with."""
    items: list[Json] = field(default_factory=list)
    """Of a queued batch: the inputs so far."""
    item_keys: set[str] = field(default_factory=set)
    """The idempotency keys of further starts that have become items."""
    item_runs: set[RunId] = field(default_factory=set)
    """The ids of these starts."""
    callers: list[tuple[ParentLink, RunId]] = field(default_factory=list)
    """Further parents that wait for this batch, each with the child it has called."""
    entity: EntityRef | None = None
    position: Position | None = None
    tokens: dict[TokenId, Token] = field(default_factory=dict)
    ended: bytearray = field(default_factory=bytearray)
    """By token id: 0 live or unknown, else an index into `ENDED`."""
    live: int = 0
    """Live tokens, those waiting at joins included."""
    working: int = 0
    """Live tokens that are not held at a join: they can still move by themselves or by an answer."""
    passive: int = 0
    """How many of those wait for a mutex or for triggers without a signal: perhaps only another token frees them."""
    watching: dict[TokenId, None] = field(default_factory=dict)
    """Tokens with an armed `when`."""
    at_node: dict[str, int] = field(default_factory=dict)
    groups: dict[GroupId, Group] = field(default_factory=dict)
    arrivals: dict[ArrivalId, Arrival] = field(default_factory=dict)
    node_joins: dict[tuple[str, Frame | None], NodeJoinState] = field(default_factory=dict)
    scopes: dict[Frame | None, Scope] = field(default_factory=dict)
    spent_scopes: dict[Frame, bytes] = field(default_factory=dict)
    """Overlays of branches that only wait at a join, packed. A jump leads back into such a branch (6.4)."""
    writers: dict[tuple[Frame | None, Path], Frame] = field(default_factory=dict)
    """The branch of a group without a join that last wrote a path around it; a sibling's other value is a conflict."""
    timers: dict[TimerId, Timer] = field(default_factory=dict)
    signals: dict[int, Signal] = field(default_factory=dict)
    lines: Lines = field(default_factory=dict)
    mutexes: dict[str, MutexState] = field(default_factory=dict)
    records: dict[RecordId, Record] = field(default_factory=dict)
    answers: dict[TokenId, GivenAnswer] = field(default_factory=dict)
    """The accepted answer of a gate or callback, by visit: the same answer again is accepted, another refused. Those of
    earlier attempts are in `earlier_answers`."""
    earlier_answers: dict[tuple[TokenId, int], GivenAnswer] = field(default_factory=dict)
    stopping: dict[TokenId, Stopped] = field(default_factory=dict)
    """Attempts that were told to stop and whose result may still arrive; it is then recorded as ignored."""
    deferred: dict[TokenId, Deferred] = field(default_factory=dict)
    """Answers that came while the run was paused, to be applied when it resumes."""
    empty: dict[GroupId, None] = field(default_factory=dict)
    """Groups without branches whose join is not decided yet: each stands for a token to come in the scope around it."""
    cursors: dict[GroupId, None] = field(default_factory=dict)
    """Groups with branches still to be spawned."""
    idle: dict[GroupId, None] = field(default_factory=dict)
    """Groups without units. The next group that is opened forgets them, unless something has come back to them."""
    seen: set[str] = field(default_factory=set)
    artifacts: dict[str, Json] = field(default_factory=dict)
    paused_at: int | None = None
    overdue: bool = False
    """Its deadline has passed, so the paused run waits for somebody to extend it. A person's pause ends by resuming."""
    paused_signal: int = 0
    """The newest signal when the run was paused: later ones are still to be offered."""
    edited: dict[tuple[Frame | None, Path], None] = field(default_factory=dict)
    """Places that an operator has written during the latest pause: what arrived during it counts as earlier (6.4)."""
    visits: int = 0
    failed_joins: int = 0
    """Fan-ins that have failed. Routed in a circle they make no visits, so they have a limit of their own."""
    last_token: int = 0
    last_group: int = 0
    last_arrival: int = 0
    last_timer: int = 0
    last_signal: int = 0
    last_record: int = 0
    witness: dict[tuple[str, Frame | None], int] = field(default_factory=dict, compare=False, repr=False)
    """A cache, no state: the unit last seen able to reach a node join, so that a search is seldom needed."""
    budget: BudgetState | None = None
    """What was spent, if a budget of this run or of one above it counts that."""
    compensating: RecordId | None = None
    had_queue: bool = False
    """A version that the run was migrated from had queue work, which may still be on offer."""
    cause: str | None = None
    """The status the run ended with before compensation began."""
    forked: int = 0
    """Of a fork: the sequence number of its `run.forked`. Everything before it is inherited."""

    @property
    def is_out_of_time(self) -> bool:
        """Whether the run stands still until somebody extends or aborts it (`on_timeout: human_gate`)."""
        return self.overdue and self.status is RunStatus.PAUSED

    @property
    def is_over_budget(self) -> bool:
        """Whether the run stands still until somebody raises its budget or aborts it."""
        return self.budget is not None and self.budget.exceeded is not None and self.status is RunStatus.PAUSED

    @property
    def has_gate(self) -> bool:
        """Whether a gate of the run itself is open: it is out of time, or over a budget with `on_exceeded: gate`."""
        if self.is_out_of_time:
            return True
        limits = self.graph.definition.budget
        return limits is not None and limits.on_exceeded == "gate" and self.is_over_budget

    def context(self) -> dict[str, Json]:
        """The run's own scope, for people and for expectations of scenarios: {"state": …, "output": …}."""
        root = self.scopes[None]
        return {"state": root.plain("state"), "output": root.plain("output")}


ENDED = (
    "",
    TokenState.COMPLETED,
    TokenState.FAILED,
    TokenState.TIMED_OUT,
    TokenState.CANCELLED,
    TokenState.FAILED,
    TokenState.TIMED_OUT,
)
"""The last two: the visit's failure was used, or outlived, by a join that has fired."""
USED = 3
"""From the code of a failure to that of one a join has used."""

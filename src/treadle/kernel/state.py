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
from treadle.kernel.group_state import Arrival, Failure, Group, NodeJoinState
from treadle.kernel.scope import Scope
from treadle.kernel.signal_lines import Lines
from treadle.model.errors import Error
from treadle.model.events import GateOpened
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
    recoveries: int = 0
    """How often its worker was lost in this attempt."""
    worker: str | None = None
    input: Json = None
    waiting: Waiting | None = None
    detail: Json = None
    arrivals: tuple[ArrivalId, ...] = ()
    held: bool = False
    """The visit has executed and stands at joins, as its arrivals, no longer at its node."""
    timers: tuple[TimerId, ...] = ()
    external: ExternalState | None = None
    gate: GateState | None = None
    asked: GateOpened | None = None  # the event that opened its newest gate: a reminder repeats it
    child: RunId | None = None
    error: Error | None = None
    when: dict[str, bool | None] | None = None
    """Armed `when` triggers and whether each held last time; None: it could not be evaluated."""
    mutex: str | None = None
    """The mutex it holds."""
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
    """The workflow of that child."""
    life: int = 0
    """How often that child has been reopened since."""


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

    kind: Literal["gate", "callback", "child", "result"]
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
    status: Literal["recorded", "running", "completed", "failed", "skipped"] = "recorded"


class Position(Struct):
    """The entity's position: a node, an edge with progress, a section, or nowhere."""

    node: str | None = None
    edge: str | None = None
    progress: float | None = None
    section: str | None = None
    completed_as: str | None = None
    type: str | None = None


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
    writers: dict[tuple[Frame | None, Path], Frame] = field(default_factory=dict)
    """The branch of a group without a join that last wrote a path around it; a sibling's other value is a conflict."""
    timers: dict[TimerId, Timer] = field(default_factory=dict)
    signals: dict[int, Signal] = field(default_factory=dict)
    lines: Lines = field(default_factory=dict)
    mutexes: dict[str, MutexState] = field(default_factory=dict)
    records: dict[RecordId, Record] = field(default_factory=dict)
    answers: dict[TokenId, tuple[int, Json]] = field(default_factory=dict)
    """The accepted answer of a gate or callback, by visit: the same answer again is accepted, another refused."""
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
    compensating: RecordId | None = None
    cause: str | None = None
    """The status the run ended with before compensation began."""

    @property
    def is_out_of_time(self) -> bool:
        """Whether the run stands still until somebody extends or aborts it (`on_timeout: human_gate`)."""
        return self.overdue and self.status is RunStatus.PAUSED

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

"""The shapes in which a run is shown: by the HTTP API, the command line and the canvas alike.

Data only. Instants are milliseconds since 1970; durations end in `_ms`. Fields may be added; none is renamed or
removed.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from treadle.model.errors import Error
from treadle.runtime.view.group_log import BranchStatus, SiteStatus

Json = Any

Branch = Annotated[tuple[int, int], Meta(description="Group number and branch index.")]


class EndsBy(Struct, frozen=True, omit_defaults=True):
    """One thing that would end a wait, as data and in words."""

    by: Literal[
        "answer", "signal", "timer", "child", "callback", "worker", "arrivals", "mutex", "condition", "operator"
    ]
    words: str
    at: int | None = None
    """Of a timer: when it fires. Absent while the run is paused, because its timers stand still."""
    then: str | None = None
    """Of a timer: what happens then, such as `fails` or `transition late`."""
    who: Json = None
    """Of an answer: the people who are asked; absent: anybody."""
    signal: str | None = None
    key: Json = None
    run: str | None = None
    """Of a child: the run that has to end."""
    queue: str | None = None
    transition: str | None = None
    """The transition that is taken, if the wait ends by a trigger."""
    mutex: str | None = None
    visits: list[int] | None = None
    """Of a mutex: the visits that hold it."""
    join: str | None = None
    group: int | None = None
    missing: list[int] | None = None
    """Of arrivals: the first branches that have neither arrived nor failed."""
    commands: list[str] | None = None
    """What an operator may say."""


class WaitView(Struct, frozen=True):
    """A visit that waits: for what, since when, until when, and what would end the wait."""

    visit: Annotated[int, Meta(description="Number of the visit; 0: the run itself, which is out of time.")]
    node: str
    awaits: str = field(name="for")
    since: int
    detail: Json
    ends_by: list[EndsBy]
    until: int | None = None


class FailureCause(Struct, frozen=True, omit_defaults=True):
    """A failure behind the run's error: nothing has handled it."""

    kind: str
    message: str
    visit: int | None = None
    """The visit that failed; absent: a fan-in, whose failed branches are in `causes`."""
    node: str | None = None
    path: str | None = None
    join: str | None = None
    """Of a fan-in: the node at which the branches should have met."""
    group: int | None = None
    causes: list[Json] = []


class BudgetView(Struct, frozen=True):
    """What a run and its children may spend together, and what they have spent."""

    limits: Annotated[dict[str, float], Meta(description="By part: cost, tokens, visits, elapsed_ms.")]
    spent: Annotated[dict[str, float], Meta(description="As of the run's last event.")]
    on_exceeded: str
    exceeded: Annotated[str | None, Meta(description="The part for which the run stands still now.")]


class RunDetail(Struct, frozen=True):
    """A run: its row, and what is known of it now."""

    run: str
    workflow: str
    version: int
    status: str
    seq: int
    started: int
    changed: int
    entity: str | None
    tags: tuple[str, ...]
    parent: str | None
    key: str | None
    ended: int | None
    number: Annotated[int, Meta(description="In the order of creation; only grows.")]
    input: Json
    output: Json
    error: Error | None
    causes: list[FailureCause]
    counts: Annotated[dict[str, int], Meta(description="Visits by status.")]
    waiting: list[WaitView]
    waiting_more: Annotated[int, Meta(description="Waiting visits beyond those in `waiting`.")]
    shortened: Annotated[bool, Meta(description="Only the first and the last event are kept: there are no visits.")]
    budget: Annotated[BudgetView | None, Meta(description="null: the run has no budget of its own.")] = None


class VisitRow(Struct, frozen=True):
    """One visit of a node."""

    visit: int
    node: str
    path: str
    status: str
    waiting_for: str | None
    since: int
    """When its present status began."""
    attempts: int
    retries: int
    created: int
    started: int | None
    ended: int | None
    queue_ms: int
    wait_ms: int
    run_ms: int
    branches: list[Branch]
    """The fan-outs around it, outermost first."""
    via: str | None
    origin: int | None
    compensation: bool
    """Whether it undoes another visit."""
    error: Error | None
    queue: str | None
    worker: str | None
    child: str | None
    cost: float


class AttemptView(Struct, frozen=True):
    """One attempt of a visit. In a queue, waiting and at work are counted apart."""

    attempt: int
    queued: int | None
    started: int | None
    ended: int | None
    queue_ms: int
    wait_ms: int
    run_ms: int
    outcome: Literal["completed", "failed", "timed_out", "cancelled"] | None
    """Absent while it is under way. A failed attempt may be followed by another."""
    error: Error | None
    worker: str | None
    lost: int
    """How often its worker was lost and another took the attempt on."""
    next: int | None
    """When the next attempt is due."""


class VisitReason(Struct, frozen=True):
    """Why a visit was made."""

    words: str
    transition: str | None
    origin: int | None
    condition: str | None
    """The condition that chose the transition, in words."""
    values: dict[str, Json] | None
    """The values the condition read, as they were then. Null: it read none, or they are no longer known."""


class VisitDetail(VisitRow, frozen=True):
    """A visit with everything that is known of it."""

    input: Json
    output: Json
    scope: Json
    """`input`, `state`, `output` and variables of items as the visit sees them now, or saw them when it ended."""
    attempted: list[AttemptView]
    text: str | None
    """Text that its action has streamed so far."""
    progress: list[Json]
    """Other reports of its action while it worked, newest last."""
    why: VisitReason
    waiting: WaitView | None
    artifacts: list[str]


class JoinRow(Struct, frozen=True):
    """One join of a group."""

    node: str
    status: SiteStatus
    arrivals: int
    needed: int | None
    """Branches that must arrive; null where a computed strategy decides."""
    strategy: str
    until: int | None
    decided: int | None
    why: str | None
    error: Error | None


class GroupRow(Struct, frozen=True):
    """One firing of a fan-out. `missing` branches can still arrive; `ended` ones cannot any more."""

    group: int
    names: list[str]
    node: str
    path: str
    origin: int
    open: bool
    total: int
    arrived: int
    failed: int
    live: int
    missing: int
    ended: int
    opened: int
    joins: list[JoinRow]


class BranchRow(Struct, frozen=True):
    """One branch of a group."""

    branch: int
    status: BranchStatus
    item: Json
    visits: list[int]
    node: str | None
    """The node of its newest visit."""
    error: Error | None


class GroupDetail(GroupRow, frozen=True):
    """A group with a page of its branches: failed ones first, then the others by index."""

    branches: list[BranchRow]
    next: tuple[int, int] | None
    """Where the next page begins: `seq` and `after` of the question for it. Null: there is none."""

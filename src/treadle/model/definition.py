"""The canonical definition: the form to which every dialect (YAML, JSON, builder, canvas) is normalised.

Owns the field names of docs/reference/definition.md. One instance is one immutable version of a workflow. Conditions
and mappings stay plain JSON here, in canonical form (see below); `graph` compiles them. Fields whose default is None
mean "not given"; `omit_defaults` keeps the canonical document minimal, and therefore its hash stable.

Canonical forms:
  condition   a dict with `type` (comparison, exists, in_set, array_length, and, or, not, cel); a CEL string has become
              {"type": "cel", "expr": "…"}. Operands are {"field": path} or {"literal": v}.
  source      as in 1.6: "$…" is a path, {"cel": …}, {"literal": …}, any other JSON is itself.
  path        always with its leading "$." where 1.10 allows leaving it out.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

Json = Any
"""A JSON value: dict, list, str, int, float, bool or None."""

Condition = dict[str, Any]
Mapping = dict[str, Json]


class _Part(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a definition: a frozen record that leaves out fields equal to their default."""


class Retry(_Part, frozen=True):
    """A retry policy at any of the three levels; `max_attempts` counts tries, the first included."""

    max_attempts: int = 1
    backoff: Literal["none", "linear", "exponential"] = "none"
    initial_delay_ms: int = 0
    max_delay_ms: int | None = None
    jitter: float | None = None
    """0–1; None means 0.1 for exponential backoff and 0 otherwise."""
    retryable_errors: list[str] | None = None
    """Only in an action's policy: error kinds or HTTP statuses to retry instead of the usual classes."""


class Execution(_Part, frozen=True):
    """How an action is executed: `ActionDef.execution`."""

    timeout_ms: int | None = None
    retry_policy: Retry | None = None


class Action(_Part, frozen=True):
    """An action: `kind` and, in `config`, exactly the keys that 1.3 lists for that kind."""

    kind: str
    config: dict[str, Json] = field(default_factory=dict)
    execution: Execution | None = None


class Step(_Part, frozen=True):
    """One action of a task, with its mappings and the effect of its failure."""

    ref: str
    action: Action
    input_mapping: Mapping | None = None
    output_mapping: Mapping | None = None
    when: Json = None
    """A condition, or {"if": condition, "then": verb, "else": verb} with continue, skip, succeed, fail."""
    on_failure: Literal["abort", "retry", "continue"] = "abort"


class Task(_Part, frozen=True):
    """A linear sequence of steps, executed by one worker."""

    steps: list[Step]
    name: str | None = None
    input_schema: Json = None
    output_schema: Json = None
    retry: Retry | None = None
    timeout_ms: int | None = None


class Compensation(_Part, frozen=True):
    """How a completed visit of a node is undone."""

    task: Task
    input_mapping: Mapping | None = None
    retry: Retry | None = None
    timeout_ms: int | None = None


class Concurrency(_Part, frozen=True):
    """A limit across runs, per key if one is given."""

    limit: int
    key: Json = None


class Queue(_Part, frozen=True):
    """A queue as authors write it; a node has its name, and its turn if it says more."""

    name: str
    priority: int = 1
    key: Json = None


class Turn(_Part, frozen=True):
    """The order in which work of a queue is claimed: smaller priorities first, then keys in turns."""

    priority: int = 1
    key: Json = None


class Mutex(_Part, frozen=True):
    """A critical section within the run (A4)."""

    name: str
    keep: bool = False


class EntityMove(_Part, frozen=True):
    """The place to which a visit's outcome takes the run's entity."""

    section: str | None = None
    complete_as: Literal["success", "failure", "neutral"] | None = None
    set_type: str | None = None


class EntityMoves(_Part, frozen=True):
    """Entity movement by outcome."""

    on_success: EntityMove | None = None
    on_failure: EntityMove | None = None


class NodeJoin(_Part, frozen=True):
    """`join` of a node. `inbound` carries m and rest, `tokens` carries n."""

    kind: Literal["all_inbound", "all_reachable", "inbound_fifo", "inbound", "tokens"]
    count: int = 0
    """M of {inbound: M} or N of {tokens: N}."""
    rest: Literal["absorb", "block", "cancel"] = "absorb"
    collect: bool = False
    """Canvas collector without a splitter upstream: the node's output is the array of what was delivered, in edge
    order."""


class Node(_Part, frozen=True):
    """A place of work: exactly one task (or none: it passes straight through), no routing logic."""

    task: Task | None = None
    input_mapping: Mapping | Literal["upstream", "item"] | None = None
    """None is {}. "upstream" (canvas): merge of the upstream nodes' outputs over the inbound edges, an entry node
    gets the run's input. "item" (canvas, directly below a splitter): the branch's item itself."""
    output_mapping: Mapping | None = None
    retry: Retry | None = None
    timeout_ms: int | None = None
    fan_out: Literal["all", "first_match"] = "all"
    on_no_match: Literal["error", "end"] = "error"
    join: NodeJoin | None = None
    """None is `arrival`: every token passes on its own."""
    terminates: Literal["completed", "cancelled", "failed"] | None = None
    compensate: Compensation | None = None
    compensate_on_failure: bool = False
    queue: str | None = None
    concurrency: Concurrency | None = None
    mutex: Mutex | None = None
    entity: EntityMoves | None = None
    description: str | None = None
    turn: Turn | None = None
    """Its turn among the work of its queue. None: priority 1, the workflow's name as key."""


class Foreach(_Part, frozen=True):
    """One token per item of a collection."""

    collection: str
    item_var: str | None = None
    on_empty: str | None = None
    """The join that an empty collection satisfies, where several are possible: the ref of its target node."""
    on_missing: Literal["fail", "empty", "single"] = "fail"
    max_in_flight: int | None = None
    by_item: bool = False
    """Canvas splitter: transitions of one group share the items; branch i holds one token per transition."""


class Trigger(_Part, frozen=True):
    """Exactly one of signal, after_ms, when."""

    signal: str | None = None
    key: Json = None
    buffer: int | Literal["none"] | None = None
    after_ms: int | None = None
    when: Condition | None = None


class Cancels(_Part, frozen=True):
    """The nodes and groups that a transition cancels when it fires (A6)."""

    nodes: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    join: Literal["fire", "drop"] = "fire"


class Strategy(_Part, frozen=True):
    """The strategy of a join: when it fires."""

    kind: Literal["all", "any", "m_of_n", "percent", "cel"] = "all"
    count: int = 0
    """M of m_of_n, P of percent."""
    expr: str | None = None


class Merge(_Part, frozen=True):
    """The merge of a join: how branch outputs become one value.

    `source` and `target` are canonical paths. A canvas collector uses the source and target "$._visit.output":
    the arriving visit's output, and the output of the node behind the join.
    """

    source: str
    target: str
    strategy: Literal["append", "concat", "merge_object", "keyed_by_branch", "last_wins", "vote"] = "append"
    streaming: bool = False


class Synchronization(_Part, frozen=True):
    """A join on a sibling group (1.7)."""

    sibling_group: str
    strategy: Strategy = Strategy()
    timeout_ms: int | None = None
    on_timeout: Literal["fail", "proceed_with_available"] = "fail"
    min_success_count: int | None = None
    on_branch_failure: Literal["include_errors", "exclude", "fail"] = "include_errors"
    on_early_complete: Literal["abandon", "cancel", "pass_through", "block"] = "abandon"
    merge: Merge | None = None


class Transition(_Part, frozen=True):
    """An edge: all routing is written here. `id` is filled in by the loader (`a->b`, `a->b#2`)."""

    id: str
    from_: str = field(name="from")
    to: str
    priority: float = 1
    on: Literal["success", "failure", "always"] = "success"
    condition: Condition | None = None
    spawn_count: int | None = None
    """Static count; None is 1. A dynamic count is in `spawn_from`."""
    spawn_from: Json = None
    """{"from_context": path} or {"cel": expr}."""
    foreach: Foreach | None = None
    sibling_group: str | None = None
    open: bool = False
    on_first_completion: Literal["continue_all", "cancel_remaining"] = "continue_all"
    on_first_start: Literal["continue_all", "cancel_remaining"] = "continue_all"
    loop_max_iterations: int | None = None
    trigger: Trigger | None = None
    interrupting: bool = True
    cancels: Cancels | None = None
    mapping: dict[str, str] | None = None
    """Edge data mapping: key of the target's input ← canonical path in the upstream node's output."""
    synchronization: Synchronization | None = None


class Limits(_Part, frozen=True):
    """Bounds on one run (2.2)."""

    max_tokens_per_run: int = 10_000
    max_spawn_count: int = 1_000
    max_nesting_depth: int = 10


class RunConcurrency(_Part, frozen=True):
    """How many runs of a workflow may be live at a time, per key (6.7)."""

    limit: int
    key: Json = None
    on_limit: Literal["queue", "skip", "cancel_oldest", "fail"] = "queue"


class RunRate(_Part, frozen=True):
    """How many runs may start in any window of `per_ms`, per key; with `burst` a bucket (6.7)."""

    limit: int
    per_ms: int
    key: Json = None
    burst: int | None = None
    on_limit: Literal["queue", "skip"] = "queue"


class Debounce(_Part, frozen=True):
    """Only the last of a flurry of starts with one key runs (6.7)."""

    key: Json
    ms: int
    max_wait_ms: int | None = None


class RunBatch(_Part, frozen=True):
    """Starts with one key become one run with input {items: […]} (6.7)."""

    size: int
    within_ms: int
    key: Json = None


class Budget(_Part, frozen=True):
    """The amounts a run and its children may spend together (6.8). None: that part has no limit."""

    cost: float | None = None
    tokens: int | None = None
    visits: int | None = None
    elapsed_ms: int | None = None
    warn_at: float = 0.8
    """The share of a limit at which the history warns."""
    on_exceeded: Literal["pause", "fail", "gate"] = "pause"


class Workflow(_Part, frozen=True):
    """One workflow definition, normalised."""

    workflow: str
    nodes: dict[str, Node]
    description: str | None = None
    tags: list[str] = field(default_factory=list)
    input_schema: Json = None
    state_schema: Json = None
    output_schema: Json = None
    start: list[str] = field(default_factory=list)
    """Never empty after loading: the default (nodes without inbound transition) is filled in."""
    output: Json | UnsetType = UNSET
    """A mapping (dict target key → source) or one source. UNSET: the values that `output.*` targets wrote."""
    timeout_ms: int | None = None
    on_timeout: Literal["human_gate", "fail", "cancel"] = "human_gate"
    on_unhandled_failure: Literal["fail_run", "let_others_finish"] = "fail_run"
    limits: Limits = Limits()
    compensation: Literal["on_failure", "on_failure_and_cancel", "off"] | None = None
    """None: `on_failure` as soon as there is anything to compensate."""
    on_compensation_failure: Literal["halt", "continue"] = "halt"
    budget: Budget | None = None
    strict: bool = False
    concurrency: RunConcurrency | None = None
    rate: RunRate | None = None
    debounce: Debounce | None = None
    batch: RunBatch | None = None
    priority: Json = None
    """Of its runs: a whole number or a source; larger goes first (6.7)."""
    on_deploy: Literal["keep", "migrate_if_safe"] = "keep"
    """Whether live runs of older versions are migrated to this one when it is deployed, if nothing is in the way."""
    transitions: list[Transition] = field(default_factory=list)
    canvas: Json = None
    """Only for drawing: positions, colours, sections, notes. Not part of the execution graph and its hash."""

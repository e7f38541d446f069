"""The execution graph: a workflow as the kernel reads it.

Immutable after compilation, shared by all runs of a version, no UI properties. Lookups are O(1): a node knows its
tiers presorted, its inbound transitions, its triggers; reachability is a bit mask; conditions and mappings are
closures.

A *join site* is the static half of a join: (target node, the group name its synchronization refers to). The dynamic
half, one per group instance, is in the run's state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from treadle.expression.cel import CompiledCel
from treadle.expression.conditions import CompiledCondition
from treadle.expression.paths import Path
from treadle.expression.schemas import Validator
from treadle.expression.sources import CompiledMapping, CompiledSource
from treadle.expression.view import CEL_BYTES_MAX
from treadle.model import definition as d

Json = Any


class VersionNotLoaded(Exception):
    """A history names a version whose graph its reader has not loaded beforehand."""


@dataclass(slots=True, eq=False)
class JoinSite:
    """A place where branches of a group named `key` meet: see the module's docstring."""

    index: int
    target: GraphNode
    key: str
    """`name:x`, `transition:t` or `node:n`: declared names win over transition ids over node refs (2.16)."""
    sync: d.Synchronization
    quorum: CompiledCel | None
    merge_source: Path | None
    merge_target: Path | None
    branch_path: Path | None = None
    """`merge_source` below `_branch.output`, if it begins there."""
    collects: bool = False
    """A canvas collector: visits' outputs become the target visit's output."""
    reach: int = 0
    """Bit i: a token at node i can still arrive here without leaving the group first."""
    patient: bool = False
    """The join waits for `all`: while a branch can still come and none has failed, there is nothing to decide."""
    notices: bool = False
    """An arrival does more than wait: it starts the join's clock, or is written into a streaming merge."""


@dataclass(slots=True, eq=False)
class GraphTransition:
    """One edge, compiled."""

    id: str
    index: int
    definition: d.Transition
    source: GraphNode
    target: GraphNode
    condition: CompiledCondition | None
    """None: always true."""
    spawn: CompiledSource | None
    collection: CompiledSource | None
    mapping: tuple[tuple[str, Path], ...]
    trigger_when: CompiledCondition | None
    trigger_key: CompiledSource | None
    site: JoinSite | None = None
    replicates: bool = False
    """The transition makes a group of its own (2.3)."""
    bears: bool = False
    """Short way: taking it begins a visit of its target and nothing else, because there is no join, loop, mutex or
    trigger."""
    resets: tuple[str, ...] = ()
    """Loops that are entered anew along it: their count starts again."""


@dataclass(slots=True, eq=False)
class GraphNode:
    """One node, compiled."""

    ref: str
    index: int
    definition: d.Node
    task: d.Task | None
    suspends: str | None
    """Kind of its suspending action."""
    native: str | None
    """Kind of an action the kernel itself carries out: emit, send and the group actions."""
    config: dict[str, CompiledSource]
    """The config of a suspending or native action, compiled as sources."""
    input: CompiledMapping | None
    outputs: tuple[tuple[Path, CompiledSource], ...]
    output_schema: Validator | None
    form: Validator | None
    compensate_input: CompiledMapping | None
    concurrency_key: CompiledSource | None
    queue_key: CompiledSource | None
    success: tuple[tuple[GraphTransition, ...], ...] = ()
    failure: tuple[tuple[GraphTransition, ...], ...] = ()
    triggers: tuple[GraphTransition, ...] = ()
    inbound: tuple[GraphTransition, ...] = ()
    signalled: bool = False
    """One of its triggers is a signal."""
    next: GraphTransition | None = None
    """Short way: the only transition on, if it has no condition, group, join, loop, cancellation or mutex, and leaving
    the node records nothing but an entity's journey."""
    meets: GraphTransition | None = None
    """Short way: as `next`, but the transition leads to a join of a group."""
    terminal: bool = False
    forks: bool = False
    """Some join names this node: each visit's dispatch is a group (A1)."""
    read: bool = False
    """Some expression reads `nodes.<ref>.output`."""
    edge_mapped: bool = False
    """Some inbound transition has a mapping."""
    bare: bool = False
    """Short way: its input is the empty object, because nothing is mapped to it."""
    prompt: bool = False
    """Short way: its task is handed out as soon as a token comes, because no trigger, mutex, queue, limit or deadline
    is in the way."""
    plucks: tuple[tuple[Path, Path], ...] | None = None
    """Short way: `outputs` as (target, path into the output), if each is a path and writes a whole top-level key. They
    need no view, and always fit."""
    reach: int = 0
    """Bit i: node i can be reached in one hop or more."""
    deadline_ms: int | None = None
    """The deadline of one attempt: the shorter `timeout_ms` of node and task."""
    bit: int = 0
    """This node's bit in a reachability mask."""
    mentions_run: bool = False
    """Its task may read `_run`, so work that leaves this process takes it along. Found as text, so it may be set
    needlessly."""


@dataclass(slots=True, eq=False)
class GraphFlow:
    """The compiled flow control of a workflow (6.7)."""

    concurrency: d.RunConcurrency | None
    rate: d.RunRate | None
    debounce: d.Debounce | None
    batch: d.RunBatch | None
    concurrency_key: CompiledSource | None
    rate_key: CompiledSource | None
    group_key: CompiledSource | None
    """The key of `debounce` or `batch`."""


@dataclass(slots=True, eq=False)
class ExecutionGraph:
    """A compiled workflow version."""

    workflow_name: str
    hash: str
    definition: d.Workflow
    nodes: dict[str, GraphNode]
    transitions: dict[str, GraphTransition]
    start: tuple[GraphNode, ...]
    terminal: tuple[str, ...]
    sites: tuple[JoinSite, ...]
    input_schema: Validator | None
    state_schema: Validator | None
    output_schema: Validator | None
    output: CompiledMapping | CompiledSource | None
    declared_groups: frozenset[str] = frozenset()
    version: int = 0
    """The number of the deployed version, set by the catalog."""
    cel_bytes_max: int = CEL_BYTES_MAX
    """How much data one evaluation of an expression may read; an operator's setting."""
    join_nodes: tuple[str, ...] = ()
    """Nodes with a join of their own."""
    has_when: bool = False
    has_mutex: bool = False
    has_queue: bool = False
    """Whether work of some node may have to wait for a worker: it has a queue, or a limit across runs."""
    flow: GraphFlow | None = None
    """Limits on the starts of its runs; None: every start is a run at once."""
    priority: CompiledSource | None = None
    """The priority of its runs (6.7)."""
    shards: int = 1
    """The number of shards of the store, set by the catalog: runs with flow control are all in one of them."""
    versions: dict[int, ExecutionGraph] = field(default_factory=dict, repr=False)
    """The versions of this workflow that are known here; all of them share one dict. Empty: the graph was compiled
    outside a catalog."""
    _sites_by_key: dict[str, tuple[JoinSite, ...]] = field(default_factory=dict)

    def at_version(self, version: int) -> ExecutionGraph:
        """The graph of another version: a run that was migrated is folded over several. Raises `VersionNotLoaded`."""
        if version == self.version or not self.versions:
            return self
        try:
            return self.versions[version]
        except KeyError:
            raise VersionNotLoaded(self.workflow_name, version) from None

    def group_key(self, name: str) -> str:
        """The key of a group name: a declared name, else a transition id, else a node ref (2.16)."""
        if name in self.declared_groups:
            return f"name:{name}"
        return f"transition:{name}" if name in self.transitions else f"node:{name}"

    def sites_of(self, names: Iterable[str]) -> tuple[JoinSite, ...]:
        """The joins at which a group with these names can meet."""
        found: list[JoinSite] = []
        for name in names:
            found.extend(self._sites_by_key.get(name, ()))
        return tuple(found)

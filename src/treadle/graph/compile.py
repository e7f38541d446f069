"""Compiling a definition into an execution graph: adjacency, tiers, join sites, reachability, compiled expressions.

Expects a checked definition: `language` has reported every mistake an author could make. Deterministic: the same
definition gives the same graph and the same hash on every machine.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from treadle.expression.cel import CompiledCel, compile_cel
from treadle.expression.conditions import compile_condition
from treadle.expression.paths import Path, parse_path
from treadle.expression.schemas import compile_schema
from treadle.expression.sources import (
    CompiledMapping,
    CompiledSource,
    compile_mapping,
    compile_source,
    compile_targets,
)
from treadle.graph.execution_graph import ExecutionGraph, GraphFlow, GraphNode, GraphTransition, JoinSite
from treadle.graph.plain import mark_plain
from treadle.graph.reach import fill_reach, fill_resets, fill_site_reach
from treadle.model import definition as d

SUSPENDING = frozenset({"human", "wait", "signal", "workflow_call", "webhook"})
NATIVE = frozenset({"emit", "send", "cancel_group", "add_siblings", "close_group"})
JOIN_NAMES = ("arrived", "succeeded", "failed", "live", "total", "results")


def content_hash(workflow: d.Workflow) -> str:
    """The hash of what a version *does*: of the canonical document without its canvas, description and tags."""
    bare = msgspec.structs.replace(workflow, canvas=None, description=None, tags=[])
    return hashlib.sha256(msgspec.json.encode(bare, order="sorted")).hexdigest()


def compile_graph(workflow: d.Workflow) -> ExecutionGraph:
    """The execution graph of a checked definition."""
    names = item_variables(workflow)
    nodes = {ref: _compile_node(ref, index, node, names) for index, (ref, node) in enumerate(workflow.nodes.items())}
    sites: dict[tuple[str, str], JoinSite] = {}
    transitions: dict[str, GraphTransition] = {}
    for index, definition in enumerate(workflow.transitions):
        transitions[definition.id] = _compile_transition(index, definition, nodes, names)
    declared = frozenset(t.sibling_group for t in workflow.transitions if t.sibling_group)
    for t in transitions.values():
        t.site = _site_of(t, transitions, declared, sites)
    _link(nodes, transitions)
    for site in sites.values():
        if site.key.startswith("node:"):
            nodes[site.key[5:]].forks = True
    fill_reach(nodes)
    fill_site_reach(tuple(transitions.values()), tuple(sites.values()))
    fill_resets(tuple(transitions.values()))
    graph = ExecutionGraph(
        workflow_name=workflow.workflow,
        hash=content_hash(workflow),
        definition=workflow,
        nodes=nodes,
        transitions=transitions,
        start=tuple(nodes[ref] for ref in workflow.start),
        terminal=tuple(ref for ref, node in nodes.items() if node.terminal),
        sites=tuple(sites.values()),
        input_schema=compile_schema(workflow.input_schema),
        state_schema=compile_schema(_growing(workflow.state_schema)),
        output_schema=compile_schema(workflow.output_schema),
        output=_compile_output(workflow, names),
        declared_groups=declared,
        join_nodes=tuple(ref for ref, node in workflow.nodes.items() if node.join is not None),
        has_when=any(t.trigger and t.trigger.when for t in workflow.transitions),
        has_mutex=any(node.mutex is not None for node in workflow.nodes.values()),
        has_queue=any(node.queue is not None or node.concurrency is not None for node in workflow.nodes.values()),
        flow=_compile_flow(workflow),
        priority=_key(workflow.priority),
        _sites_by_key=_by_key(sites.values()),
    )
    _mark_reads(graph)
    mark_plain(graph)
    return graph


def _compile_flow(workflow: d.Workflow) -> GraphFlow | None:
    """The workflow's flow control; None if a start never has to wait."""
    concurrency, rate, debounce, batch = workflow.concurrency, workflow.rate, workflow.debounce, workflow.batch
    if concurrency is None and rate is None and debounce is None and batch is None:
        return None
    group = debounce or batch
    return GraphFlow(
        concurrency,
        rate,
        debounce,
        batch,
        concurrency_key=_key(concurrency.key if concurrency is not None else None),
        rate_key=_key(rate.key if rate is not None else None),
        group_key=_key(group.key if group is not None else None),
    )


def _key(source: Any) -> CompiledSource | None:
    return compile_source(source) if source is not None else None


def _growing(schema: Any) -> Any:
    """The state's schema while it is being written: keys `required` at its top level need not be there yet."""
    if isinstance(schema, dict):
        return {key: value for key, value in schema.items() if key != "required"}
    return schema


def item_variables(workflow: d.Workflow) -> tuple[str, ...]:
    """Every name a `foreach` of this workflow may bind."""
    found = {t.foreach.item_var for t in workflow.transitions if t.foreach and t.foreach.item_var}
    return tuple(sorted(found))


def _compile_node(ref: str, index: int, node: d.Node, names: tuple[str, ...]) -> GraphNode:
    task = node.task
    action = task.steps[0].action if task is not None and len(task.steps) == 1 else None
    kind = action.kind if action is not None else None
    suspends = kind if kind in SUSPENDING else None
    native = kind if kind in NATIVE else None
    config: dict[str, CompiledSource] = {}
    if action is not None and (suspends or native):
        config = {key: compile_source(value, names) for key, value in action.config.items()}
    mapping = node.input_mapping
    undo = node.compensate
    outputs = tuple(compile_targets(node.output_mapping, names)) if node.output_mapping else ()
    return GraphNode(
        ref=ref,
        index=index,
        bit=1 << index,
        definition=node,
        task=task,
        suspends=suspends,
        native=native,
        config=config,
        input=compile_mapping(mapping, names) if isinstance(mapping, dict) else None,
        outputs=outputs,
        plucks=_plucks(outputs),
        output_schema=compile_schema(task.output_schema) if task is not None else None,
        deadline_ms=_deadline(node),
        form=compile_schema(action.config.get("form")) if action is not None and suspends == "human" else None,
        concurrency_key=compile_source(node.concurrency.key, names)
        if node.concurrency is not None and node.concurrency.key is not None
        else None,
        queue_key=compile_source(node.turn.key, names) if node.turn is not None and node.turn.key is not None else None,
        compensate_input=compile_mapping(undo.input_mapping, (*names, "input", "output"))
        if undo is not None and undo.input_mapping is not None
        else None,
        mentions_run=task is not None and b"_run" in msgspec.json.encode(task),
    )


def _plucks(outputs: tuple[tuple[Path, CompiledSource], ...]) -> tuple[tuple[Path, Path], ...] | None:
    found = tuple((target, source.path) for target, source in outputs if source.path is not None and len(target) == 2)
    return found if len(found) == len(outputs) else None


def _deadline(node: d.Node) -> int | None:
    given = (node.timeout_ms, node.task.timeout_ms if node.task is not None else None)
    return min((limit for limit in given if limit is not None), default=None)


def _compile_transition(
    index: int, t: d.Transition, nodes: dict[str, GraphNode], names: tuple[str, ...]
) -> GraphTransition:
    trigger = t.trigger
    return GraphTransition(
        id=t.id,
        index=index,
        definition=t,
        source=nodes[t.from_],
        target=nodes[t.to],
        condition=compile_condition(t.condition, names) if t.condition is not None else None,
        spawn=_compile_spawn(t, names),
        collection=compile_source(t.foreach.collection, names) if t.foreach is not None else None,
        mapping=tuple((key, parse_path(path)) for key, path in (t.mapping or {}).items()),
        trigger_when=compile_condition(trigger.when, names) if trigger and trigger.when is not None else None,
        trigger_key=compile_source(trigger.key, names) if trigger and trigger.key is not None else None,
        replicates=t.foreach is not None
        or t.spawn_from is not None
        or (t.spawn_count is not None and t.spawn_count != 1),
    )


def _compile_spawn(t: d.Transition, names: tuple[str, ...]) -> CompiledSource | None:
    if t.spawn_from is None:
        return None
    if isinstance(t.spawn_from, dict) and "from_context" in t.spawn_from:
        return compile_source(t.spawn_from["from_context"], names)
    return compile_source(t.spawn_from, names)


def _site_of(
    t: GraphTransition,
    transitions: dict[str, GraphTransition],
    declared: frozenset[str],
    sites: dict[tuple[str, str], JoinSite],
) -> JoinSite | None:
    sync, target = t.definition.synchronization, t.target
    if sync is None:
        return None
    name = sync.sibling_group
    key = f"name:{name}" if name in declared else f"transition:{name}" if name in transitions else f"node:{name}"
    site = sites.get((target.ref, key))
    if site is None:
        expr = sync.strategy.expr
        quorum: CompiledCel | None = compile_cel(expr, JOIN_NAMES) if expr is not None else None
        site = JoinSite(
            index=len(sites),
            target=target,
            key=key,
            sync=sync,
            quorum=quorum,
            merge_source=parse_path(sync.merge.source) if sync.merge else None,
            merge_target=parse_path(sync.merge.target) if sync.merge else None,
            patient=sync.strategy.kind == "all",
        )
        if site.merge_source is not None and site.merge_source[:2] == ("_branch", "output"):
            site.branch_path = site.merge_source[2:]
        site.collects = site.merge_target is not None and site.merge_target[0] == "_visit"
        streams = sync.merge is not None and sync.merge.streaming and not site.collects
        site.notices = streams or sync.timeout_ms is not None
        sites[target.ref, key] = site
    return site


def _link(nodes: dict[str, GraphNode], transitions: dict[str, GraphTransition]) -> None:
    """Adjacency: tiers by ascending priority, definition order within a tier."""
    out: dict[str, list[GraphTransition]] = {ref: [] for ref in nodes}
    inbound: dict[str, list[GraphTransition]] = {ref: [] for ref in nodes}
    for t in transitions.values():
        out[t.source.ref].append(t)
        inbound[t.target.ref].append(t)
    for ref, node in nodes.items():
        routed = [t for t in out[ref] if t.definition.trigger is None]
        node.success = _tiers([t for t in routed if t.definition.on in ("success", "always")])
        node.failure = _tiers([t for t in routed if t.definition.on in ("failure", "always")])
        node.triggers = tuple(t for t in out[ref] if t.definition.trigger is not None)
        node.inbound = tuple(inbound[ref])
        node.signalled = any(t.definition.trigger and t.definition.trigger.signal for t in node.triggers)
        node.edge_mapped = any(t.mapping for t in inbound[ref])
        node.terminal = not out[ref]


def _tiers(transitions: list[GraphTransition]) -> tuple[tuple[GraphTransition, ...], ...]:
    priorities = sorted({t.definition.priority for t in transitions})
    return tuple(tuple(t for t in transitions if t.definition.priority == p) for p in priorities)


def _by_key(sites: Any) -> dict[str, tuple[JoinSite, ...]]:
    grouped: dict[str, tuple[JoinSite, ...]] = {}
    for site in sites:
        grouped[site.key] = (*grouped.get(site.key, ()), site)
    return grouped


def _compile_output(workflow: d.Workflow, names: tuple[str, ...]) -> CompiledMapping | CompiledSource | None:
    output = workflow.output
    if output is msgspec.UNSET:
        return None
    if isinstance(output, dict) and not (output.keys() & {"cel", "literal"} and len(output) == 1):
        return compile_mapping(output, names)
    return compile_source(output, names)


def _mark_reads(graph: ExecutionGraph) -> None:
    """Mark the nodes whose outputs must be kept in scope: those that some expression, or the canvas's default input,
    reads."""
    reads: set[Path] = set()
    for node in graph.nodes.values():
        for part in (node.input, node.compensate_input, *(source for _, source in node.outputs)):
            reads |= part.reads if part is not None else set()
        for source in node.config.values():
            reads |= source.reads
        if node.definition.input_mapping == "upstream" or (
            node.definition.join is not None and node.definition.join.collect
        ):
            reads |= {("nodes", t.source.ref) for t in node.inbound}
        if any(t.mapping for t in node.inbound):
            reads |= {("nodes", t.source.ref) for t in node.inbound if t.mapping}
    for t in graph.transitions.values():
        for expression in (t.condition, t.spawn, t.collection, t.trigger_when, t.trigger_key):
            reads |= expression.reads if expression is not None else set()
    for site in graph.sites:
        reads |= site.quorum.reads if site.quorum is not None else set()
        reads |= {site.merge_source} if site.merge_source is not None else set()
    if graph.output is not None:
        reads |= graph.output.reads
    everything = any(path in ((), ("nodes",)) for path in reads)
    wanted = {path[1] for path in reads if len(path) > 1 and path[0] == "nodes"}
    for node in graph.nodes.values():
        node.read = everything or node.ref in wanted

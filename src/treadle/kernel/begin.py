"""A token begins its visit: its input is computed and its work is handed out, waited for, or passed over."""

from __future__ import annotations

from typing import Any

from treadle.errors import EvaluationError
from treadle.expression.paths import MISSING, Path, get_in
from treadle.graph.execution_graph import GraphNode, GraphTransition
from treadle.kernel import budget, complete, entity, native, saga, suspend, timers, triggers
from treadle.kernel.deciding import Deciding
from treadle.kernel.failure import fail_token
from treadle.kernel.members import COMPENSATION, PENDING, RUNNING
from treadle.kernel.short_ways import moves
from treadle.kernel.state import Token
from treadle.kernel.view import branch_of
from treadle.model import effects as x
from treadle.model.errors import Error
from treadle.model.states import RunStatus, Waiting

Json = Any


def begin(d: Deciding, token: Token, *, allowed: bool = False) -> None:
    """Begin the visit of a pending token. Nothing happens while the run is paused or over, or while a budget or a mutex
    keeps the token out. `allowed`: the budget of a run above lets it begin."""
    if token.state is not PENDING:
        return
    state = d.state
    if token.mode is COMPENSATION:
        if state.status is RunStatus.COMPENSATING:
            saga.dispatch(d, token)
        return
    if state.status is not RUNNING:
        return
    if state.budget is not None and not budget.may_begin(d, token, allowed=allowed):
        return
    node = d.graph.nodes[token.node]
    if node.prompt and node.bare and state.entity is None and token.given is None:
        moves.hand_out(d, token, node, {})
        return
    if state.entity is not None:
        entity.arrive(d, node, token.id)
    if node.triggers and triggers.on_arrival(d, token):
        return
    if node.definition.mutex is not None and not _admitted(d, token, node):
        return
    try:
        value = visit_input(d, token, node)
    except EvaluationError as problem:
        fail_token(d, token, Error(problem.kind, f"input_mapping of {node.ref!r}: {problem}"))
        return
    if node.suspends is not None:
        suspend.suspend(d, token, node, value)
    elif node.native is not None:
        native.perform(d, token, node, value)
    elif node.task is not None:
        dispatch(d, token, node, value)
    else:
        _pass(d, token, node, value)


def dispatch(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    """Hand the task to an executor. Work of this process starts with the commit that dispatched it; a queue's worker
    claims it first."""
    if node.prompt:
        moves.hand_out(d, token, node, value)
        return
    attempt = token.attempt + 1
    queue = node.definition.queue
    slot = slot_of(d, token, node) if node.definition.concurrency is not None else None
    d.token_dispatched(token.id, attempt, value, queue=queue)
    if queue is None and slot is None:
        d.token_started(token.id, attempt)
    d.effects.append(x.RunTask(token.id, attempt, node.ref, value, queue=queue, slot=slot))
    if node.deadline_ms is not None:  # the coordinator's own clock: it notices a worker that never answers
        timers.start_attempt(d, node.deadline_ms, token)


def slot_of(d: Deciding, token: Token, node: GraphNode) -> x.Slot | None:
    """The concurrency limit of the node, which an executor must observe before it starts. Only then is the attempt
    `started`."""
    limit = node.definition.concurrency
    if limit is None:
        return None
    try:
        key = node.concurrency_key.evaluate(d.view(token)) if node.concurrency_key is not None else None
    except EvaluationError:
        key = None  # without a value all such visits share one limit: the cautious reading
    return x.Slot(f"{d.graph.workflow_name}/{node.ref}", limit.limit, key)


def _pass(d: Deciding, token: Token, node: GraphNode, value: Json) -> None:
    """A node without a task: the token passes through, or waits if only triggers lead out."""
    d.token_started(token.id, token.attempt + 1, input=value)
    if node.triggers and not node.success:
        d.token_waiting(token.id, Waiting.TRIGGER, detail={"triggers": [t.id for t in node.triggers]})
        return
    complete.complete_visit(d, token, token.output if token.output is not None else value)


def _admitted(d: Deciding, token: Token, node: GraphNode) -> bool:
    """Whether the visit may enter its critical section now. If not, it waits in the queue of the mutex."""
    mutex = node.definition.mutex
    assert mutex is not None
    if token.mutex == mutex.name:
        return True
    state = d.state.mutexes.get(mutex.name)
    if state is None or (not state.holders and not state.queue):
        return True
    detail = {"mutex": mutex.name, "held_by": list(state.holders)}
    d.token_waiting(token.id, Waiting.MUTEX, detail=detail)
    return False


def admit_next(d: Deciding) -> bool:
    """Every mutex that has become free admits the token that has waited longest. Returns whether one was admitted."""
    admitted = False
    for state in d.state.mutexes.values():
        if state.queue and not state.holders and d.running:
            token = state.queue[0]
            d.token_resumed(token, "mutex")
            d.ready.append(token)
            admitted = True
    return admitted


def visit_input(d: Deciding, token: Token, node: GraphNode) -> Json:
    """The task's input: the node's mapping over the token's scope, then the mappings of the transitions the token came
    along."""
    if token.given is not None:
        return token.given[0]
    mapping = node.definition.input_mapping
    if mapping == "upstream":
        return _upstream(d, token, node)
    if mapping == "item":
        return _item(d, token, d.graph.transitions[token.via] if token.via is not None else None)
    value = node.input.evaluate(d.view(token)) if node.input is not None else {}
    if node.edge_mapped:
        merged = token.merged if token.merged else [token.via]
        for t in node.inbound:
            if t.id in merged and t.mapping:
                value = {**value, **_mapped(t, d.view(token).get(("nodes", t.source.ref, "output")))}
    return value


def _upstream(d: Deciding, token: Token, node: GraphNode) -> Json:
    """The input of a canvas node by default: the upstream outputs in edge order, later ones win, null is skipped. An
    entry node gets the run's input."""
    if not node.inbound:
        return d.state.input if d.state.input is not None else {}
    if token.output is not None:
        return token.output  # of a collector: the values it has collected
    view = d.view(token)
    merged: dict[str, Json] = {}
    for t in node.inbound:
        output = view.get(("nodes", t.source.ref, "output"))
        if output is MISSING or output is None:
            continue
        if t.mapping:
            merged.update(_mapped(t, output))
        elif isinstance(output, dict):
            merged.update(output)
        else:
            merged[t.source.ref] = output
    return merged


def _item(d: Deciding, token: Token, via: GraphTransition | None) -> Json:
    branch = branch_of(d.state, token.frames)
    item = None if branch is MISSING else branch["item"]
    return _mapped(via, item) if via is not None and via.mapping else item


def _mapped(t: GraphTransition, output: Json) -> dict[str, Json]:
    return {key: _relative(output, path) for key, path in t.mapping}


def _relative(output: Json, path: Path) -> Json:
    """Edge paths are relative to the upstream output; a leading `output` is dropped unless it is a key (1.10)."""
    if path[:1] == ("output",) and not (isinstance(output, dict) and "output" in output):
        path = path[1:]
    value = get_in(output, path)
    return None if value is MISSING else value

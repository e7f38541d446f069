"""Checks of a migration at visits: nodes that are gone, waits whose node changed its kind, answers that the
new form refuses (6.5)."""

from __future__ import annotations

from treadle.graph.execution_graph import GraphNode
from treadle.kernel.defined import defining
from treadle.kernel.migration_parts import Obstacles, visits
from treadle.kernel.renaming import Renaming
from treadle.kernel.state import RunState, Token
from treadle.model.states import ExternalState, GateState, Waiting

_SUSPENDED = {
    Waiting.HUMAN: "a person",
    Waiting.SIGNAL: "a signal",
    Waiting.SUBWORKFLOW: "a child run",
    Waiting.EXTERNAL: "an answer from outside",
    Waiting.QUEUE: "a worker of its queue",
    Waiting.TRIGGER: "a trigger",
    Waiting.TIMER: "a timer",
}
_KINDS = {
    "workflow_call": "a call of a workflow",
    "task": "a task",
    "queue": "a task of a queue",
    "passes": "without a task",
}


def check_nodes(state: RunState, names: Renaming, found: Obstacles) -> None:
    """A visit's node that is neither there nor mapped."""
    for token in visits(state):
        if names.node(token.node) is None:
            text = f"node {token.node!r} is not in version {names.new.version}, and not mapped to one that is"
            found.add(f"node {token.node}", text, token.id)


def check_waits(state: RunState, names: Renaming, found: Obstacles) -> None:
    """A wait whose node changed its kind."""
    for token in visits(state):
        node = names.node(token.node)
        reason = Waiting.QUEUE if token.external is ExternalState.CLAIMED else token.waiting
        if reason is None or reason is Waiting.SIBLINGS or node is None:
            continue
        before, after = defining(state, token), node
        if reason is Waiting.MUTEX:
            if _mutex(before) != _mutex(after):
                text = f"the visit waits for a mutex, and node {token.node!r} has another one"
                found.add(f"node {token.node}", f"{text}: {_mutex(before)} was, {_mutex(after)} is", token.id)
            continue
        if is_backing_off(state, token):
            same = _attempts(before) == _attempts(after)
        else:
            same = kind_of(before) == kind_of(after)
        if not same:
            waits = _SUSPENDED[reason]
            text = f"the visit waits for {waits}, and node {token.node!r} changed its kind"
            found.add(f"node {token.node}", f"{text}: {_told(before)} was, {_told(after)} is", token.id)


def is_backing_off(state: RunState, token: Token) -> bool:
    """Whether the visit waits for its next attempt."""
    return any(state.timers[timer].purpose == "retry" for timer in token.timers if timer in state.timers)


def kind_of(node: GraphNode) -> str:
    """The kind of a node, as far as a wait depends on it."""
    if node.suspends is not None:
        return node.suspends
    if node.definition.queue is not None:
        return "queue"
    if node.task is not None:
        return "task"
    return "trigger" if node.triggers and not node.success else "passes"


def _attempts(node: GraphNode) -> str:
    """As `kind_of`, for a next attempt: a task may go to a queue, or come back from one."""
    kind = kind_of(node)
    return "task" if kind == "queue" else kind


def _mutex(node: GraphNode) -> str:
    return repr(node.definition.mutex.name) if node.definition.mutex is not None else "none"


def _told(node: GraphNode) -> str:
    return _KINDS.get(kind_of(node), kind_of(node))


def check_answers(state: RunState, names: Renaming, found: Obstacles) -> None:
    """An answer recorded during a pause, or one of a quorum so far, that the new form refuses."""
    for token in visits(state):
        node = names.node(token.node)
        if node is None or node.form is None:
            continue
        item = state.deferred.get(token.id)
        if item is not None and item.kind == "gate":
            problem = node.form.problem(item.output)
            if problem is not None:
                text = f"the new form of gate {token.node!r} refuses the answer recorded during the pause: {problem}"
                found.add(f"gate {token.node}", text, token.id)
        if token.gate is not GateState.OPEN or token.asked is None:
            continue
        for answer in token.asked.answers:
            problem = node.form.problem(answer.data)
            if problem is not None:
                text = f"the new form of gate {token.node!r} refuses the answer of {answer.by!r}: {problem}"
                found.add(f"gate {token.node}", text, token.id)

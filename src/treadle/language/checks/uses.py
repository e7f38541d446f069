"""The inventory of a workflow's expressions: the place of each, its form, the data it reads and when it is evaluated.

Both the syntax checks and the dataflow checks walk it, so that neither can forget a place.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from msgspec import UNSET

from treadle.language.checks.flow import Flow
from treadle.language.checks.tasks import tasks_of
from treadle.language.phrases import is_computed
from treadle.language.problem import Path
from treadle.model.definition import Mapping, Node, Step, Transition, Workflow

Json = Any


class Form(Enum):
    """The form of an expression."""

    CONDITION = "condition"
    SOURCE = "source"
    JOIN = "join"
    """A `{cel}` strategy: sees the join's numbers too."""


class Sees(Enum):
    """The data an expression reads."""

    RUN = "run"
    """The token's scope: input, state, output, nodes, …"""
    TASK = "task"
    """A task's own context {input, state, output}: `state` is not the run's."""
    OUTPUT = "output"
    """An output mapping: `$` is the task's output."""


class When(Enum):
    """The moment at which an expression is evaluated."""

    BEFORE = "before"
    """On entering a node, before its task."""
    LEAVING = "leaving"
    """On leaving a node, by this transition."""
    WAITING = "waiting"
    """At any time while the token is at the node."""
    END = "end"
    """When the run completes."""
    NEVER = "never"
    """Not with the run's data."""


class Use(NamedTuple):
    """One expression."""

    at: Path
    form: Form
    value: Json
    sees: Sees
    when: When
    node: str = ""
    transition: Transition | None = None


def uses_of(flow: Flow) -> Iterator[Use]:
    """Every expression of the workflow."""
    for ref, node in flow.workflow.nodes.items():
        yield from _of_node(ref, node)
    for index, transition in flow.edges:
        yield from _of_transition(index, transition)
    yield from _of_starts(flow.workflow)
    output = flow.workflow.output
    if output is UNSET:
        return
    if isinstance(output, dict) and not is_computed(output) and set(output) != {"literal"}:
        yield from _mapping(("output",), output, Sees.RUN, When.END)
    else:
        yield Use(("output",), Form.SOURCE, output, Sees.RUN, When.END)


def _of_starts(workflow: Workflow) -> Iterator[Use]:
    """Keys of flow control and the priority: they read the input of a start, before there is a run (6.7)."""
    parts = ("concurrency", workflow.concurrency), ("rate", workflow.rate), ("debounce", workflow.debounce)
    for name, part in (*parts, ("batch", workflow.batch)):
        if part is not None and part.key is not None:
            yield Use((name, "key"), Form.SOURCE, part.key, Sees.OUTPUT, When.NEVER)
    if workflow.priority is not None:
        yield Use(("priority",), Form.SOURCE, workflow.priority, Sees.OUTPUT, When.NEVER)


def _mapping(at: Path, mapping: Mapping, sees: Sees, when: When, node: str = "") -> Iterator[Use]:
    for key, source in mapping.items():
        yield Use((*at, key), Form.SOURCE, source, sees, when, node)


def _of_node(ref: str, node: Node) -> Iterator[Use]:
    at: Path = ("nodes", ref)
    if isinstance(node.input_mapping, dict):
        yield from _mapping((*at, "input_mapping"), node.input_mapping, Sees.RUN, When.BEFORE, ref)
    if node.output_mapping is not None:
        yield from _mapping((*at, "output_mapping"), node.output_mapping, Sees.OUTPUT, When.NEVER, ref)
    if node.concurrency is not None and node.concurrency.key is not None:
        yield Use((*at, "concurrency", "key"), Form.SOURCE, node.concurrency.key, Sees.RUN, When.BEFORE, ref)
    if node.turn is not None and node.turn.key is not None:
        yield Use((*at, "queue", "key"), Form.SOURCE, node.turn.key, Sees.RUN, When.BEFORE, ref)
    if node.compensate is not None and node.compensate.input_mapping is not None:
        place = (*at, "compensate", "input_mapping")
        yield from _mapping(place, node.compensate.input_mapping, Sees.RUN, When.NEVER, ref)
    for place, task, _ in tasks_of(ref, node):
        for number, step in enumerate(task.steps):
            alone = len(task.steps) == 1 and place[2] == "task"
            yield from _of_step((*place, "steps", number), step, ref, alone)


_RUN_CONFIG = frozenset(
    [
        "human",
        "wait",
        "signal",
        "workflow_call",
        "webhook",
        "emit",
        "send",
        "cancel_group",
        "add_siblings",
        "close_group",
    ]
)
"""Kinds whose config, as a node's only step, is read by the kernel from the token's scope."""


def _of_step(at: Path, step: Step, ref: str, alone: bool) -> Iterator[Use]:
    if step.input_mapping is not None:
        yield from _mapping((*at, "input_mapping"), step.input_mapping, Sees.TASK, When.NEVER, ref)
    if step.output_mapping is not None:
        yield from _mapping((*at, "output_mapping"), step.output_mapping, Sees.OUTPUT, When.NEVER, ref)
    if step.when is not None:
        condition = step.when.get("if", step.when)
        place = (*at, "when", "if") if "if" in step.when else (*at, "when")
        yield Use(place, Form.CONDITION, condition, Sees.TASK, When.NEVER, ref)
    by_kernel = alone and step.action.kind in _RUN_CONFIG
    sees, when = (Sees.RUN, When.BEFORE) if by_kernel else (Sees.TASK, When.NEVER)
    for key, value in step.action.config.items():
        place = (*at, "action", key)
        if step.action.kind == "assert" and key == "condition":
            yield Use(place, Form.CONDITION, value, Sees.TASK, When.NEVER, ref)
        elif key in _MEMBERS.get(step.action.kind, ()) and isinstance(value, dict) and not is_computed(value):
            yield from _mapping(place, value, Sees.TASK, When.NEVER, ref)
        elif key in _MEMBERS.get(step.action.kind, ()) and isinstance(value, list):
            yield from (Use((*place, i), Form.SOURCE, v, sees, when, ref) for i, v in enumerate(value))
        elif key not in _TEXTS.get(step.action.kind, ()):
            yield Use(place, Form.SOURCE, value, sees, when, ref)


_MEMBERS = {"set": ("values",), "http": ("headers", "query"), "shell": ("argv", "env")}
"""Config whose members are sources of their own."""
_TEXTS = {
    "template": ("template",),
    "llm": ("prompt", "system", "messages", "response_schema"),
    "mock": ("output", "error"),
    "human": ("form",),
    "work": ("name", "config"),
}
"""Config that is text or data of its own kind even where it begins with `$`."""


def _of_transition(index: int, transition: Transition) -> Iterator[Use]:
    at: Path = ("transitions", index)
    node = transition.from_
    if transition.condition is not None:
        when = When.LEAVING if transition.trigger is None else When.WAITING
        yield Use((*at, "condition"), Form.CONDITION, transition.condition, Sees.RUN, when, node, transition=transition)
    if transition.foreach is not None:
        place = (*at, "foreach", "collection")
        yield Use(
            place, Form.SOURCE, transition.foreach.collection, Sees.RUN, When.LEAVING, node, transition=transition
        )
    if transition.spawn_from is not None:
        source = transition.spawn_from.get("from_context", transition.spawn_from)
        place = (*at, "spawn_count", next(iter(transition.spawn_from)))
        yield Use(place, Form.SOURCE, source, Sees.RUN, When.LEAVING, node, transition=transition)
    if transition.trigger is not None:
        for name, form in (("key", Form.SOURCE), ("when", Form.CONDITION)):
            value = getattr(transition.trigger, name)
            if value is not None:
                yield Use((*at, "trigger", name), form, value, Sees.RUN, When.WAITING, node, transition=transition)
    sync = transition.synchronization
    if sync is not None and sync.strategy.expr is not None:
        place = (*at, "synchronization", "strategy", "cel")
        yield Use(place, Form.JOIN, sync.strategy.expr, Sees.RUN, When.WAITING, node, transition=transition)

"""Objections to the data of a command, whatever the state of its run: an input or an answer against its schema.

`decide` refuses such a command, and a process that only passes it on can say so at once, with the same words.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.defined import defining
from treadle.kernel.depth import is_too_deep, too_deep
from treadle.kernel.state import RunState
from treadle.model.commands import CompleteGate
from treadle.model.errors import Rejection


def to_input(graph: ExecutionGraph, value: Any) -> Rejection | None:
    """The objection to a run's input."""
    if is_too_deep(value):
        return Rejection("BAD_REQUEST", too_deep("the input"))
    problem = graph.input_schema.problem(value) if graph.input_schema is not None else None
    return None if problem is None else Rejection("SCHEMA", f"input of {graph.workflow_name!r}: {problem}")


def to_whole_input(graph: ExecutionGraph, value: Any) -> Rejection | None:
    """The objection to the input that a fork has instead of an inherited one. That of a batch is {items: […]}, and the
    schema is that of an item."""
    if graph.definition.batch is None:
        return to_input(graph, value)
    items = value.get("items") if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(items, list) or not items:
        text = f"{graph.workflow_name!r} has batches: their whole input is {{items: […]}}, with at least one item"
        return Rejection("BAD_REQUEST", text)
    return next((problem for item in items if (problem := to_input(graph, item)) is not None), None)


def to_answer(state: RunState, command: CompleteGate) -> Rejection | None:
    """The objection to the answer of a gate; None also for a visit that is not there any more."""
    token = state.tokens.get(command.token)
    if token is None:
        return None
    if is_too_deep(command.data):
        return Rejection("BAD_REQUEST", too_deep("the answer"))
    node = defining(state, token)
    problems = node.form.problems(command.data) if node.form is not None else ()
    if not problems:
        return None
    told = "; ".join(f"{problem.place}: {problem.message}" for problem in problems)
    return Rejection("SCHEMA", f"answer to {node.ref!r}: {told}", problems)

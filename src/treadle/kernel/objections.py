"""Objections to the data of a command, whatever the state of its run: an input or an answer against its schema.

`decide` refuses such a command, and a process that only passes it on can say so at once, with the same words.
"""

from __future__ import annotations

from typing import Any

from treadle.graph.execution_graph import ExecutionGraph
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


def to_answer(state: RunState, command: CompleteGate) -> Rejection | None:
    """The objection to the answer of a gate; None also for a visit that is not there any more."""
    token = state.tokens.get(command.token)
    if token is None:
        return None
    if is_too_deep(command.data):
        return Rejection("BAD_REQUEST", too_deep("the answer"))
    node = state.graph.nodes[token.node]
    problem = node.form.problem(command.data) if node.form is not None else None
    return None if problem is None else Rejection("SCHEMA", f"answer to {node.ref!r}: {problem}")

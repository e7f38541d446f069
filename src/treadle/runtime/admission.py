"""The check before an engine stores a definition: whether this engine can do what the definition asks.

A loader knows the definition, an engine knows functions and kinds; here the two meet, which is why this module alone of
the runtime may use `language` (tests/arch/house.py says so). Raises all problems at once, before anything is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from treadle.actions.registry import Registry
from treadle.errors import DefinitionError
from treadle.language.builder import Flow
from treadle.language.checks.signatures import check_signatures
from treadle.language.problem import path_text
from treadle.model.definition import Workflow
from treadle.runtime.client import Definition, workflow_of
from treadle.tasks.find import find_function
from treadle.tasks.trust import Trust

Functions = Mapping[str, Callable[..., Any]]


def functions_of(definition: Definition) -> Functions:
    """Those a `Flow` brings along: one of a notebook or a script can be found in no other way."""
    return getattr(definition, "functions", None) or {}


def admit(definition: Definition, registry: Registry, queues: Collection[str] | None) -> Workflow:
    """The workflow. `queues` are those this engine works for (None: all): a function for another need not be here.
    Raises DefinitionError."""
    known = {**registry.functions, **functions_of(definition)}
    if isinstance(definition, Flow):
        definition = definition.load(
            signatures=lambda name: _find(name, known, registry.trust), kinds=dict.fromkeys(registry.kinds())
        )
    workflow = workflow_of(definition)
    elsewhere = tuple(
        f"{path_text(('nodes', ref))}."
        for ref, node in workflow.nodes.items()
        if node.queue is not None and queues is not None and node.queue not in queues
    )
    problems = [
        problem
        for problem in check_signatures(workflow, known, trust=registry.trust)
        if problem.code != "UNKNOWN_FUNCTION" or not problem.at.startswith(elsewhere)
    ]
    if problems:
        raise DefinitionError(problems)
    return workflow


def _find(name: str, known: Functions, trust: Trust) -> Callable[..., Any] | None:
    """None: whether it has to be here is judged when the queue of its node is known."""
    try:
        return find_function(name, known, trust)
    except Exception:  # importing runs somebody's module
        return None

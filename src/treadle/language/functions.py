"""Finding the functions that a definition names, where it is deployed: `load_text(…, signatures=finder(workflows))`.

Owns the rule which of them must be found there. Imports the modules a definition names, as far as the operator allows
them: only for a process that is about to execute it, or that hands it to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from treadle.language.checks.tasks import tasks_of
from treadle.model.definition import Workflow
from treadle.tasks.find import find_function
from treadle.tasks.trust import PROJECT, Trust


def finder(
    workflows: Iterable[Workflow], allow: Iterable[str] = (PROJECT,)
) -> Callable[[str], Callable[..., Any] | None]:
    """Returns a function that finds a function by its name. None from it: not checked here. An exception from it says
    why there is none. `allow`: the modules, and folders of modules, whose functions workflows may call.

    A name without a module is registered by the program that executes it. A function that only a queue's work calls may
    be known to workers elsewhere alone; it is checked where it can be imported."""
    trust = Trust(allow)
    needed = {name for workflow in workflows for name in _needed(workflow)}

    def find(name: str) -> Callable[..., Any] | None:
        if ":" not in name:
            return None
        try:
            return find_function(name, {}, trust)
        except Exception:  # importing runs the author's module, which may raise anything
            if name in needed:
                raise
            return None

    return find


def _needed(workflow: Workflow) -> Iterator[str]:
    """The names every engine must know: compensations are an engine's own work, even of a node with a queue."""
    for ref, node in workflow.nodes.items():
        for at, task, _given in tasks_of(ref, node):
            if node.queue is not None and "compensate" not in at[2:]:
                continue
            for step in task.steps:
                name = step.action.config.get("function") if step.action.kind == "python" else None
                if isinstance(name, str):
                    yield name

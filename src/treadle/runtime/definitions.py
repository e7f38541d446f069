"""The forms of a definition: a workflow, one that was read and checked, or one written in Python."""

from __future__ import annotations

from typing import Protocol

from treadle.model.definition import Workflow


class Checked(Protocol):
    """A definition that was read and checked: what `load_file` and `Flow.load` give."""

    def require(self) -> Workflow:
        """The workflow. Raises DefinitionError with every problem when there are errors."""


class Building(Protocol):
    """A definition written in Python: a `Flow`."""

    def build(self) -> Workflow:
        """The workflow. Raises DefinitionError."""


Definition = Workflow | Checked | Building


def workflow_of(definition: Definition) -> Workflow:
    """The workflow of a definition in any of these forms."""
    if isinstance(definition, Workflow):
        return definition
    return definition.require() if hasattr(definition, "require") else definition.build()


def kinds_of(workflow: Workflow) -> set[str]:
    """The kinds of actions a workflow has."""
    tasks = [node.task for node in workflow.nodes.values() if node.task is not None]
    return {step.action.kind for task in tasks for step in task.steps}

"""Checks of names: no invisible characters. Two nodes must not look like one, nor a name like another."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.expression.names import name_problem
from treadle.language.checks.flow import Flow
from treadle.language.checks.tasks import tasks_of
from treadle.language.problem import Path
from treadle.language.reading import Reading
from treadle.model.definition import Node, Transition, Workflow

_NAMING = ("name", "signal", "type", "group", "queue")
"""Config keys of actions that hold names: of artifacts, signals, events, groups."""

Named = tuple[str, object, Path]


def check(flow: Flow, reading: Reading) -> None:
    """BAD_VALUE for names with characters that cannot be seen."""
    for what, name, at in _names(flow.workflow, reading):
        problem = name_problem(name) if isinstance(name, str) else None
        if problem is not None:
            reading.problem_in("BAD_VALUE", at, f"the {what} {problem}", "write the name anew, by hand")


def _names(workflow: Workflow, reading: Reading) -> Iterator[Named]:
    for index, tag in enumerate(workflow.tags):
        yield "tag", tag, ("tags", index)
    for section in ("tasks", "actions"):
        shared = reading.local.get(section)
        for name in shared if isinstance(shared, dict) else ():
            yield f"{section[:-1]} name", name, (section, name)
    for ref, node in workflow.nodes.items():
        yield from _of_node(ref, node)
    hidden = {ref for ref in workflow.nodes if name_problem(ref)}
    for index, transition in enumerate(workflow.transitions):
        yield from _of_transition(index, transition, hidden)


def _of_node(ref: str, node: Node) -> Iterator[Named]:
    place: Path = ("nodes", ref)
    yield "node name", ref, place
    yield "queue", node.queue, (*place, "queue")
    yield "mutex", node.mutex.name if node.mutex is not None else None, (*place, "mutex")
    for at, task, _given in tasks_of(ref, node):
        for number, step in enumerate(task.steps):
            yield "step", step.ref, (*at, "steps", number, "ref")
            for key in _NAMING:
                yield f"`{key}`", step.action.config.get(key), (*at, "steps", number, "action", key)


def _of_transition(index: int, transition: Transition, hidden: set[str]) -> Iterator[Named]:
    place: Path = ("transitions", index)
    if not hidden & {transition.from_, transition.to}:  # otherwise its own id may be made of theirs
        yield "transition id", transition.id, (*place, "id")
    yield "group", transition.sibling_group, (*place, "sibling_group")
    if transition.foreach is not None:
        yield "item variable", transition.foreach.item_var, (*place, "foreach", "item_var")
    if transition.trigger is not None:
        yield "signal", transition.trigger.signal, (*place, "trigger", "signal")

"""Checks of tasks: allowed steps, complete actions, existing functions, templates, and nested deadlines."""

from __future__ import annotations

from collections.abc import Iterator

from treadle.language.checks.flow import Flow
from treadle.language.grammar.action import needed_keys
from treadle.language.grammar.kinds import CONFIG_ONLY, SUSPENDING
from treadle.language.problem import Path
from treadle.language.reading import Reading
from treadle.model.definition import Mapping, Node, Step, Task

TEMPLATES = {"template": ("template",), "llm": ("system", "prompt")}
"""Settings that are templates, by kind."""


def check(flow: Flow, reading: Reading) -> None:
    """SUSPENDING_STEP, UNKNOWN_FUNCTION, BAD_VALUE for what an action lacks, TIMEOUT_HIERARCHY, NO_PUBLIC_URL."""
    for ref, node in flow.workflow.nodes.items():
        for at, task, given in tasks_of(ref, node):
            _suspending(at, task, reading)
            _work(at, task, node, reading)
            for number, step in enumerate(task.steps):
                place = (*at, "steps", number, "action")
                _needed(place, step, given, reading)
                _function(place, step, reading)
                _templates(place, step, reading)
                _callback(place, step, reading)
        _deadlines(ref, node, flow.workflow.timeout_ms, reading)


def tasks_of(ref: str, node: Node) -> Iterator[tuple[Path, Task, Mapping | str | None]]:
    """A node's task and its compensation, each with its place and the mapping of its input."""
    if node.task is not None:
        yield ("nodes", ref, "task"), node.task, node.input_mapping
    if node.compensate is not None:
        yield ("nodes", ref, "compensate", "task"), node.compensate.task, node.compensate.input_mapping


def _suspending(at: Path, task: Task, reading: Reading) -> None:
    undoes = at[2] == "compensate"
    if len(task.steps) == 1 and not undoes:
        return
    for number, step in enumerate(task.steps):
        if step.action.kind in SUSPENDING:
            message = f"a `{step.action.kind}` action waits, so it must be the only step of its task"
            hint = "give it a node of its own"
            if undoes:
                message = f"a `{step.action.kind}` action waits, and a compensation cannot: it would fail when it runs"
                hint = "undo it by a kind that does not wait, such as `http`; people act on a compensation that failed"
            reading.problem_in("SUSPENDING_STEP", (*at, "steps", number, "action"), message, hint)


def _work(at: Path, task: Task, node: Node, reading: Reading) -> None:
    """Report `work` that no worker could claim, or that comes with steps which its worker does not know."""
    for number, step in enumerate(task.steps):
        if step.action.kind != "work":
            continue
        place = (*at, "steps", number, "action")
        if node.queue is None or at[2] != "task":
            message = "a `work` action is executed by workers of a queue, and this one has none"
            hint = "give its node a `queue`" if at[2] == "task" else "compensations have no queue: use another kind"
            reading.problem_in("BAD_VALUE", place, message, hint)
        elif len(task.steps) > 1:
            message = "a `work` action is executed by a worker that knows no other steps: it must be the only step"
            reading.problem_in("SUSPENDING_STEP", place, message, "give it a node of its own")


def _needed(at: Path, step: Step, given: Mapping | str | None, reading: Reading) -> None:
    """Report needed keys that are missing. A key may also come from the input: the step's, or the task's where the step
    maps none."""
    source = step.input_mapping if step.input_mapping is not None else given
    anything = isinstance(source, str)
    supplied = set() if isinstance(source, str) else {key.split(".")[0] for key in source or {}}
    for field in needed_keys(step.action.kind):
        elsewhere = field.name not in CONFIG_ONLY and step.action.kind != "work"
        if field.name in step.action.config or (elsewhere and (anything or field.name in supplied)):
            continue
        if reading.is_known_wrong((*at, field.name)):
            continue
        where = ", here or in its input" if elsewhere else ""
        message = f"a `{step.action.kind}` action needs `{field.name}`{where}"
        reading.problem_in("BAD_VALUE", at, message, field.doc)


def _function(at: Path, step: Step, reading: Reading) -> None:
    exists = reading.settings.functions
    name = step.action.config.get("function")
    if step.action.kind == "python" and exists is not None and isinstance(name, str) and not exists(name):
        message = f"there is no function `{name}`"
        hint = "register it, or write `module:name` of one that can be imported"
        reading.problem_in("UNKNOWN_FUNCTION", (*at, "function"), message, hint)


def _callback(at: Path, step: Step, reading: Reading) -> None:
    if step.action.kind == "webhook" and not reading.settings.callbacks:
        message = "its worker gets no address to answer to: the attempt fails unless the worker answers at once"
        hint = "the operator sets `public_url` under [webhooks] of treadle.toml"
        reading.problem_in("NO_PUBLIC_URL", at, message, hint)


def _templates(at: Path, step: Step, reading: Reading) -> None:
    """Parse the templates an author wrote. Only a run can tell whether their names exist."""
    config = step.action.config
    written = [((*at, key), config.get(key)) for key in TEMPLATES.get(step.action.kind, ())]
    turns = config.get("messages") if step.action.kind == "llm" else None
    for number, turn in enumerate(turns if isinstance(turns, list) else ()):
        if isinstance(turn, dict):
            written.append(((*at, "messages", number, "content"), turn.get("content")))
    for place, text in written:
        if isinstance(text, str) and "{" in text and (problem := broken_template(text)) is not None:
            reading.problem_in("BAD_VALUE", place, f"the template cannot be read: {problem}")


def broken_template(text: str) -> str | None:
    """The problem of a template; None if there is none."""
    from minijinja import Environment, TemplateError  # few definitions have a template

    try:
        Environment().undeclared_variables_in_str(text)
    except TemplateError as problem:
        return str(problem.message).replace("(in <string>:", "(its line ")
    return None


def _deadlines(ref: str, node: Node, run_ms: int | None, reading: Reading) -> None:
    """Report an inner deadline that is longer than an outer one: it never strikes. Action < task < workflow."""
    steps, task_ms = (node.task.steps, node.task.timeout_ms) if node.task is not None else ([], None)
    of_task = [
        (("nodes", ref, "timeout_ms"), node.timeout_ms, f"of the node `{ref}`"),
        (("nodes", ref, "task", "timeout_ms"), task_ms, f"of the task of `{ref}`"),
    ]
    for at, inner, whose in of_task:
        _longer(at, inner, run_ms, whose, "of the workflow", reading)
    limits = [(ms, whose) for _, ms, whose in of_task if ms is not None]
    outer, owner = min(limits, default=(run_ms, "of the workflow"))
    for number, step in enumerate(steps):
        place: Path = ("nodes", ref, "task", "steps", number, "action", "execution", "timeout_ms")
        inner = step.action.execution.timeout_ms if step.action.execution is not None else None
        _longer(place, inner, outer, f"of the action in `{ref}`", owner, reading)


def _longer(at: Path, inner: int | None, outer: int | None, whose: str, owner: str, reading: Reading) -> None:
    if inner is not None and outer is not None and inner > outer:
        message = f"the timeout {whose}, {inner} ms, is longer than that {owner}, {outer} ms, and never strikes"
        reading.problem_in("TIMEOUT_HIERARCHY", at, message, "action < task < workflow")

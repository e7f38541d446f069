"""An attempt whose action is executed by a worker outside: what the worker is asked, and what its answer means.

Owns the two halves of such an attempt. Both use the pipeline of tasks (`execute.task`): schemas, mappings and `when`
mean the same wherever the action is executed. Nothing is kept between the halves: the pipeline is run again up to the
action, which is pure. Must not know claims or the network.

A task of one step is asked as that step's action. Any other (several steps, or one that starts over when it fails) is
asked as a whole, with the kind `task`; only a worker that knows Treadle's tasks can execute it.

Known limit: a retry policy of the action itself is the worker's to carry out; it comes with the question. The node's
`retry` works as everywhere.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from treadle.actions.plain import plain
from treadle.actions.protocol import AttemptFacts, Done, Failed
from treadle.actions.registry import Registry
from treadle.errors import TreadleError
from treadle.model.definition import Task
from treadle.runtime.execute.task import Invoke, TaskOutcome, located, run_task

Json = Any

WHOLE = "task"
"""The kind of a question that is a whole task."""


class WorkQuestion(Struct, frozen=True):
    """What a worker is asked."""

    kind: str
    config: Json
    input: Json
    execution: Json = None
    """Timeout and retries of the action, where the author has given any."""


def question(task: Task, input: Json, facts: AttemptFacts) -> WorkQuestion | TaskOutcome:
    """What a worker is asked; or the outcome, where no action has to be executed."""
    if is_whole(task):
        return WorkQuestion(WHOLE, msgspec.to_builtins(task), input)
    step = task.steps[0]
    pipeline = run_task(task, input, facts, _registry())
    try:
        ask = next(pipeline)
    except StopIteration as end:
        outcome: TaskOutcome = end.value
        return outcome
    assert isinstance(ask, Invoke), "a task begins with its first action"
    pipeline.close()
    config = dict(step.action.config)
    if step.action.kind == "work":
        config = {"name": config.get("name"), "config": config.get("config")}
    execution = msgspec.to_builtins(step.action.execution) if step.action.execution is not None else None
    return WorkQuestion(step.action.kind, config, ask.call.input, execution)


def outcome_of(task: Task, input: Json, facts: AttemptFacts, reply: Done | Failed) -> TaskOutcome:
    """What a worker's answer means."""
    if is_whole(task):
        return _outcome_of_whole(facts, reply)
    pipeline = run_task(task, input, facts, _registry())
    try:
        next(pipeline)
        pipeline.send(reply)
    except StopIteration as end:
        outcome: TaskOutcome = end.value
        return outcome
    pipeline.close()  # the action would be tried again: that was the worker's to do
    assert isinstance(reply, Failed), "an action that succeeded is not tried again"
    return TaskOutcome(error=located(reply.error, facts, task.steps[0].ref))


@cache
def _registry() -> Registry:
    """The kinds that pipelines name here; nothing is executed with it. Making one looks at folders, which took 45 % of
    a claim's time on the loop."""
    return Registry()


def _outcome_of_whole(facts: AttemptFacts, reply: Done | Failed) -> TaskOutcome:
    if isinstance(reply, Failed):
        return TaskOutcome(error=located(reply.error, facts))
    try:
        return TaskOutcome(output=plain(reply.output))
    except TreadleError as problem:
        from treadle.actions.failure import error_of

        return TaskOutcome(error=located(error_of(problem), facts))


def is_whole(task: Task) -> bool:
    """Whether a task is asked as a whole."""
    starts_over = task.retry is not None and task.retry.max_attempts > 1
    return len(task.steps) != 1 or starts_over


def is_model(task: Task) -> bool:
    """Whether a task asks a language model and nothing else: it spends what its output says (6.8)."""
    return len(task.steps) == 1 and task.steps[0].action.kind == "llm"


def needs_input(task: Task) -> bool:
    """Whether the meaning of an answer depends on the attempt's input."""
    if is_whole(task):
        return False
    step = task.steps[0]
    return (
        step.output_mapping is not None
        or step.when is not None
        or step.input_mapping is not None
        or (task.input_schema is not None)
    )

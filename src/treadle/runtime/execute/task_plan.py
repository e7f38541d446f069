"""Task definition → plan: schemas, gates and mappings, compiled once for all attempts of all runs.

Owns the meaning of a step's `when`. Pure; raises `ExpressionError` for a definition that was never checked.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from treadle.errors import DataTooLarge, ExpressionError
from treadle.expression.conditions import CompiledCondition, Unevaluable, compile_condition
from treadle.expression.paths import Path
from treadle.expression.schemas import Validator, compile_schema
from treadle.expression.sources import CompiledMapping, CompiledSource, compile_mapping, compile_targets
from treadle.expression.view import View
from treadle.model.definition import Action, Retry, Step, Task

Json = Any
Verb = Literal["continue", "skip", "succeed", "fail"]

PLANS_MAX = 4_096
"""Tasks whose plans are kept: some hundred workflow versions in use at once. A plan is a few kilobytes."""
NO_RETRY = Retry(max_attempts=1)


class Gate(Struct, frozen=True):
    """`when`: chooses one of two verbs. An unevaluable condition counts as false (1.10)."""

    condition: CompiledCondition
    then: Verb
    otherwise: Verb

    def verb(self, view: View) -> tuple[Verb, str]:
        """The verb for the step, and the reason in words. Raises DataTooLarge."""
        verdict = self.condition(view)
        if verdict:
            return self.then, f"{self.condition.text} is true"
        if isinstance(verdict, Unevaluable) and verdict.limit:
            raise DataTooLarge(verdict.reason)
        reason = f"unevaluable: {verdict.reason}" if isinstance(verdict, Unevaluable) else "false"
        return self.otherwise, f"{self.condition.text} is {reason}"


class StepPlan(Struct, frozen=True):
    """One step, ready to run."""

    ref: str
    action: Action
    on_failure: Literal["abort", "retry", "continue"]
    gate: Gate | None
    input: CompiledMapping | None
    """None: the step gets the task's input as it is."""
    outputs: tuple[tuple[Path, CompiledSource], ...]
    retry: Retry
    timeout_ms: int | None


class TaskPlan(Struct, frozen=True):
    """One task, ready to run."""

    steps: tuple[StepPlan, ...]
    input_schema: Validator | None
    output_schema: Validator | None
    retry: Retry
    hands_on: bool
    """A single step that maps no output: its action's output is the task's (1.3)."""
    sole: StepPlan | None = None
    """The only step, if it is nothing but its action: no gate, no mapping, no input schema, no retries."""


_PLANS: dict[int, tuple[Task, TaskPlan]] = {}
"""By identity: definitions are frozen but hold dicts, so they cannot be hashed. The task is kept, so that its id is not
reused."""


def plan_task(task: Task) -> TaskPlan:
    """The plan of a task; the same definition object is compiled once."""
    known = _PLANS.get(id(task))
    if known is not None:
        return known[1]
    plan = _planned(task)
    if len(_PLANS) >= PLANS_MAX:
        _PLANS.clear()  # plans that are in use are made again at once
    _PLANS[id(task)] = (task, plan)
    return plan


def _planned(task: Task) -> TaskPlan:
    steps = tuple(map(_step, task.steps))
    retry = task.retry or NO_RETRY
    hands_on = len(task.steps) == 1 and task.steps[0].output_mapping is None
    once = hands_on and retry.max_attempts == 1 and steps[0].retry.max_attempts == 1 and task.input_schema is None
    return TaskPlan(
        steps=steps,
        input_schema=compile_schema(task.input_schema),
        output_schema=compile_schema(task.output_schema),
        retry=retry,
        hands_on=hands_on,
        sole=steps[0] if once and steps[0].gate is None and steps[0].input is None else None,
    )


def _step(step: Step) -> StepPlan:
    try:
        return _compiled(step)
    except ExpressionError as problem:
        where = ", ".join(filter(None, (f"step {step.ref!r}", problem.where)))
        raise ExpressionError(problem.message, where, problem.code) from None


def _compiled(step: Step) -> StepPlan:
    execution = step.action.execution
    return StepPlan(
        ref=step.ref,
        action=step.action,
        on_failure=step.on_failure,
        gate=_gate(step.when) if step.when is not None else None,
        input=compile_mapping(step.input_mapping) if step.input_mapping is not None else None,
        outputs=tuple(compile_targets(step.output_mapping)) if step.output_mapping is not None else (),
        retry=(execution.retry_policy if execution else None) or NO_RETRY,
        timeout_ms=execution.timeout_ms if execution else None,
    )


def _gate(when: Json) -> Gate:
    """A bare condition runs the step or skips it, and so does {if} alone."""
    if "if" not in when:
        return Gate(compile_condition(when), "continue", "skip")
    return Gate(compile_condition(when["if"]), when.get("then", "continue"), when.get("else", "skip"))

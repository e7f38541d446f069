"""One attempt of a task: a pipeline over one record, in which failure is a value.

    input schema → each step: when → input mapping → action, with retries → output mapping → output schema
                      ▲                                                            │
                      └── the whole task again, nothing kept ◄── a step: `retry` ──┘

Owns the semantics of tasks and steps (1.3) and the first two levels of failure (2.6). Promises:
 1. `run_task` is a plain generator without I/O, clock or randomness: it yields `Invoke` or `Pause` and is
    sent the answer. So it runs on a virtual clock and under asyncio alike; closing it abandons the attempt.
 2. Every end is a `TaskOutcome`; nothing an author writes or an action does makes it raise.
 3. A failed attempt asks nothing of its run: requests of discarded and failed tries are dropped.
 4. Nothing it was given is changed, and its output shares nothing with what it was given.

Must not know tokens, nodes' mappings, durable retries or the deadline of the attempt: those are the kernel's.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from treadle.actions.failure import error_of
from treadle.actions.plain import plain
from treadle.actions.protocol import ActionKind, AttemptFacts, Call, Done, Failed, TaskView, failed
from treadle.actions.registry import Registry
from treadle.errors import DataTooLarge, EvaluationError, TreadleError
from treadle.expression.paths import MISSING
from treadle.expression.schemas import Validator
from treadle.kernel.scope import Scope
from treadle.model.definition import Task
from treadle.model.errors import Error
from treadle.model.requests import AnyRequest
from treadle.model.spending import together
from treadle.runtime.execute.result_view import ResultView
from treadle.runtime.execute.task_plan import StepPlan, TaskPlan, plan_task
from treadle.runtime.execute.trying import may_retry, wait_before_try_ms

Json = Any


class Invoke(Struct, frozen=True):
    """Asks to run one action; answered with `Done`, `Failed`, or `TimedOut` after `call.timeout_ms`."""

    kind: ActionKind
    call: Call


class Pause(Struct, frozen=True):
    """Asks to be resumed after so many milliseconds; answered with None."""

    ms: int


class TimedOut(Struct, frozen=True):
    """The action did not answer in time and has been told to stop."""


Ask = Invoke | Pause
Answer = Done | Failed | TimedOut | None


class TaskOutcome(Struct, frozen=True):
    """How an attempt ended: with an output, or with an error."""

    output: Json = None
    error: Error | None = None
    requests: tuple[AnyRequest, ...] = ()
    tries: int = 0
    """How many times the task started over inside this attempt; action retries never count (2.16)."""
    spent: Json = None
    """What all its tries have used up together, {cost, usage}."""


T = TypeVar("T")
Pipeline = Generator[Ask, Answer, T]


def run_task(task: Task, input: Json, facts: AttemptFacts, registry: Registry) -> Pipeline[TaskOutcome]:
    """One attempt of `task`."""
    try:
        plan = plan_task(task)
    except TreadleError as problem:
        return _ended(facts, error_of(problem))
    violation = _violation(plan.input_schema, input, "input", facts)
    if violation is not None:
        return _ended(facts, violation)
    tries = 0
    spent: list[Json] = []
    while True:
        record = _Record(plan, input, facts, registry, tries, spent)
        yield from _run_steps(record)
        if record.verdict != "again" or tries + 1 >= plan.retry.max_attempts:
            return _outcome(record)
        tries += 1
        yield Pause(wait_before_try_ms(plan.retry, tries, facts))


def sole_plan(task: Task) -> TaskPlan | None:
    """The plan of a task that is one action and nothing else; its question and answer (`sole_ask`, `sole_outcome`) need
    no pipeline. None: the task needs `run_task`, which would give the same outcome."""
    try:
        plan = plan_task(task)
    except TreadleError:
        return None
    return plan if plan.sole is not None else None


def sole_ask(plan: TaskPlan, input: Json, facts: AttemptFacts, registry: Registry) -> Invoke:
    """The only question of such a task."""
    step = plan.sole
    assert step is not None
    call = Call(
        config=step.action.config,
        input=input,
        facts=facts,
        step=step.ref,
        timeout_ms=step.timeout_ms,
    )
    return Invoke(registry.resolve(step.action.kind), call)


def sole_outcome(plan: TaskPlan, answer: Answer, input: Json, facts: AttemptFacts, registry: Registry) -> TaskOutcome:
    """The outcome that its answer gives."""
    if type(answer) is Done and answer.is_plain and plan.output_schema is None:
        return TaskOutcome(answer.output, None, answer.requests, 0, answer.spent)
    step = plan.sole
    assert step is not None
    record = _Record(plan, input, facts, registry, 0, [])
    reply = _reply(answer, step)
    record.spent.append(reply.spent)
    error = reply.error if isinstance(reply, Failed) else _accept(step, input, reply, record)
    if error is not None:
        _fail(step, record, located(error, facts, step.ref))
    return _outcome(record)


class _Record:
    """The state of one try of the task."""

    __slots__ = (
        "error",
        "facts",
        "handed_on",
        "input",
        "plan",
        "registry",
        "requests",
        "scope",
        "spent",
        "tries",
        "verdict",
    )

    def __init__(
        self, plan: TaskPlan, input: Json, facts: AttemptFacts, registry: Registry, tries: int, spent: list[Json]
    ) -> None:
        self.plan = plan
        self.input = input
        self.facts = facts
        self.registry = registry
        self.tries = tries
        self.spent = spent
        self.scope = Scope(overlay=False)
        self.scope.tree = {"input": input, "state": {}, "output": {}}
        self.requests: tuple[AnyRequest, ...] = ()
        self.handed_on: Json = MISSING
        self.verdict: Literal["going", "succeeded", "failed", "again"] = "going"
        self.error: Error | None = None

    @property
    def view(self) -> TaskView:
        """The view that a step's expressions have."""
        return TaskView(self.scope.tree, self.facts)


def _run_steps(record: _Record) -> Pipeline[None]:
    for step in record.plan.steps:
        error = yield from _run_step(step, record)
        if error is not None:
            _fail(step, record, located(error, record.facts, step.ref))
        if record.verdict != "going":
            return
    record.verdict = "succeeded"


def _run_step(step: StepPlan, record: _Record) -> Pipeline[Error | None]:
    """Runs or skips the step, or ends the task; returns the error if the step failed."""
    if step.gate is not None:
        try:
            verb, why = step.gate.verb(record.view)
        except DataTooLarge as problem:
            return failed(f"when of step {step.ref!r}: {problem}", problem.kind).error
        if verb == "succeed":
            record.verdict = "succeeded"
        if verb in ("skip", "succeed"):
            return None
        if verb == "fail":
            return failed(f"step {step.ref!r} is told to fail because {why}").error
    try:
        input = record.input if step.input is None else step.input.evaluate(record.view)
    except TreadleError as problem:
        return failed(f"input_mapping of step {step.ref!r}: {problem}", _kind(problem)).error
    reply = yield from _invoke(step, input, record)
    return reply.error if isinstance(reply, Failed) else _accept(step, input, reply, record)


def _invoke(step: StepPlan, input: Json, record: _Record) -> Pipeline[Done | Failed]:
    """Runs the action with its own retries: afterwards it has succeeded or failed for good."""
    invoke = Invoke(record.registry.resolve(step.action.kind), _call(step, input, record))
    tries = 1
    while True:
        reply = _reply((yield invoke), step)
        record.spent.append(reply.spent)
        if isinstance(reply, Done) or not may_retry(step.retry, tries, reply.error):
            return reply
        yield Pause(wait_before_try_ms(step.retry, tries, record.facts))
        tries += 1


def _call(step: StepPlan, input: Json, record: _Record) -> Call:
    return Call(
        config=step.action.config,
        input=input,
        facts=record.facts,
        step=step.ref,
        tries=record.tries,
        state=record.scope.tree["state"],
        output=record.scope.tree["output"],
        requests=record.requests,
        timeout_ms=step.timeout_ms,
    )


def _reply(answer: Answer, step: StepPlan) -> Done | Failed:
    assert answer is not None, "an Invoke is answered by Done, Failed or TimedOut"
    if not isinstance(answer, TimedOut):
        return answer
    message = f"step {step.ref!r}: the {step.action.kind} action did not answer within {step.timeout_ms} ms"
    return failed(message, "TASK_TIMEOUT", retryable=True)


def _accept(step: StepPlan, input: Json, done: Done, record: _Record) -> Error | None:
    """Takes an action's output over into the task's context."""
    try:
        output = done.output if done.is_plain else plain(done.output)
        if step.outputs:
            view = ResultView(output, input, record.scope.tree["state"], record.facts)
            for path, value in [(path, source.evaluate(view)) for path, source in step.outputs]:
                record.scope.write(path, value)
    except TreadleError as problem:
        return failed(f"output of step {step.ref!r}: {problem}", _kind(problem)).error
    if record.plan.hands_on:
        record.handed_on = output
    if done.requests:
        record.requests += tuple(done.requests)
    return None


def _kind(problem: TreadleError) -> str:
    return problem.kind if isinstance(problem, EvaluationError) else "TASK_FAILED"


def _fail(step: StepPlan, record: _Record, error: Error) -> None:
    """Applies a step's failure to its task: `on_failure` routes, it never retries the step alone."""
    if step.on_failure == "continue" and _noted(step, record, error):
        return
    record.verdict = "again" if step.on_failure == "retry" else "failed"
    record.error = error


def _noted(step: StepPlan, record: _Record, error: Error) -> bool:
    """Whether the error could be noted; False if the author has written something else at its place."""
    try:
        record.scope.write(("state", "_errors", step.ref), error.as_json())
    except TreadleError:
        return False
    return True


def _outcome(record: _Record) -> TaskOutcome:
    spent = together(record.spent)
    if record.error is not None:
        return TaskOutcome(error=record.error, tries=record.tries, spent=spent)
    output = record.handed_on if record.handed_on is not MISSING else plain(record.scope.tree["output"])
    problem = _violation(record.plan.output_schema, output, "output", record.facts)
    if problem is not None:
        return _ended(record.facts, problem, record.tries, spent)
    return TaskOutcome(output=output, requests=record.requests, tries=record.tries, spent=spent)


def _violation(schema: Validator | None, value: Json, what: str, facts: AttemptFacts) -> Error | None:
    problem = schema.problem(value) if schema is not None else None
    return None if problem is None else failed(f"{what} of node {facts.node!r}: {problem}", "SCHEMA").error


def _ended(facts: AttemptFacts, error: Error, tries: int = 0, spent: Json = None) -> TaskOutcome:
    return TaskOutcome(error=located(error, facts), tries=tries, spent=spent)


def located(error: Error, facts: AttemptFacts, step: str | None = None) -> Error:
    """The error with its place. `details` belong to the action; the step is added if they are an object or absent."""
    details = error.details
    if step is not None and (details is None or isinstance(details, dict)):
        details = {**(details or {}), "step": step}
    return replace(error, node=facts.node, path=facts.path, details=details)

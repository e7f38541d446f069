"""Attempts for the tests of the task pipeline: tasks in one line, driven on the virtual clock."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.unit.actions.calls import FACTS
from treadle.actions.protocol import AttemptFacts
from treadle.actions.registry import Registry
from treadle.model.definition import Task
from treadle.runtime.execute.drive import Hook, drive
from treadle.runtime.execute.task import TaskOutcome, run_task


def step(ref: str, kind: str = "set", config: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A step in canonical form; `execution` goes to its action."""
    action = {"kind": kind, "config": config or {}}
    if "execution" in fields:
        action["execution"] = fields.pop("execution")
    return {"ref": ref, "action": action, **fields}


def mock(ref: str, output: Any = None, **fields: Any) -> dict[str, Any]:
    """A step that succeeds with an output."""
    return step(ref, "mock", {"output": {} if output is None else output}, **fields)


def fail(ref: str, **fields: Any) -> dict[str, Any]:
    """A step that fails with a business error, or as `error` says."""
    return step(ref, "mock", {"error": fields.pop("error", {"message": f"{ref} broke"})}, **fields)


def cel(expr: str) -> dict[str, Any]:
    """A condition."""
    return {"type": "cel", "expr": expr}


def task(*steps: dict[str, Any], **fields: Any) -> Task:
    return msgspec.convert({"steps": list(steps), **fields}, Task)


def attempt(
    definition: Task | dict[str, Any],
    input: Any = None,
    hook: Hook | None = None,
    facts: AttemptFacts = FACTS,
    registry: Registry | None = None,
) -> tuple[TaskOutcome, int]:
    """The outcome of one attempt, and its virtual duration."""
    whole = definition if isinstance(definition, Task) else task(definition)
    return drive(run_task(whole, {} if input is None else input, facts, registry or Registry()), hook)


def result(definition: Task | dict[str, Any], input: Any = None, **given: Any) -> Any:
    """The output of an attempt that must succeed."""
    outcome, _ = attempt(definition, input, **given)
    assert outcome.error is None, outcome.error
    return outcome.output


def failure(definition: Task | dict[str, Any], input: Any = None, **given: Any) -> Any:
    """The error of an attempt that must fail."""
    outcome, _ = attempt(definition, input, **given)
    assert outcome.error is not None, outcome
    return outcome.error


__all__ = ["FACTS", "attempt", "cel", "fail", "failure", "mock", "result", "step", "task"]

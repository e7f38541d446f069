"""`mock {output?, error?, after_ms?}`: an outcome on demand, for tests. The mocks of a scenario become this kind, too.

`{cel: …}` may stand anywhere in `output`; beside the step's context it sees `_branch`
(docs/reference/scenarios.md, Mocks).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from treadle.actions.protocol import Call, Done, Failed, Later, TaskView, failed
from treadle.expression.cel import compile_cel
from treadle.expression.sources import compile_source
from treadle.expression.view import View

Json = Any


class MockKind:
    """Answers as its config says."""

    name = "mock"

    def run(self, call: Call) -> Done | Failed | Later:
        return mock_reply(call.config, call)


def mock_reply(outcome: dict[str, Json], call: Call) -> Done | Failed | Later:
    """The reply a scripted outcome stands for."""
    view = TaskView({**call.roots(), "_branch": call.facts.branch or {}}, call.facts)
    then = _result(outcome, view)
    after_ms = compile_source(outcome.get("after_ms") or 0).evaluate(view)
    if not isinstance(after_ms, int) or after_ms < 0:
        return failed(f"'after_ms' of a mock is a number of milliseconds, not {after_ms!r}")
    return Later(after_ms, then) if after_ms else then


def _result(outcome: dict[str, Json], view: View) -> Done | Failed:
    error = outcome.get("error")
    if error is not None:
        reply = failed(
            error.get("message") or "mock failure",
            error.get("kind") or "TASK_FAILED",
            retryable=bool(error.get("retryable")),
        )
        return replace(reply, spent=outcome.get("spent"))
    return Done(_filled(outcome.get("output", {}), view), spent=outcome.get("spent"))


def _filled(value: Json, view: View) -> Json:
    """`value` with every `{cel}` in it computed."""
    if isinstance(value, dict):
        if value.keys() == {"cel"}:
            return compile_cel(value["cel"]).evaluate(view)
        return {key: _filled(item, view) for key, item in value.items()}
    return [_filled(item, view) for item in value] if isinstance(value, list) else value

"""`assert {condition, message?}`: a business failure unless its condition holds."""

from __future__ import annotations

from treadle.actions.protocol import Call, Done, Failed, failed
from treadle.expression.conditions import Unevaluable, compile_condition


class AssertKind:
    """Sees `input` (the step's), `state`, `output` (the task's). Unevaluable does not hold (1.10)."""

    name = "assert"

    def run(self, call: Call) -> Done | Failed:
        condition = compile_condition(call.config["condition"])
        verdict = condition(call.view())
        if verdict:
            return Done({})
        message = call.config.get("message") or "assertion failed"
        reason = f", unevaluable: {verdict.reason}" if isinstance(verdict, Unevaluable) else ""
        kind = "LIMIT_EXCEEDED" if isinstance(verdict, Unevaluable) and verdict.limit else "TASK_FAILED"
        return failed(f"{message} ({condition.text}{reason})", kind, details={"condition": condition.text})

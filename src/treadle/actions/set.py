"""`set {values}`: writes values. Its output is the values, each a source (1.6) over the step's context."""

from __future__ import annotations

from treadle.actions.protocol import Call, Done
from treadle.expression.sources import compile_mapping


class SetKind:
    """Evaluates `values`; without any, passes on the step's input."""

    name = "set"

    def run(self, call: Call) -> Done:
        if "values" not in call.config:
            return Done(call.input)
        return Done(compile_mapping(call.config["values"]).evaluate(call.view()))

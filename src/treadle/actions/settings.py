"""Reading an action's config at run time.

A config value is a source (1.6): `$.input.x` is a path, `{cel: …}` is computed, anything else is itself. A setting that
the config lacks comes from the step's input under the same name. The config wins: a step without `input_mapping` sees
the whole task input, and a key that happens to be called `name` in there must not rename an artifact.
"""

from __future__ import annotations

from typing import Any

from treadle.actions.protocol import Call
from treadle.errors import EvaluationError
from treadle.expression.sources import compile_source

Json = Any


def setting(call: Call, name: str, default: Json = None) -> Json:
    """The value of one setting: from the config, else from the step's input, else the default."""
    if name in call.config:
        return compile_source(call.config[name]).evaluate(call.view())
    if isinstance(call.input, dict) and name in call.input:
        return call.input[name]
    return default


def text_setting(call: Call, name: str) -> str:
    """A setting that must be non-empty text."""
    value = setting(call, name)
    if not isinstance(value, str) or not value:
        raise EvaluationError(f"{name!r} must be text, not {value!r}: give it in the action or in the step's input")
    return value

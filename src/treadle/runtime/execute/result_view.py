"""The view that a step's `output_mapping` has: `$` is the action's output (1.6).

In `{cel}` the action's output is called `output`, beside `input` (the step's) and `state` (the task's, as it was before
this step), `_run` and `_visit`.
"""

from __future__ import annotations

from typing import Any

from treadle.actions.protocol import TOLD, AttemptFacts
from treadle.expression.paths import MISSING, Path, get_in
from treadle.expression.view import only_keys

Json = Any


class ResultView:
    """A `View` in which paths and names start from different places."""

    __slots__ = ("_facts", "_output", "_roots")

    def __init__(self, output: Json, input: Json, state: Json, facts: AttemptFacts) -> None:
        self._output = output
        self._facts = facts
        self._roots = {"output": output, "input": input, "state": state}

    def get(self, path: Path) -> Json:
        return get_in(self._output, path)

    def root(self, name: str, keys: frozenset[str] | None) -> Json:
        return only_keys(self._facts.root(name) if name in TOLD else self._roots.get(name, MISSING), keys)

    @property
    def bytes_max(self) -> int:
        return self._facts.cel_bytes_max

    def tokens_at(self, node: str) -> int:  # noqa: ARG002
        return 0

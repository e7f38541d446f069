"""Kinds that are known but cannot be executed inside a task here: those that reach outside, those that suspend, and
work for workers in other languages.

They fail with an error that names the kind and the remedy. So a scenario without the mock it needs fails on its first
run and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.actions.protocol import Call, Failed, Missing, failed

OUTSIDE = ("http", "shell", "llm", "mcp")
CONFIGURED = {"llm": "llm.profiles", "mcp": "mcp.servers"}
"""Kinds that an engine, too, executes only if its operator has set something."""
SUSPENDING = ("human", "wait", "signal", "workflow_call", "webhook")


class OutsideKind:
    """A kind that reaches outside, in a scenario or on a node that is not set up for it."""

    def __init__(self, name: str, node: Callable[[], str] = str) -> None:
        self.name = name
        self._node = node
        """The name of the node that executes; empty in a scenario."""

    def run(self, call: Call) -> Failed:
        if self._node():
            missing = self.missing(call.config)
            text = (
                f"node {self._node()} executes this and lacks {missing.what}: {missing.remedy} there, or give the work"
            )
            return failed(f"{text} a queue that only nodes with it serve", "NOT_FOUND", retryable=True)
        return failed(
            f"an action of kind {self.name!r} reaches outside and is not executed here: "
            f"mock {_addresses(call)} in a scenario; {self._remedy()}"
        )

    def missing(self, _config: dict[str, Any]) -> Missing:
        """Always returns the kind: where it can be executed, another class is registered in its place."""
        setting = CONFIGURED.get(self.name, self.name)
        return Missing(f"action kind {self.name!r}", "it is not set up here", f"set `{setting}` (treadle.toml)")

    def _remedy(self) -> str:
        setting = CONFIGURED.get(self.name)
        return f"an engine executes it where `{setting}` is set (treadle.toml)" if setting else "the engine executes it"


class SuspendingKind:
    """A kind that suspends: only the run itself can let a token wait."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, call: Call) -> Failed:
        return failed(
            f"an action of kind {self.name!r} lets its token wait, so it must be the only step of its task: "
            f"give step {call.step!r} a node of its own, or mock {_addresses(call)} in a scenario"
        )


class WorkKind:
    """Work for workers in other processes, which claim it over HTTP: no engine and no Python worker executes it."""

    name = "work"

    def run(self, call: Call) -> Failed:
        return failed(
            f"work {call.config.get('name')!r} is executed by a worker of its queue, which claims it over HTTP: "
            f"mock {_addresses(call)} in a scenario"
        )

    def missing(self, config: dict[str, Any]) -> Missing:
        """Always returns the work: it is left to workers that claim it over HTTP."""
        what = f"work {config.get('name')!r}"
        return Missing(what, "a worker claims it over HTTP", "start a worker that claims it over HTTP")


def _addresses(call: Call) -> str:
    return f"'{call.facts.node}' or '{call.facts.node}/{call.step}'"

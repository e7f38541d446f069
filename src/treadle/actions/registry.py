"""The kinds of actions and the functions that an engine, a worker or a scenario has.

Promises that the built-in kinds are registered from the start, and that the error for an unknown name names the nearest
known one. A kind may be replaced (a test's fake `http`) or added:

    class Shout:
        name = "shout"
        def run(self, call): return Done({"text": call.input["text"].upper()})

    registry.register(Shout())

`Registry()` is offline: kinds that reach outside refuse and ask for a mock. `outside.install_outside` gives it the real
ones; a kind that holds something open has an `async close()`, which `Registry.close` calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from treadle.actions.artifact import ArtifactReadKind, ArtifactWriteKind
from treadle.actions.assertion import AssertKind
from treadle.actions.emit import EmitKind
from treadle.actions.group import AddSiblingsKind, CancelGroupKind, CloseGroupKind
from treadle.actions.mock import MockKind
from treadle.actions.nearest import nearest
from treadle.actions.protocol import ActionKind, Call, Failed, Missing, failed
from treadle.actions.python import Function, PythonKind
from treadle.actions.send import SendKind
from treadle.actions.set import SetKind
from treadle.actions.template import TemplateKind
from treadle.actions.unavailable import OUTSIDE, SUSPENDING, OutsideKind, SuspendingKind, WorkKind
from treadle.errors import TreadleError
from treadle.model.definition import Task
from treadle.tasks.trust import Trust

F = TypeVar("F", bound=Function)


class UnknownKind(TreadleError, LookupError):
    """No action kind of that name is registered."""


class Registry:
    """The kinds and functions of one engine, worker or scenario."""

    def __init__(self) -> None:
        self.functions: dict[str, Function] = {}
        self.trust = Trust()
        """Modules whose functions workflows may name; registered functions need none."""
        self.node = ""
        """The engine or worker that executes with it, for messages; a scenario is none."""
        self._kinds: dict[str, ActionKind] = {}
        for kind in _built_in(self.functions, self._where, lambda: self.node, lambda: self.trust):
            self.register(kind)

    def register(self, kind: ActionKind) -> None:
        """Adds a kind, or replaces the one of the same name."""
        self._kinds[kind.name] = kind

    def function(self, name: str) -> Callable[[F], F]:
        """Decorator: makes a function known to `python` actions under a name."""

        def known(function: F) -> F:
            self.functions[name] = function
            return function

        return known

    def kinds(self) -> tuple[str, ...]:
        """The names of all kinds."""
        return tuple(self._kinds)

    def kind(self, name: str) -> ActionKind:
        """The kind of that name; raises `UnknownKind`."""
        try:
            return self._kinds[name]
        except KeyError:
            raise UnknownKind(f"there is no action kind {name!r}{nearest(name, self._kinds)}") from None

    def missing(self, task: Task) -> Missing | None:
        """The first thing that a task needs and this process lacks."""
        for step in task.steps:
            try:
                kind = self.kind(step.action.kind)
            except UnknownKind as problem:
                return Missing(f"action kind {step.action.kind!r}", str(problem), "register it there")
            missing = getattr(kind, "missing", None)
            found: Missing | None = missing(step.action.config) if missing is not None else None
            if found is not None:
                return found
        return None

    def _where(self) -> str:
        if not self.node:
            return ""
        return (
            f" Node {self.node} executes this and does not have it: start that with `--functions MODULE`"
            " (`Engine(functions=…)`), or give the work a queue that only nodes with the function serve."
        )

    async def warm(self, kinds: Iterable[str]) -> None:
        """Prepares these kinds, if they have something to import first. Errors are ignored: an attempt meets them again
        and reports them."""
        for name in kinds:
            warm = getattr(self._kinds.get(name), "warm", None)
            if warm is not None:
                with suppress(Exception):
                    await warm()

    async def close(self) -> None:
        """Closes the connections and processes of the kinds, which may be used again afterwards."""
        for kind in self._kinds.values():
            close = getattr(kind, "close", None)
            if close is not None:
                await close()

    def resolve(self, name: str) -> ActionKind:
        """The kind of that name. For an unknown one, a kind that fails when it is run: a scenario may mock the step."""
        known = self._kinds.get(name)
        if known is not None:
            return known
        try:
            return self.kind(name)
        except UnknownKind as problem:
            return _Unregistered(name, f"{problem}{self._where()}", is_here=bool(self.node))


class _Unregistered:
    def __init__(self, name: str, message: str, is_here: bool) -> None:
        self.name = name
        self._message = message
        self._is_here = is_here
        """Whether a node executes: then a retry may help, because another node may have the kind. In a scenario an
        unknown kind is the author's mistake."""

    def run(self, call: Call) -> Failed:
        return failed(f"step {call.step!r}: {self._message}", "NOT_FOUND", retryable=self._is_here)


def _built_in(
    functions: dict[str, Function], where: Callable[[], str], node: Callable[[], str], trust: Callable[[], Trust]
) -> list[ActionKind]:
    return [
        PythonKind(functions, where, trust),
        TemplateKind(),
        SetKind(),
        AssertKind(),
        MockKind(),
        ArtifactWriteKind(),
        ArtifactReadKind(),
        EmitKind(),
        SendKind(),
        CancelGroupKind(),
        AddSiblingsKind(),
        CloseGroupKind(),
        *(OutsideKind(name, node) for name in OUTSIDE),
        *map(SuspendingKind, SUSPENDING),
        WorkKind(),
    ]

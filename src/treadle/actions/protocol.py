"""The protocol between a step and its action: `Call` goes in, a `Reply` comes out.

Owns the types of both sides. Promises that failure is a value (`Failed`) and that waiting is a value too (`Later`,
`Work`, an awaitable). So a kind never sleeps and never blocks by itself: the executor of the attempt chooses the clock
and the thread. Must not know any kind, nor how a task is run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from treadle.actions.blobs import Artifacts
from treadle.expression.paths import Path, get_in
from treadle.expression.view import CEL_BYTES_MAX, only_keys
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId, visit_key
from treadle.model.requests import AnyRequest

Json = Any


class AttemptFacts(Struct, frozen=True, kw_only=True):
    """The facts of one attempt that do not depend on its task."""

    run: RunId
    token: TokenId
    attempt: int
    node: str
    workflow: str = ""
    path: str = "root"
    retries: int = 0
    """How often an operator has retried the visit: each time makes a new `key`."""
    branch: dict[str, Json] | None = None
    """`_branch` of the token, outside every group None."""
    about: Callable[[], Json] | None = None
    """Makes `_run`, for expressions that read it."""
    cel_bytes_max: int = CEL_BYTES_MAX
    """How much data one evaluation of an expression may read."""
    artifacts: Artifacts | None = None
    jitter: Callable[[], float] | None = None
    """Draws from [-1, 1) for backoff; None switches jitter off, as scenarios do."""
    emit: Callable[[str, Json], None] | None = None
    """Reports partial results to watchers as (type, data); never blocks. None: nobody watches."""
    trace: dict[str, str] | None = None
    """Headers of W3C Trace Context that make a request a part of this attempt's trace; None if runs are not traced."""

    @property
    def key(self) -> str:
        """The idempotency key of the visit (2.1): every automatic retry and a repetition after a crash carry the same
        one; `attempt` tells them apart."""
        return visit_key(self.run, self.token, self.retries)

    def root(self, name: str) -> Json:
        """`_run` or `_visit`, as expressions of the task see them."""
        if name == "_visit":
            return {"id": self.token, "key": self.key, "attempt": self.attempt, "path": self.path}
        return self.about() if self.about is not None else {"id": self.run, "workflow": self.workflow}

    def portable(self) -> AttemptFacts:
        """A copy for another process, without the fields that cannot leave this one."""
        return replace(self, artifacts=None, jitter=None, emit=None, about=None)


TOLD = frozenset(("_run", "_visit"))
"""Roots that are made only when an expression reads them."""


class TaskView:
    """The data that expressions of a task see: the given roots, and `_run` and `_visit`, made when they are read."""

    __slots__ = ("_facts", "_roots")

    def __init__(self, roots: dict[str, Json], facts: AttemptFacts) -> None:
        self._roots = roots
        self._facts = facts

    def get(self, path: Path) -> Json:
        if path and path[0] in TOLD:
            return get_in(self._facts.root(str(path[0])), path[1:])
        return get_in(self._roots, path)

    def root(self, name: str, keys: frozenset[str] | None) -> Json:
        return only_keys(self._facts.root(name) if name in TOLD else get_in(self._roots, (name,)), keys)

    @property
    def bytes_max(self) -> int:
        return self._facts.cel_bytes_max

    def tokens_at(self, node: str) -> int:  # noqa: ARG002
        return 0


class Call(Struct, frozen=True, kw_only=True):
    """One try of one step's action, with everything a kind may know."""

    config: dict[str, Json]
    input: Json
    """The step's mapped input, or the task's where the step maps none. Shared: a kind must not change it."""
    facts: AttemptFacts
    step: str
    tries: int = 0
    """How often the whole task has started over inside this attempt."""
    state: Json = {}
    output: Json = {}
    requests: tuple[AnyRequest, ...] = ()
    """Requests to the run that earlier steps of this try have made."""
    timeout_ms: int | None = None

    @property
    def key(self) -> str:
        """Idempotency key of this step (2.1): the same in retries of the action, of the task and of the node."""
        return f"{self.facts.key}:{self.step}"

    def roots(self) -> dict[str, Json]:
        """The data that a config's expressions see: `input` is the step's, `state` and `output` are the task's."""
        return {"input": self.input, "state": self.state, "output": self.output}

    def view(self) -> TaskView:
        """The same, and `_run` and `_visit`, to evaluate against."""
        return TaskView(self.roots(), self.facts)


class Done(Struct, frozen=True):
    """The action succeeded."""

    output: Json
    requests: tuple[AnyRequest, ...] = ()
    is_plain: bool = False
    """Whether the output is a fresh result of `plain`, which need not be copied again."""
    spent: Json = None
    """What the action has used up, {cost, usage}: counted beside its output, never by a key in it."""


class Failed(Struct, frozen=True):
    """The action failed; `error.retryable` tells infrastructure (true) from business (false)."""

    error: Error
    spent: Json = None


class Later(Struct, frozen=True):
    """The reply `then`, given after a delay in milliseconds."""

    ms: int
    then: Done | Failed


class Work(Struct, frozen=True):
    """Blocking work. `run` can be sent to another process when `place` says so."""

    run: Callable[[], Done | Failed]
    place: Literal["thread", "process"] = "thread"


class Warming(Struct, frozen=True):
    """Asynchronous work that has to prepare first. `work` gets a function that starts the action's clock, and calls it
    when it is ready: importing a library for seconds must not use up the timeout of the first action that needs it."""

    work: Callable[[Callable[[], None]], Awaitable[Done | Failed]]

    def __await__(self) -> Generator[Any, None, Done | Failed]:
        return self.work(_no_clock).__await__()


def _no_clock() -> None:
    """The function for a caller that has no clock to start."""


Reply = Done | Failed | Later | Work | Warming | Awaitable[Done | Failed]


class Missing(Struct, frozen=True):
    """A thing that a process lacks to execute an action, such as a function."""

    what: str
    """`function 'judge'`"""
    why: str
    remedy: str


class ActionKind(Protocol):
    """One kind of action. Third parties write a class with these two members and register an instance. One that cannot
    be carried out everywhere may have `missing(config) -> Missing | None` as well: queue work that needs it is left to
    workers that have it."""

    @property
    def name(self) -> str:
        """The name of the kind: the value of `kind:` in a definition."""

    def run(self, call: Call) -> Reply:
        """Executes the action, or returns how to. An exception counts as `Failed` (see `failure.error_of`)."""


def failed(message: str, kind: str = "TASK_FAILED", *, retryable: bool = False, details: Json = None) -> Failed:
    """A failure in one line; a business failure unless told otherwise."""
    return Failed(Error(kind=kind, message=message, retryable=retryable, details=details))
